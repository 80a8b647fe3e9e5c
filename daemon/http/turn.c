/*
 * What every file here may call: http_turn() lets libmicrohttpd work and sets the timer to its next
 * timeout, requests are found and resumed, and links are listed, shut down and shed. It calls none
 * of them.
 */
#include <assert.h>
#include <sys/socket.h>

#include "base/xalloc.h"
#include "daemon/http/internal.h"

#define TIMEOUT_MAX ((uint64_t)60 * 60 * 1000)

/* ---- turns ---- */

static void on_timer(uv_timer_t *timer)
{
    http_turn(timer->data);
}

void http_turn(struct http *h)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;
    if (h->closed || h->running) {
        return;
    }
    h->running = true;
    (void)MHD_run(h->mhd);
    h->running = false;
    if (MHD_get_timeout(h->mhd, &ms) != MHD_YES) {
        (void)uv_timer_stop(&h->timer);
    } else {
        (void)uv_timer_start(&h->timer, on_timer, ms < TIMEOUT_MAX ? ms : TIMEOUT_MAX, 0);
    }
}

void http_resume(struct page_request *r)
{
    assert(r->waiting);
    r->waiting = false;
    MHD_resume_connection(r->connection);
    http_turn(r->http);
}

struct page_request *http_find(const struct http *h, uint64_t id)
{
    for (struct page_request *r = h->requests; r != NULL; r = r->next) {
        if (r->id == id) {
            return r;
        }
    }
    return NULL;
}

/* ---- links ---- */

void link_expect(struct link *l, int64_t within_ms)
{
    l->deadline = clock_mono().ms + within_ms;
}

void link_shut(struct link *l)
{
    l->shut = true;
    (void)shutdown(l->fd, SHUT_RDWR);
}

void link_notify(void *cls, struct MHD_Connection *connection, void **context,
                 enum MHD_ConnectionNotificationCode code)
{
    struct http *h = cls;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct link *l = xcalloc(1, sizeof(*l));
        *l = (struct link){.http = h, .fd = info->connect_fd, .next = h->links};
        l->waits_since = clock_mono().ms;
        link_expect(l, HTTP_HEADER_MS);
        if (h->links != NULL) {
            h->links->previous = l;
        }
        h->links = l;
        h->n_links++;
        *context = l;
        return;
    }
    struct link *l = *context;
    if (l == NULL) {
        return;
    }
    *(l->previous != NULL ? &l->previous->next : &h->links) = l->next;
    if (l->next != NULL) {
        l->next->previous = l->previous;
    }
    h->n_links--;
    *context = NULL;
    free(l);
}

/* Makes room for one more: the link that has been silent for the longest is shut down. False: all
 * of them are being answered. */
bool http_make_room(struct http *h)
{
    struct link *oldest = NULL;
    if (h->n_links < HTTP_LINKS_MAX) {
        return true;
    }
    for (struct link *l = h->links; l != NULL; l = l->next) {
        if (!l->in_request && !l->shut &&
            (oldest == NULL || l->waits_since <= oldest->waits_since)) {
            oldest = l;
        }
    }
    h->n_shed++;
    if (oldest == NULL) {
        return false;
    }
    link_shut(oldest);
    http_turn(h);
    return h->n_links < HTTP_LINKS_MAX;
}
