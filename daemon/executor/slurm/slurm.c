/*
 * The Slurm executor's shell around the book: every event is stepped through it, and what it wants
 * done is done here, in commands.c and in file_jobs.c (slurm.h). Attempts are kept by key from
 * their start or first probe until their end was reported.
 */
#include "daemon/executor/slurm/slurm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/executor/slurm/slurm_parts.h"
#include "daemon/executor/slurm/states.h"

/* ---- ends and reports ---- */

static void attempt_free(struct slurm *x, struct slurm_attempt *a)
{
    key_map_remove(&x->attempts, &a->key);
    x->shapes.list[a->shape]->n_attempts--;
    strbuf_release(&a->spec);
    free(a->folder);
    free(a);
}

static void slurm_report_end(struct slurm *x, const struct attempt_key *key,
                             const struct attempt_end *end)
{
    struct slurm_attempt *a = key_map_get(&x->attempts, key);
    if (a != NULL) {
        attempt_free(x, a);
        x->base.listener.ended(x->base.listener.ctx, key, end);
    }
}

static void report_health(struct slurm *x, const struct slurm_act *act)
{
    static const enum core_health of_ours[] = {[SLURM_ALIVE] = HEALTH_ALIVE,
                                               [SLURM_QUEUED] = HEALTH_QUEUED,
                                               [SLURM_UNSURE] = HEALTH_UNKNOWN};
    x->base.listener.probed(x->base.listener.ctx, &act->key, of_ours[act->health]);
}

/* ---- stepping ---- */

static void perform(struct slurm *x, const struct slurm_act *act)
{
    const struct executor_listener *l = &x->base.listener;
    switch (act->kind) {
    case SLURM_ACT_TEST: command_test(x, act); break;
    case SLURM_ACT_SUBMIT: file_job_submit(x, act); break;
    case SLURM_ACT_QUEUE:
    case SLURM_ACT_NAMES: command_ask(x, act); break;
    case SLURM_ACT_ACCOUNTING: command_account(x, act); break;
    case SLURM_ACT_CANCEL: command_cancel(x, act); break;
    case SLURM_ACT_LOOK: file_job_look(x, act); break;
    case SLURM_ACT_BEGAN: l->began(l->ctx, &act->key); break;
    case SLURM_ACT_PROBED: report_health(x, act); break;
    case SLURM_ACT_ENDED: file_job_end(x, act); break;
    case SLURM_ACT_FORGET: file_job_forget(x, act); break;
    case SLURM_ACT_FULL: l->full(l->ctx, EXECUTOR_SLURM, true); break;
    case SLURM_ACT_ROOM: l->full(l->ctx, EXECUTOR_SLURM, false); break;
    case SLURM_ACT_NOTE: log_info("slurm: %s", act->text); break;
    case SLURM_ACT_NR: break;
    }
}

static void slurm_step(struct slurm *x, struct slurm_event *ev);

static void on_timer(uv_timer_t *timer)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_TIMER};
    slurm_step(timer->data, &ev);
}

static void arm(struct slurm *x)
{
    const int64_t due = slurm_book_next_ms(x->book);
    const int64_t now = clock_mono().ms;
    if (due == INT64_MAX) {
        (void)uv_timer_stop(&x->timer);
    } else {
        uv_update_time(x->loop);
        (void)uv_timer_start(&x->timer, on_timer, due > now ? (uint64_t)(due - now) : 0, 0);
    }
}

/* Acts may step again (a listener starts the next attempt): their acts then belong to a list of
 * their own, so each step has one. */
static void slurm_step(struct slurm *x, struct slurm_event *ev)
{
    struct slurm_out out;
    if (x->closed) {
        return;
    }
    ev->mono = clock_mono();
    slurm_out_init(&out);
    slurm_book_step(x->book, ev, &out);
    for (size_t i = 0; i < out.n && !x->closed; i++) {
        perform(x, &out.acts[i]);
    }
    slurm_out_release(&out);
    if (!x->closed) {
        arm(x);
    }
}

/* ---- the calls ---- */

static struct slurm_attempt *attempt_new(struct slurm *x, const struct attempt_place *place)
{
    struct slurm_attempt *a = xcalloc(1, sizeof(*a));
    a->key = place->key;
    memcpy(a->id, place->id, sizeof(a->id));
    a->folder = xstrdup(place->folder);
    a->spec = (struct strbuf)STRBUF_INIT;
    key_map_put(&x->attempts, &a->key, a);
    return a;
}

static bool knows_program(const struct slurm *x, const char *folder)
{
    for (size_t i = 0; i < x->shapes.n; i++) {
        if (strcmp(x->shapes.list[i]->folder, folder) == 0) {
            return true;
        }
    }
    return false;
}

/* What it asks for, and what follows from that for all: which clusters to ask, how patient to be.
 */
static void give_shape(struct slurm *x, struct slurm_attempt *a, const struct attempt_place *place)
{
    const bool is_known = knows_program(x, place->program_folder);
    a->shape = slurm_shape_number(&x->shapes, place, x->shim_path);
    if (!is_known) {
        file_job_sweep(x, place->program_folder);
    }
    a->array = place->program->run.slurm.array;
    struct slurm_shape *s = x->shapes.list[a->shape];
    int64_t grace_ms = s->grace_ms;
    int64_t poll_ms = s->poll_ms;
    s->n_attempts++;
    for (size_t i = 0; i < x->shapes.n; i++) {
        const struct slurm_shape *other = x->shapes.list[i];
        if (other->n_attempts > 0) { /* what no attempt has any more decides nothing */
            grace_ms = other->grace_ms > grace_ms ? other->grace_ms : grace_ms;
            poll_ms = other->poll_ms < poll_ms ? other->poll_ms : poll_ms;
        }
    }
    slurm_book_set_grace(x->book, grace_ms);
    slurm_book_set_round(x->book, poll_ms);
    commands_add_clusters(x, s->request.clusters);
    command_config(x, s->request.clusters);
}

