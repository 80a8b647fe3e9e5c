/*
 * Tabs and what they are sent. streams_refresh() renders what has changed, then every tab that
 * sleeps and has a message is resumed; libmicrohttpd asks on_read() for bytes until there are none,
 * and the tab sleeps again. Messages have one numbering for all kinds, and a tab gets them in its
 * order, so that the number of the last one says all that it has.
 */
#include "daemon/http/streams.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "daemon/http/ring.h"
#include "daemon/http/topic.h"

#define EVERY_MS    250
#define REST        200  /* times what a rendering for all tabs took, */
#define REST_MAX_MS 1000 /* but no longer than this */
#define BEAT_MS     15000
#define BLOCK_BYTES ((size_t)16 * 1024)

struct subscriber {
    struct subscriber *next;
    struct subscriber *previous;
    struct streams *streams;
    struct page_request *request;
    struct topic *topic; /* NULL: only the status of all */
    uint64_t status_seen;
    uint64_t cells_seen;
    const char *gone; /* why its program is not served, to be sent; static text; NULL: nothing */
    bool wants_full;
    bool asleep; /* suspended */
    bool ended;
    bool beat;               /* a comment is due */
    char head[64];           /* sent before `now`: its number */
    struct shared_text *now; /* being sent; NULL: none */
    size_t at;               /* of head and now together */
};

struct streams {
    struct http *http;
    uv_timer_t due;
    uv_timer_t beat;
    struct subscriber *list;
    size_t n;
    struct topic *topics;
    uint64_t last_no;
    char epoch[20];
    struct shared_text *status;
    uint64_t status_no;
    bool stale; /* something changed since the last rendering */
    bool armed; /* `due` runs */
    bool closed;
};

/* ---- rendering ---- */

static void render_status(struct streams *s)
{
    struct http *h = s->http;
    struct rpc_request request = {.method = RPC_STATUS};
    struct server_call call = {.reader = true};
    cJSON *result = NULL;
    struct err err;
    struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, "event: status\ndata: ");
    if (h->handler.request(h->handler.ctx, &call, &request, &result, &err) == 0 &&
        json_line(result, &text, &err) == 0) {
        strbuf_adds(&text, "\n\n");
        shared_text_unref(s->status);
        s->status = shared_text_make(&text);
        s->status_no = ++s->last_no;
    }
    cJSON_Delete(result);
    strbuf_release(&text);
}

/* What changed for those who watch. */
static void refresh(struct streams *s)
{
    s->stale = false;
    render_status(s);
    for (struct topic *t = s->topics; t != NULL; t = t->next) {
        if (t->n_watchers > 0) {
            topic_refresh(t, s->http->shell, &s->last_no);
        }
    }
}

/* ---- one tab ---- */

static void take(struct subscriber *sub, struct shared_text *text, uint64_t no)
{
    sub->now = text;
    sub->at = 0;
    sub->head[0] = '\0';
    if (no != 0) {
        (void)snprintf(sub->head, sizeof(sub->head), "id: %s.%u-%llu\n", sub->streams->epoch,
                       sub->topic == NULL ? 0 : sub->topic->program, (unsigned long long)no);
    }
}

static struct shared_text *text_of(const char *words)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, words);
    return shared_text_make(&text);
}

static struct shared_text *gone_text(const char *why)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "event: gone\ndata: {\"why\":\"%s\"}\n\n", why);
    return shared_text_make(&text);
}

/* Whether there is a message for it: as next_message(), which takes it. */
static bool has_message(const struct subscriber *sub)
{
    const struct streams *s = sub->streams;
    uint64_t no = 0;
    if (sub->now != NULL || sub->beat || sub->ended || sub->gone != NULL || s->http->closed) {
        return true;
    }
    if (s->status != NULL && s->status_no > sub->status_seen) {
        return true;
    }
    return sub->topic != NULL && (sub->wants_full || sub->topic->gone ||
                                  ring_next(&sub->topic->ring, sub->cells_seen, &no) != NULL);
}

static void leave_topic(struct subscriber *sub)
{
    if (sub->topic != NULL) {
        sub->topic->n_watchers--;
        sub->topic = NULL;
    }
    sub->wants_full = false;
}

/* The message of its program that comes next, borrowed; NULL: none. */
static struct shared_text *next_cells(struct subscriber *sub, uint64_t *no)
{
    struct streams *s = sub->streams;
    struct topic *t = sub->topic;
    if (t == NULL) {
        return NULL;
    }
    if (!sub->wants_full && !ring_reaches(&t->ring, sub->cells_seen)) {
        sub->wants_full = true; /* it was too slow */
    }
    if (sub->wants_full) {
        return topic_full(t, s->http->shell, &s->last_no, no);
    }
    return ring_next(&t->ring, sub->cells_seen, no);
}

