/* The heartbeat of the daemon that serves. It is written on the loop, so that it also says that the
 * loop turns. */
#include "daemon/tenure/keeper.h"

#include "base/log.h"
#include "base/xalloc.h"

struct keeper {
    char *state;
    struct tenure own;
    void (*lost)(void *ctx, const struct err *why);
    void *ctx;
    uv_timer_t beat;
    bool failing; /* the last renewal failed, which was logged */
};

int keeper_check(struct keeper *k, struct err *err)
{
    int rc = tenure_check(k->state, &k->own, err);
    if (rc == ERR_MOVED) {
        k->lost(k->ctx, err);
    }
    return rc;
}

static void on_beat(uv_timer_t *timer)
{
    struct keeper *k = timer->data;
    struct err err;
    int rc = keeper_check(k, &err);
    if (rc == ERR_MOVED) {
        return;
    }
    rc = rc != 0 ? rc : tenure_renew(k->state, &k->own, &err);
    if (rc != 0 && !k->failing) {
        log_warn("the heartbeat of this daemon cannot be written: %s", err.msg);
    }
    k->failing = rc != 0;
}

struct keeper *keeper_create(uv_loop_t *loop, const char *state, const struct tenure *own,
                             void (*lost)(void *ctx, const struct err *why), void *ctx)
{
    struct keeper *k = xcalloc(1, sizeof(*k));
    k->state = xstrdup(state);
    k->own = *own;
    k->lost = lost;
    k->ctx = ctx;
    (void)uv_timer_init(loop, &k->beat);
    k->beat.data = k;
    (void)uv_timer_start(&k->beat, on_beat, TENURE_BEAT_MS, TENURE_BEAT_MS);
    return k;
}

void keeper_close(struct keeper *k)
{
    uv_close((uv_handle_t *)&k->beat, NULL);
}

void keeper_free(struct keeper *k)
{
    struct err err;
    if (k == NULL) {
        return;
    }
    k->own.released = true;
    if (keeper_check(k, &err) == 0 && tenure_renew(k->state, &k->own, &err) != 0) {
        log_warn("the end of this daemon cannot be noted: %s", err.msg);
    }
    free(k->state);
    free(k);
}
