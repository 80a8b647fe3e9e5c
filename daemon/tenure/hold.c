/* The heartbeat of the daemon that serves. It is written on the loop, so that it also says that the
 * loop turns. */
#include "daemon/tenure/hold.h"

#include "base/log.h"
#include "base/xalloc.h"

struct tenure_hold {
    char *state;
    struct tenure own;
    void (*lost)(void *ctx, const struct err *why);
    void *ctx;
    uv_timer_t beat;
    bool failing; /* the last renewal failed, which was logged */
};

int tenure_hold_check(struct tenure_hold *h, struct err *err)
{
    int rc = tenure_check(h->state, &h->own, err);
    if (rc == ERR_MOVED) {
        h->lost(h->ctx, err);
    }
    return rc;
}

static void on_beat(uv_timer_t *timer)
{
    struct tenure_hold *h = timer->data;
    struct err err;
    int rc = tenure_hold_check(h, &err);
    if (rc == ERR_MOVED) {
        return;
    }
    if (rc == 0) {
        rc = tenure_renew(h->state, &h->own, &err);
    }
    if (rc != 0 && !h->failing) {
        log_warn("the heartbeat of this daemon cannot be written: %s", err.msg);
    }
    h->failing = rc != 0;
}

struct tenure_hold *tenure_hold_create(uv_loop_t *loop, const char *state, const struct tenure *own,
                                       void (*lost)(void *ctx, const struct err *why), void *ctx)
{
    struct tenure_hold *h = xcalloc(1, sizeof(*h));
    h->state = xstrdup(state);
    h->own = *own;
    h->lost = lost;
    h->ctx = ctx;
    (void)uv_timer_init(loop, &h->beat);
    h->beat.data = h;
    (void)uv_timer_start(&h->beat, on_beat, TENURE_BEAT_MS, TENURE_BEAT_MS);
    return h;
}

void tenure_hold_close(struct tenure_hold *h)
{
    uv_close((uv_handle_t *)&h->beat, NULL);
}

void tenure_hold_free(struct tenure_hold *h)
{
    struct err err;
    if (h == NULL) {
        return;
    }
    h->own.released = true;
    if (tenure_hold_check(h, &err) == 0 && tenure_renew(h->state, &h->own, &err) != 0) {
        log_warn("the end of this daemon cannot be noted: %s", err.msg);
    }
    free(h->state);
    free(h);
}