/* The lowest number first. False: there is nothing to send. */
static bool next_message(struct subscriber *sub)
{
    struct streams *s = sub->streams;
    uint64_t cells_no = 0;
    if (sub->topic != NULL && sub->topic->gone) {
        sub->gone = sub->topic->damaged ? "damaged" : "removed";
        leave_topic(sub);
    }
    if (sub->gone != NULL) {
        take(sub, gone_text(sub->gone), 0);
        sub->gone = NULL;
        return true;
    }
    struct shared_text *cells = next_cells(sub, &cells_no);
    const bool status = s->status != NULL && s->status_no > sub->status_seen;
    if (status && (cells == NULL || s->status_no < cells_no)) {
        sub->status_seen = s->status_no;
        /* while all cells are still to come, its number would say that they have come */
        take(sub, shared_text_ref(s->status), sub->wants_full ? 0 : s->status_no);
        return true;
    }
    if (cells != NULL) {
        sub->wants_full = false;
        sub->cells_seen = cells_no;
        take(sub, shared_text_ref(cells), cells_no);
        return true;
    }
    if (sub->beat) {
        sub->beat = false;
        take(sub, text_of(":\n\n"), 0);
        return true;
    }
    return false;
}

/* Copies what fits of the message that is being sent. */
static size_t copy_message(struct subscriber *sub, char *buf, size_t max)
{
    const size_t n_head = strlen(sub->head);
    const bool in_head = sub->at < n_head;
    const char *from = in_head ? sub->head + sub->at : sub->now->data + (sub->at - n_head);
    size_t n = in_head ? n_head - sub->at : sub->now->len - (sub->at - n_head);
    n = n < max ? n : max;
    memcpy(buf, from, n);
    sub->at += n;
    if (sub->at == n_head + sub->now->len) {
        shared_text_unref(sub->now);
        sub->now = NULL;
    }
    return n;
}

/* libmicrohttpd asks for up to `max` bytes, and writes them at once: it is given everything that
 * there is, because what costs is the number of writes. */
static ssize_t on_read(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct subscriber *sub = cls;
    size_t n = 0;
    (void)pos;
    if (sub->streams->http->closed || (sub->now == NULL && sub->ended)) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    while (n < max && (sub->now != NULL || next_message(sub))) {
        n += copy_message(sub, buf + n, max - n);
    }
    if (n == 0) {
        sub->asleep = true;
        MHD_suspend_connection(sub->request->connection);
    }
    return (ssize_t)n;
}

/* Resumes every tab that has something to send. */
static void wake(struct streams *s)
{
    bool any = false;
    for (struct subscriber *sub = s->list; sub != NULL; sub = sub->next) {
        if (sub->asleep && has_message(sub)) {
            sub->asleep = false;
            any = true;
            MHD_resume_connection(sub->request->connection);
        }
    }
    if (any) {
        http_turn(s->http);
    }
}

/* ---- time ---- */

/* However many tabs and programs there are, workers come first. */
static uint64_t rest_ms(int64_t took_ns)
{
    const int64_t rest = took_ns * REST / 1000000;
    return rest < EVERY_MS ? EVERY_MS : rest > REST_MAX_MS ? REST_MAX_MS : (uint64_t)rest;
}

static void on_due(uv_timer_t *timer)
{
    struct streams *s = timer->data;
    s->armed = false;
    if (s->n > 0 && s->stale) {
        const int64_t began = clock_mono_ns();
        refresh(s);
        wake(s);
        s->armed = true; /* nothing sooner than this */
        (void)uv_timer_start(&s->due, on_due, rest_ms(clock_mono_ns() - began), 0);
    }
}

void streams_note_change(struct streams *s)
{
    s->stale = true;
    if (s->n > 0 && !s->armed && !s->closed) {
        s->armed = true;
        (void)uv_timer_start(&s->due, on_due, EVERY_MS, 0);
    }
}

/* Also what changes without a row of a program, times among it. */
static void on_beat(uv_timer_t *timer)
{
    struct streams *s = timer->data;
    for (struct subscriber *sub = s->list; sub != NULL; sub = sub->next) {
        sub->beat = true;
    }
    refresh(s);
    wake(s);
}

/* ---- coming and going ---- */

static struct topic *find_topic(struct streams *s, const struct hosted *h)
{
    for (struct topic *t = s->topics; t != NULL; t = t->next) {
        if (t->program == h->no) {
            return t;
        }
    }
    struct topic *t = topic_create(h, ++s->last_no);
    t->next = s->topics;
    s->topics = t;
    return t;
}

/* From where it goes on, when its last number is of this daemon, of this program, and not too
 * old. */