static int slurm_start(struct executor *base, const struct attempt_place *place, struct err *err)
{
    struct slurm *x = (struct slurm *)base;
    (void)err;
    struct slurm_attempt *a = attempt_new(x, place);
    give_shape(x, a, place);
    a->has_spec = true;
    strbuf_add(&a->spec, place->spec->buf, place->spec->len);
    struct slurm_event ev = {.kind = SLURM_EVENT_START, .key = a->key};
    ev.start.id = a->id;
    ev.start.shape = a->shape;
    ev.start.array = a->array;
    slurm_step(x, &ev);
    return 0;
}

/* Of an earlier daemon's attempt the files say first whether it was ever submitted. */
static void slurm_probe(struct executor *base, const struct attempt_place *place)
{
    struct slurm *x = (struct slurm *)base;
    struct slurm_attempt *a = key_map_get(&x->attempts, &place->key);
    struct slurm_view view;
    if (a == NULL) {
        a = attempt_new(x, place);
        give_shape(x, a, place);
    }
    if (a->ending) {
        return; /* its end is the answer */
    }
    if (slurm_book_view(x->book, &place->key, &view)) {
        file_job_probe_with(x, a, SLURM_HINT_NONE, NULL, SLURM_INDEX_NONE);
    } else {
        file_job_probe(x, a);
    }
}

static void slurm_terminate(struct executor *base, const struct attempt_key *key)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_TERMINATE, .key = *key};
    slurm_step((struct slurm *)base, &ev);
}

static void slurm_kill(struct executor *base, const struct attempt_key *key)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_KILL, .key = *key};
    slurm_step((struct slurm *)base, &ev);
}

static size_t slurm_ending(const struct executor *base)
{
    return slurm_book_count_ending(((const struct slurm *)base)->book);
}

static bool slurm_explain(const struct executor *base, const struct attempt_key *key, bool brief,
                          struct strbuf *out)
{
    const struct slurm *x = (const struct slurm *)base;
    struct slurm_view v;
    if (!slurm_book_view(x->book, key, &v)) {
        return false;
    }
    strbuf_adds(out, v.state);
    const char *words = slurm_reason_in_words(v.reason); /* "": Slurm gives none */
    if (v.reason[0] != '\0' && (words == NULL || words[0] != '\0')) {
        strbuf_addf(out, ", %s%s%s%s", v.reason, words == NULL ? "" : " (",
                    words == NULL ? "" : words, words == NULL ? "" : ")");
    }
    if (brief) {
        return true;
    }
    if (v.node[0] != '\0') {
        strbuf_addf(out, ", on %s", v.node);
    }
    if (v.name[0] != '\0' && v.index != SLURM_INDEX_NONE) {
        strbuf_addf(out, ", job %s index %u", v.name, v.index);
    } else if (v.name[0] != '\0') {
        strbuf_addf(out, ", job %s", v.name);
    }
    strbuf_adds(out, v.stale ? "; the queue has not answered lately" : "");
    return true;
}

static void on_timer_closed(uv_handle_t *handle)
{
    (void)handle; /* the executor is freed once the loop has run dry */
}

static void slurm_close(struct executor *base)
{
    struct slurm *x = (struct slurm *)base;
    if (x->closed) {
        return;
    }
    x->closed = true;
    uv_close((uv_handle_t *)&x->timer, on_timer_closed);
    commands_give_up(x);
}

static void slurm_free(struct executor *base)
{
    struct slurm *x = (struct slurm *)base;
    assert(x->n_jobs == 0);
    for (size_t i = 0; i < x->attempts.cap; i++) {
        struct slurm_attempt *a = x->attempts.slots[i].value;
        if (a != NULL) {
            strbuf_release(&a->spec);
            free(a->folder);
            free(a);
        }
    }
    key_map_release(&x->attempts);
    commands_free(x);
    slurm_shapes_release(&x->shapes);
    slurm_book_free(x->book);
    free(x->shim_path);
    free(x);
}

struct executor *slurm_create(uv_loop_t *loop, const char *shim_path, uint64_t seed,
                              const struct executor_listener *listener)
{
    static const struct executor_ops ops = {.start = slurm_start,
                                            .probe = slurm_probe,
                                            .terminate = slurm_terminate,
                                            .kill = slurm_kill,
                                            .ending = slurm_ending,
                                            .explain = slurm_explain,
                                            .close = slurm_close,
                                            .free = slurm_free};
    struct slurm *x = xcalloc(1, sizeof(*x));
    struct slurm_book_config config;
    x->base = (struct executor){.ops = &ops, .listener = *listener};
    x->loop = loop;
    x->step = slurm_step;
    x->report_end = slurm_report_end;
    x->shim_path = xstrdup(shim_path);
    slurm_book_config_default(&config);
    config.seed = seed;
    x->book = slurm_book_create(&config);
    (void)uv_timer_init(loop, &x->timer);
    x->timer.data = x;
    return &x->base;
}
