/*
 * Runs the user's command for one event after another. The object is made when the event happens
 * and handed over as a file in memory, so that neither a slow command nor its closed standard input
 * can block the loop.
 */
#include "daemon/shell/notify.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "prereg/program/verdict_kind.h"

struct notify {
    struct shell *shell;
    char *waiting[NOTIFY_QUEUE_MAX];
    size_t n;
    uint64_t n_dropped;
    uv_process_t process;
    uv_timer_t limit;
    unsigned n_open; /* handles of the command that runs */
    bool late;
    bool closed;
};

static void start_next(struct notify *n);

static void notify_free(struct notify *n)
{
    for (size_t i = 0; i < n->n; i++) {
        free(n->waiting[i]);
    }
    free(n);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct notify *n = handle->data;
    if (--n->n_open > 0) {
        return;
    }
    if (n->closed) {
        notify_free(n);
    } else {
        start_next(n);
    }
}

static void close_handles(struct notify *n)
{
    uv_close((uv_handle_t *)&n->process, on_handle_closed);
    uv_close((uv_handle_t *)&n->limit, on_handle_closed);
}

static void on_exit_of(uv_process_t *process, int64_t code, int sig)
{
    struct notify *n = process->data;
    if (n->late) {
        log_warn("[notify] command was ended after %d s", NOTIFY_LIMIT_MS / 1000);
    } else if (code != 0 || sig != 0) {
        log_warn("[notify] command ended with %s %lld", sig != 0 ? "signal" : "code",
                 sig != 0 ? (long long)sig : (long long)code);
    }
    if (!n->closed) {
        close_handles(n);
    }
}

static void on_limit(uv_timer_t *timer)
{
    struct notify *n = timer->data;
    n->late = true;
    (void)kill(-n->process.pid, SIGKILL); /* and what it started */
}

/* Both handles are open afterwards, also when the command does not start. */
static void spawn(struct notify *n, int fd)
{
    uv_stdio_container_t io[3] = {
        {.flags = UV_INHERIT_FD, .data.fd = fd}, {.flags = UV_IGNORE}, {.flags = UV_IGNORE}};
    uv_process_options_t options = {.exit_cb = on_exit_of,
                                    .file = n->shell->settings.notify[0],
                                    .args = n->shell->settings.notify,
                                    .cwd = "/",
                                    .flags = UV_PROCESS_DETACHED, /* a group of its own */
                                    .stdio_count = 3,
                                    .stdio = io};
    n->late = false;
    n->process.data = n->limit.data = n;
    (void)uv_timer_init(&n->shell->loop, &n->limit);
    n->n_open = 2;
    const int rc = uv_spawn(&n->shell->loop, &n->process, &options);
    if (rc != 0) {
        log_warn("[notify] command %s: %s", n->shell->settings.notify[0], uv_strerror(rc));
        close_handles(n);
    } else {
        (void)uv_timer_start(&n->limit, on_limit, NOTIFY_LIMIT_MS, 0);
    }
}

static void start_next(struct notify *n)
{
    struct err err;
    int fd = -1;
    while (n->n > 0 && n->n_open == 0) {
        char *text = n->waiting[0];
        memmove(n->waiting, n->waiting + 1, --n->n * sizeof(n->waiting[0]));
        if (file_in_memory("preregd-notify", text, strlen(text), &fd, &err) != 0) {
            log_warn("[notify]: %s", err.msg);
        } else {
            spawn(n, fd);
            (void)close(fd);
        }
        free(text);
    }
}

/* Takes the event over. */
static void push(struct notify *n, cJSON *event)
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    char now[WALL_TEXT_SIZE];
    char host[256] = "";
    clock_wall_text(clock_wall(), now);
    (void)gethostname(host, sizeof(host) - 1);
    json_put_string(event, "time", now);
    json_put_string(event, "host", host);
    json_put_string(event, "state", n->shell->state);
    json_put_int(event, "dropped", (int64_t)n->n_dropped);
    if (n->n == NOTIFY_QUEUE_MAX) {
        n->n_dropped++;
    } else if (json_line(event, &text, &err) == 0) {
        strbuf_addc(&text, '\n');
        n->n_dropped = 0;
        n->waiting[n->n++] = strbuf_detach(&text);
        start_next(n);
    }
    strbuf_release(&text);
    cJSON_Delete(event);
}

static cJSON *event_of(const char *kind, const struct hosted *h)
{
    cJSON *o = json_object();
    json_put_int(o, "schema", 1);
    json_put_string(o, "event", kind);
    json_put_string(o, "program", h == NULL ? NULL : h->id);
    json_put_string(o, "name", h == NULL ? NULL : h->bundle->program->name);
    return o;
}

static void push_task(struct notify *n, const char *kind, const struct hosted *h,
                      const struct state_row *r, enum cause cause)
{
    cJSON *o = event_of(kind, h);
    char *name = hosted_task_name(h, r->task);
    json_put_string(o, "task", name);
    json_put_string(o, "cause", cause_name(cause));
    free(name);
    push(n, o);
}

static void push_paused(struct notify *n, const struct hosted *h)
{
    const char *by = hosted_paused_by(h);
    const bool apparatus = by != NULL && strcmp(by, "apparatus") == 0;
    cJSON *o = event_of(apparatus ? "apparatus" : "paused", h);
    json_put_string(o, "paused_by", by);
    push(n, o);
}

void notify_row(struct shell *sh, const struct hosted *h, const struct state_row *r)
{
    struct notify *n = sh->notify;
    if (n == NULL) {
        return;
    }
    if (r->kind == ROW_VERDICT) {
        cJSON *o = event_of("verdict", h);
        verdict_kind_put(o, h->status.outcome);
        push(n, o);
    } else if (r->kind == ROW_PAUSED) {
        push_paused(n, h);
    } else if (r->kind == ROW_ATTEMPT_ENDED && r->attempt.cause == CAUSE_HANG) {
        push_task(n, "hang", h, r, CAUSE_HANG);
    }
    if ((r->kind == ROW_ATTEMPT_ENDED || r->kind == ROW_TASK_ENDED) &&
        r->after.state == TASK_BLOCKED) {
        push_task(n, "blocked", h, r, r->after.cause);
    }
}

void notify_crashed(struct shell *sh)
{
    if (sh->notify != NULL) {
        push(sh->notify, event_of("started_after_crash", NULL));
    }
}

void notify_open(struct shell *sh)
{
    if (sh->settings.notify != NULL) {
        sh->notify = xcalloc(1, sizeof(*sh->notify));
        sh->notify->shell = sh;
    }
}

void notify_close(struct shell *sh)
{
    struct notify *n = sh->notify;
    sh->notify = NULL;
    if (n == NULL) {
        return;
    }
    n->closed = true;
    if (n->n > 0 || n->n_dropped > 0) {
        log_warn("[notify]: %llu events are not told, because the daemon stops",
                 (unsigned long long)(n->n + n->n_dropped));
    }
    if (n->n_open == 0) {
        notify_free(n);
    } else if (uv_is_closing((const uv_handle_t *)&n->process) == 0) {
        close_handles(n);
    }
}