static void set_start(struct subscriber *sub, const char *last)
{
    const struct streams *s = sub->streams;
    char epoch[40];
    uint64_t no = 0;
    (void)snprintf(epoch, sizeof(epoch), "%s.%u", s->epoch,
                   sub->topic == NULL ? 0 : sub->topic->program);
    sub->wants_full = sub->topic != NULL;
    if (last != NULL && guard_event_id(last, epoch, &no) && no <= s->last_no) {
        sub->status_seen = no;
        sub->cells_seen = no;
        sub->wants_full = sub->topic != NULL && !ring_reaches(&sub->topic->ring, no);
    }
}

void streams_add(struct page_request *r, const cJSON *params)
{
    struct streams *s = r->http->streams;
    struct hosted *h = NULL;
    struct err err;
    const char *last = NULL;
    if (s->n >= HTTP_STREAMS_MAX) {
        reply_refuse(&r->reply, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
                     "too many streams are open: close some of the page's tabs");
        r->ready = true;
        return;
    }
    const char *gone = NULL;
    if (json_member(params, "program") != NULL &&
        answer_find_program(r->http->shell, params, &h, &err) != 0) {
        if (err.code == ERR_USAGE) { /* several have the name */
            reply_error(&r->reply, &err);
            r->ready = true;
            return;
        }
        gone = answer_is_unloaded(r->http->shell, params) ? "damaged" : "unknown";
    }
    if (json_opt_string(params, "last", &last, &err) != 0 || last == NULL) {
        last = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Last-Event-ID");
    }
    struct subscriber *sub = xcalloc(1, sizeof(*sub));
    *sub = (struct subscriber){.streams = s, .request = r, .next = s->list, .gone = gone};
    sub->topic = h == NULL ? NULL : find_topic(s, h);
    set_start(sub, last);
    if (sub->topic != NULL) {
        sub->topic->n_watchers++;
    }
    if (s->list != NULL) {
        s->list->previous = sub;
    }
    s->list = sub;
    if (s->n++ == 0) {
        (void)uv_timer_start(&s->beat, on_beat, BEAT_MS, BEAT_MS);
    }
    take(sub, text_of("retry: 2000\n\n"), 0);
    r->subscriber = sub;
    if (s->status == NULL || s->stale) {
        refresh(s);
    } else if (sub->topic != NULL) {
        topic_refresh(sub->topic, r->http->shell, &s->last_no); /* what it missed while it slept */
    }
    wake(s);
}

enum MHD_Result streams_queue(struct subscriber *sub)
{
    struct page_request *r = sub->request;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, sub, NULL);
    if (response == NULL) {
        return MHD_NO;
    }
    r->reply.status = MHD_HTTP_OK;
    r->reply.type = "text/event-stream; charset=utf-8";
    reply_put_headers(r, response);
    /* the end of a stream is the end of its connection: the tab opens another one */
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    const enum MHD_Result result = MHD_queue_response(r->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

void streams_drop(struct subscriber *sub)
{
    sub->ended = true;
    if (sub->asleep) {
        sub->asleep = false;
        MHD_resume_connection(sub->request->connection);
    }
}

void streams_drop_all(struct streams *s)
{
    for (struct subscriber *sub = s->list; sub != NULL; sub = sub->next) {
        streams_drop(sub);
    }
}

void streams_remove(struct subscriber *sub)
{
    struct streams *s = sub->streams;
    *(sub->previous != NULL ? &sub->previous->next : &s->list) = sub->next;
    if (sub->next != NULL) {
        sub->next->previous = sub->previous;
    }
    s->n--;
    leave_topic(sub);
    if (s->n == 0 && !s->closed) {
        (void)uv_timer_stop(&s->beat);
    }
    shared_text_unref(sub->now);
    sub->request->subscriber = NULL;
    free(sub);
}

/* ---- start and stop ---- */

struct streams *streams_create(struct http *h)
{
    struct streams *s = xcalloc(1, sizeof(*s));
    uint64_t seed = 0;
    s->http = h;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        seed = (uint64_t)clock_wall().ms;
    }
    (void)snprintf(s->epoch, sizeof(s->epoch), "%016llx", (unsigned long long)seed);
    (void)uv_timer_init(&h->shell->loop, &s->due);
    (void)uv_timer_init(&h->shell->loop, &s->beat);
    s->due.data = s->beat.data = s;
    s->stale = true;
    return s;
}

void streams_close(struct streams *s)
{
    if (!s->closed) {
        s->closed = true;
        uv_close((uv_handle_t *)&s->due, NULL);
        uv_close((uv_handle_t *)&s->beat, NULL);
    }
}

void streams_free(struct streams *s)
{
    if (s == NULL) {
        return;
    }
    assert(s->list == NULL);
    for (struct topic *t = s->topics, *next; t != NULL; t = next) {
        next = t->next;
        topic_free(t);
    }
    shared_text_unref(s->status);
    free(s);
}

size_t streams_count(const struct streams *s)
{
    return s->n;
}
