/*
 * The Slurm executor's shell around the book: every event is stepped through it, and what it wants
 * done is done here (slurm.h). Attempts are kept by key from their start or first probe until their
 * end was reported. Jobs copy what they need, so an attempt may end while one is under way.
 */
#include "daemon/executor/slurm/slurm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/executor/job.h"
#include "daemon/executor/key_map.h"
#include "daemon/executor/shared_work.h"
#include "daemon/executor/slurm/book.h"
#include "daemon/executor/slurm/client.h"
#include "daemon/executor/slurm/command.h"
#include "daemon/executor/slurm/folder.h"
#include "daemon/executor/slurm/parse.h"
#include "daemon/executor/slurm/shape.h"

#define LONG_AGO_S  (30 * 24 * 60 * 60) /* of jobs that an earlier daemon submitted */
#define JOBS        "jobs"              /* beside cells/ */
#define TEST_SCRIPT "#!/bin/sh\nexit 0\n"

extern char **environ;

/* The commands that may be under way, one of each. */
enum call_kind {
    CALL_TEST,
    CALL_SUBMIT,
    CALL_QUEUE,
    CALL_ACCOUNTING,
    CALL_CANCEL,
    CALL_CONFIG,
    CALL_NR
};

struct slurm_attempt {
    struct attempt_key key;
    char id[UUID_TEXT_SIZE];
    char *folder; /* as the daemon names it */
    uint32_t shape;
    bool has_spec;      /* started by this daemon */
    bool array;         /* [run.slurm] array */
    bool hinting;       /* a job reads its `job` */
    struct strbuf spec; /* until it was written */
};

/* A command and what its answer is about. A question to several clusters is asked one after
 * another, and answered as one. */
struct call {
    struct slurm *owner;
    enum call_kind kind;
    struct slurm_call *running;
    char name[UUID_TEXT_SIZE]; /* SUBMIT, CANCEL: of the batch */
    char *names;               /* QUEUE, ACCOUNTING: NULL: all */
    char *since;
    uint32_t shape;
    size_t next_clusters; /* QUEUE, ACCOUNTING */
    bool failed;
    bool off; /* there is no accounting */
    struct strbuf text;
};

struct slurm {
    struct executor base;
    uv_loop_t *loop;
    uv_timer_t timer;
    char *shim_path;
    struct slurm_book *book;
    struct slurm_shapes shapes;
    struct key_map attempts;
    struct call *calls[CALL_NR];
    const char **clusters; /* of all shapes, each once; an element may be NULL: the default */
    size_t n_clusters;
    size_t cap_clusters;
    unsigned n_jobs; /* file jobs under way */
    bool configured; /* MaxArraySize was asked for */
    bool closed;
};

static void step(struct slurm *x, struct slurm_event *ev);

/* ---- commands ---- */

static char *const *environment_of(struct arena *a)
{
    return slurm_command_environment(a, environ);
}

static void call_free(struct call *c)
{
    strbuf_release(&c->text);
    free(c->names);
    free(c->since);
    free(c);
}

static struct call *call_new(struct slurm *x, enum call_kind kind)
{
    assert(x->calls[kind] == NULL); /* the book asks for one at a time */
    struct call *c = xcalloc(1, sizeof(*c));
    c->owner = x;
    c->kind = kind;
    c->text = (struct strbuf)STRBUF_INIT;
    x->calls[kind] = c;
    return c;
}

static void run(struct call *c, struct arena *a, char *const *argv, const char *input,
                slurm_reply_fn *done)
{
    c->running = slurm_call_start(c->owner->loop, argv, environment_of(a), input, done, c);
}

/* Takes the call out of its place, so that the book may ask for the next one at once. */
static void finish(struct call *c, struct slurm_event *ev)
{
    struct slurm *x = c->owner;
    x->calls[c->kind] = NULL;
    step(x, ev);
    call_free(c);
}

static enum slurm_submit_answer submit_answer(const struct slurm_reply *r, char *why, size_t size)
{
    slurm_parse_why(r->err->buf, r->err->len, why, size);
    if (!r->whole || r->code < 0) {
        return SLURM_SUBMIT_UNKNOWN;
    }
    switch (slurm_parse_refusal(r->err->buf, r->err->len)) {
    case SLURM_REFUSED_FULL: return SLURM_SUBMIT_FULL;
    case SLURM_REFUSED_NEVER: return SLURM_SUBMIT_NEVER;
    case SLURM_REFUSED_UNKNOWN:
    case SLURM_REFUSED_ABSENT:
    case SLURM_REFUSED_NO_ACCOUNTING: break;
    }
    return SLURM_SUBMIT_UNKNOWN;
}

static void on_tested(void *ctx, const struct slurm_reply *reply)
{
    struct call *c = ctx;
    char why[200] = "";
    struct slurm_event ev = {.kind = SLURM_EVENT_TESTED, .shape = c->shape};
    ev.submit = reply->whole && reply->code == 0 ? SLURM_SUBMIT_DONE
                                                 : submit_answer(reply, why, sizeof(why));
    ev.text = why;
    finish(c, &ev);
}

static void act_test(struct slurm *x, const struct slurm_act *act)
{
    struct call *c = call_new(x, CALL_TEST);
    const struct slurm_shape *s = x->shapes.list[act->shape];
    const struct slurm_submission submission = {.name = "preregd-test", .folder = "/"};
    struct arena a;
    arena_init(&a);
    c->shape = act->shape;
    run(c, &a, slurm_command_test(&a, &s->request, &submission), TEST_SCRIPT, on_tested);
    arena_release(&a);
}

static void on_submitted(void *ctx, const struct slurm_reply *reply)
{
    struct call *c = ctx;
    char why[200] = "";
    int64_t id = 0;
    struct slurm_event ev = {.kind = SLURM_EVENT_SUBMITTED, .name = c->name};
    const bool done = reply->whole && reply->code == 0 &&
                      slurm_parse_submitted(reply->out->buf, reply->out->len, &id);
    ev.submit = done ? SLURM_SUBMIT_DONE : submit_answer(reply, why, sizeof(why));
    ev.text = why;
    finish(c, &ev);
}

/* The files of the batch are there. */
static void submit(struct slurm *x, const char *name, const char *array, const char *exclude,
                   uint32_t shape)
{
    struct call *c = call_new(x, CALL_SUBMIT);
    const struct slurm_shape *s = x->shapes.list[shape];
    char *script = slurm_batch_script(s->jobs, name);
    const struct slurm_submission submission = {
        .name = name, .array = array, .exclude = exclude, .script = script, .folder = s->jobs};
    struct arena a;
    arena_init(&a);
    (void)snprintf(c->name, sizeof(c->name), "%s", name);
    run(c, &a, slurm_command_submit(&a, &s->request, &submission), NULL, on_submitted);
    arena_release(&a);
    free(script);
}

static void on_cancelled(void *ctx, const struct slurm_reply *reply)
{
    struct call *c = ctx;
    struct slurm_event ev = {.kind = SLURM_EVENT_CANCELLED, .name = c->name};
    (void)reply; /* whether it worked shows in the queue */
    finish(c, &ev);
}

static void act_cancel(struct slurm *x, const struct slurm_act *act)
{
    struct call *c = call_new(x, CALL_CANCEL);
    struct arena a;
    arena_init(&a);
    (void)snprintf(c->name, sizeof(c->name), "%s", act->name);
    const char *clusters = x->n_clusters == 1 ? x->clusters[0] : NULL;
    run(c, &a, slurm_command_cancel(&a, clusters, act->name, act->ids, act->soft), NULL,
        on_cancelled);
    arena_release(&a);
}

static void ask_next(struct call *c);

/* One cluster's answer. Of a name that does not exist squeue says so on stderr: that is an
 * answer, too. */
static void on_answered(void *ctx, const struct slurm_reply *reply)
{
    struct call *c = ctx;
    const enum slurm_refusal refusal = slurm_parse_refusal(reply->err->buf, reply->err->len);
    const bool absent = reply->whole && reply->code > 0 && refusal == SLURM_REFUSED_ABSENT;
    c->off = c->off || (reply->whole && reply->code != 0 && refusal == SLURM_REFUSED_NO_ACCOUNTING);
    c->failed = c->failed || !reply->whole || (reply->code != 0 && !absent);
    strbuf_add(&c->text, reply->out->buf, reply->out->len);
    c->running = NULL;
    if (++c->next_clusters < c->owner->n_clusters && !c->failed) {
        ask_next(c);
        return;
    }
    struct slurm_rows rows = {0};
    struct arena a;
    arena_init(&a);
    struct slurm_event ev = {.kind =
                                 c->kind == CALL_QUEUE ? SLURM_EVENT_QUEUE : SLURM_EVENT_ACCOUNTED};
    if (!c->failed) {
        (c->kind == CALL_QUEUE ? slurm_parse_queue
                               : slurm_parse_accounting)(c->text.buf, c->text.len, &a, &rows);
    }
    ev.queue.ok = !c->failed;
    ev.queue.off = c->off;
    ev.queue.rows = &rows;
    finish(c, &ev);
    arena_release(&a);
}

static void ask_next(struct call *c)
{
    struct slurm *x = c->owner;
    const char *clusters = x->n_clusters == 0 ? NULL : x->clusters[c->next_clusters];
    char user[24];
    struct arena a;
    arena_init(&a);
    (void)snprintf(user, sizeof(user), "%u", (unsigned)getuid());
    char *const *argv = c->kind == CALL_QUEUE
                            ? slurm_command_queue(&a, clusters, user, c->names)
                            : slurm_command_accounting(&a, clusters, c->names, c->since);
    run(c, &a, argv, NULL, on_answered);
    arena_release(&a);
}

static void act_ask(struct slurm *x, const struct slurm_act *act)
{
    struct call *c = call_new(x, CALL_QUEUE);
    c->names = act->kind == SLURM_ACT_NAMES ? xstrdup(act->name) : NULL;
    ask_next(c);
}

/* Local time, as sacct reads it. */
static char *since_text(int64_t since_ms)
{
    char text[32] = "";
    struct tm tm;
    const int64_t ago_s =
        since_ms == INT64_MIN ? LONG_AGO_S : (clock_mono().ms - since_ms) / 1000 + 60;
    const time_t at = (time_t)(clock_wall().ms / 1000 - ago_s);
    if (localtime_r(&at, &tm) != NULL) {
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    }
    return xstrdup(text);
}

static void act_account(struct slurm *x, const struct slurm_act *act)
{
    struct call *c = call_new(x, CALL_ACCOUNTING);
    c->names = xstrdup(act->name);
    c->since = since_text(act->since_ms);
    ask_next(c);
}

static void on_config(void *ctx, const struct slurm_reply *reply)
{
    struct call *c = ctx;
    struct slurm *x = c->owner;
    const int64_t max = reply->whole && reply->code == 0
                            ? slurm_parse_max_array(reply->out->buf, reply->out->len)
                            : -1;
    x->calls[c->kind] = NULL;
    x->configured = max > 0;
    if (max > 0) {
        slurm_book_set_max_array(x->book, max > UINT32_MAX ? UINT32_MAX : (uint32_t)max);
    }
    call_free(c);
}

/* Once, and again with the next start where it failed: until then arrays are as long as Slurm's
 * default allows. */
static void ask_config(struct slurm *x, const char *clusters)
{
    if (x->configured || x->calls[CALL_CONFIG] != NULL) {
        return;
    }
    struct call *c = call_new(x, CALL_CONFIG);
    struct arena a;
    arena_init(&a);
    run(c, &a, slurm_command_config(&a, clusters), NULL, on_config);
    arena_release(&a);
}

static void add_clusters(struct slurm *x, const char *clusters)
{
    for (size_t i = 0; i < x->n_clusters; i++) {
        const char *have = x->clusters[i];
        if (have == clusters || (have != NULL && clusters != NULL && strcmp(have, clusters) == 0)) {
            return;
        }
    }
    ARRAY_GROW(x->clusters, x->n_clusters, x->cap_clusters);
    x->clusters[x->n_clusters++] = clusters; /* of a shape, which lives as long */
}

/* ---- file jobs ---- */

struct file_job {
    struct job job;
    struct slurm *owner;
    struct attempt_key key;
    char *folder;
    char id[UUID_TEXT_SIZE];
    /* by kind */
    struct slurm_sight sight;
    struct slurm_job_hint hint;
    struct slurm_batch batch;
    char *array;
    char *exclude;
    uint32_t shape;
    bool fence;
    struct attempt_end end;
    int rc;
    struct err err;
};

static struct file_job *job_new(struct slurm *x, void (*work)(struct job *),
                                void (*done)(struct job *))
{
    struct file_job *j = xcalloc(1, sizeof(*j));
    j->job.work = work;
    j->job.done = done;
    j->owner = x;
    x->n_jobs++;
    return j;
}

static void job_free(struct file_job *j)
{
    assert(j->owner->n_jobs > 0);
    j->owner->n_jobs--;
    for (size_t i = 0; i < j->batch.n_members; i++) {
        free(j->batch.members[i].folder);
        strbuf_release(&j->batch.members[i].spec);
    }
    free(j->batch.members);
    free(j->folder);
    free(j->array);
    free(j->exclude);
    free(j);
}

static struct file_job *job_about(struct slurm *x, const struct slurm_attempt *a,
                                  void (*work)(struct job *), void (*done)(struct job *))
{
    struct file_job *j = job_new(x, work, done);
    j->key = a->key;
    j->folder = xstrdup(a->folder);
    memcpy(j->id, a->id, sizeof(j->id));
    return j;
}

/* ---- LOOK ---- */

static void on_look(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    slurm_folder_look(j->folder, j->id, &j->sight);
}

static void on_looked(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    struct slurm_event ev = {.kind = SLURM_EVENT_FILES, .key = j->key};
    ev.files.listed = j->sight.listed;
    ev.files.launched = j->sight.launched;
    ev.files.refused = j->sight.refused;
    ev.files.beat = j->sight.beat;
    ev.files.end = j->sight.has_end ? &j->sight.end : NULL;
    if (!j->owner->closed) {
        step(j->owner, &ev);
    }
    job_free(j);
}

static void act_look(struct slurm *x, const struct slurm_act *act)
{
    const struct slurm_attempt *a = key_map_get(&x->attempts, &act->key);
    if (a != NULL) {
        job_start(x->loop, &job_about(x, a, on_look, on_looked)->job);
        return;
    }
    struct slurm_event ev = {.kind = SLURM_EVENT_FILES, .key = act->key};
    step(x, &ev);
}

/* ---- SUBMIT ---- */

static void on_write(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    for (size_t i = 0; i < j->batch.n_members; i++) { /* as nodes see them */
        char *real = realpath(j->batch.members[i].folder, NULL);
        if (real != NULL) {
            free(j->batch.members[i].folder);
            j->batch.members[i].folder = real;
        }
    }
    j->rc = slurm_batch_write(&j->batch, &j->err);
}

static void on_wrote(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    struct slurm *x = j->owner;
    if (!x->closed && j->rc == 0) {
        submit(x, j->batch.name, j->array, j->exclude, j->shape);
    } else if (!x->closed) {
        struct slurm_event ev = {.kind = SLURM_EVENT_SUBMITTED,
                                 .name = j->batch.name,
                                 .submit = SLURM_SUBMIT_NOT_MADE,
                                 .text = j->err.msg};
        step(x, &ev);
    }
    job_free(j);
}

static void add_member(struct slurm *x, struct file_job *j, const struct slurm_entry *entry)
{
    struct slurm_attempt *a = key_map_get(&x->attempts, &entry->key);
    if (a == NULL || !a->has_spec) {
        return; /* it ended meanwhile; its line of the list stays empty */
    }
    struct slurm_member *m = &j->batch.members[j->batch.n_members++];
    j->shape = a->shape;
    m->folder = xstrdup(a->folder);
    memcpy(m->id, a->id, sizeof(m->id));
    m->no = a->key.no;
    m->index = entry->index;
    m->spec = (struct strbuf)STRBUF_INIT;
    strbuf_add(&m->spec, a->spec.buf, a->spec.len);
}

static void act_submit(struct slurm *x, const struct slurm_act *act)
{
    if (act->again) {
        submit(x, act->name, act->array, act->exclude, act->shape);
        return;
    }
    struct file_job *j = job_new(x, on_write, on_wrote);
    j->batch.members = xcalloc(act->n_entries + 1, sizeof(*j->batch.members));
    j->shape = act->shape;
    for (size_t i = 0; i < act->n_entries; i++) {
        add_member(x, j, &act->entries[i]);
    }
    const struct slurm_shape *s = x->shapes.list[j->shape];
    (void)snprintf(j->batch.name, sizeof(j->batch.name), "%s", act->name);
    j->batch.is_array = act->array != NULL;
    j->batch.jobs = s->jobs;
    j->batch.shim = s->shim;
    j->batch.setup = s->setup;
    j->batch.n_setup = s->n_setup;
    j->array = act->array == NULL ? NULL : xstrdup(act->array);
    j->exclude = act->exclude == NULL ? NULL : xstrdup(act->exclude);
    job_start(x->loop, &j->job);
}

/* ---- ends and reports ---- */

static void attempt_free(struct slurm *x, struct slurm_attempt *a)
{
    key_map_remove(&x->attempts, &a->key);
    strbuf_release(&a->spec);
    free(a->folder);
    free(a);
}

static void report_end(struct slurm *x, const struct attempt_key *key,
                       const struct attempt_end *end)
{
    struct slurm_attempt *a = key_map_get(&x->attempts, key);
    if (a != NULL) {
        attempt_free(x, a);
        x->base.listener.ended(x->base.listener.ctx, key, end);
    }
}

static void on_fence(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    j->rc = slurm_folder_fence(j->folder, &j->err);
}

/* Without the fence a late job could still run; its result would be refused, since it is no longer
 * the current attempt's. */
static void on_fenced(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    if (j->rc != 0) {
        log_warn("%s: it is given up, but not fenced off: %s", j->folder, j->err.msg);
    }
    if (!j->owner->closed) {
        report_end(j->owner, &j->key, &j->end);
    }
    job_free(j);
}

static void act_end(struct slurm *x, const struct slurm_act *act)
{
    const struct slurm_attempt *a = key_map_get(&x->attempts, &act->key);
    if (!act->fence || a == NULL) {
        report_end(x, &act->key, act->end);
        return;
    }
    struct file_job *j = job_about(x, a, on_fence, on_fenced);
    j->end = *act->end;
    job_start(x->loop, &j->job);
}

static void report_health(struct slurm *x, const struct slurm_act *act)
{
    static const enum core_health health[] = {[SLURM_ALIVE] = HEALTH_ALIVE,
                                              [SLURM_QUEUED] = HEALTH_QUEUED,
                                              [SLURM_UNSURE] = HEALTH_UNKNOWN};
    x->base.listener.probed(x->base.listener.ctx, &act->key, health[act->health]);
}

/* ---- stepping ---- */

static void perform(struct slurm *x, const struct slurm_act *act)
{
    const struct executor_listener *l = &x->base.listener;
    switch (act->kind) {
    case SLURM_ACT_TEST: act_test(x, act); break;
    case SLURM_ACT_SUBMIT: act_submit(x, act); break;
    case SLURM_ACT_QUEUE:
    case SLURM_ACT_NAMES: act_ask(x, act); break;
    case SLURM_ACT_ACCOUNTING: act_account(x, act); break;
    case SLURM_ACT_CANCEL: act_cancel(x, act); break;
    case SLURM_ACT_LOOK: act_look(x, act); break;
    case SLURM_ACT_BEGAN: l->began(l->ctx, &act->key); break;
    case SLURM_ACT_PROBED: report_health(x, act); break;
    case SLURM_ACT_ENDED: act_end(x, act); break;
    case SLURM_ACT_FULL: l->full(l->ctx, EXECUTOR_SLURM, true); break;
    case SLURM_ACT_ROOM: l->full(l->ctx, EXECUTOR_SLURM, false); break;
    case SLURM_ACT_NOTE: log_info("slurm: %s", act->text); break;
    case SLURM_ACT_NR: break;
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_TIMER};
    step(timer->data, &ev);
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
static void step(struct slurm *x, struct slurm_event *ev)
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

/* What it asks for, and what follows from that for all: which clusters to ask, how patient to be.
 */
static void give_shape(struct slurm *x, struct slurm_attempt *a, const struct attempt_place *place)
{
    char *work = shared_work_folder(place->program_folder);
    char *jobs = path_join(work, JOBS);
    a->shape = slurm_shape_number(&x->shapes, place, jobs, x->shim_path);
    a->array = place->program->run.slurm.array;
    free(jobs);
    free(work);
    int64_t grace_ms = 0;
    for (size_t i = 0; i < x->shapes.n; i++) {
        grace_ms = x->shapes.list[i]->grace_ms > grace_ms ? x->shapes.list[i]->grace_ms : grace_ms;
    }
    slurm_book_set_grace(x->book, grace_ms);
    const struct slurm_shape *s = x->shapes.list[a->shape];
    add_clusters(x, s->request.clusters);
    ask_config(x, s->request.clusters);
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
    step(x, &ev);
    return 0;
}

static void on_hint(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    slurm_folder_hint(j->folder, &j->hint);
}

static void probe_with(struct slurm *x, const struct slurm_attempt *a,
                       const struct slurm_job_hint *hint)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_PROBE, .key = a->key};
    ev.start.id = a->id;
    ev.start.shape = a->shape;
    ev.start.array = a->array;
    ev.start.hint = hint->kind;
    ev.start.name = hint->name;
    ev.start.index = hint->index;
    step(x, &ev);
}

static void on_hinted(struct job *job)
{
    struct file_job *j = (struct file_job *)job;
    struct slurm_attempt *a = key_map_get(&j->owner->attempts, &j->key);
    if (a != NULL && !j->owner->closed) {
        a->hinting = false;
        probe_with(j->owner, a, &j->hint);
    }
    job_free(j);
}

/* Of an earlier daemon's attempt the files say first whether it was ever submitted. */
static void slurm_probe(struct executor *base, const struct attempt_place *place)
{
    static const struct slurm_job_hint none = {.kind = SLURM_HINT_NONE};
    struct slurm *x = (struct slurm *)base;
    struct slurm_attempt *a = key_map_get(&x->attempts, &place->key);
    struct slurm_view view;
    if (a == NULL) {
        a = attempt_new(x, place);
        give_shape(x, a, place);
    }
    if (slurm_book_view(x->book, &place->key, &view)) {
        probe_with(x, a, &none);
    } else if (!a->hinting) {
        a->hinting = true;
        job_start(x->loop, &job_about(x, a, on_hint, on_hinted)->job);
    }
}

static void slurm_terminate(struct executor *base, const struct attempt_key *key)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_TERMINATE, .key = *key};
    step((struct slurm *)base, &ev);
}

static void slurm_kill(struct executor *base, const struct attempt_key *key)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_KILL, .key = *key};
    step((struct slurm *)base, &ev);
}

static bool slurm_explain(const struct executor *base, const struct attempt_key *key,
                          struct strbuf *out)
{
    const struct slurm *x = (const struct slurm *)base;
    struct slurm_view v;
    if (!slurm_book_view(x->book, key, &v)) {
        return false;
    }
    strbuf_addf(out, "in Slurm: %s", v.state);
    if (v.reason[0] != '\0') {
        const char *words = slurm_reason_in_words(v.reason);
        strbuf_addf(out, ", %s%s%s%s", v.reason, words == NULL ? "" : " (",
                    words == NULL ? "" : words, words == NULL ? "" : ")");
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
    for (int i = 0; i < CALL_NR; i++) {
        if (x->calls[i] != NULL && x->calls[i]->running != NULL) {
            slurm_call_give_up(x->calls[i]->running);
        }
    }
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
    for (int i = 0; i < CALL_NR; i++) {
        if (x->calls[i] != NULL) {
            call_free(x->calls[i]);
        }
    }
    slurm_shapes_release(&x->shapes);
    slurm_book_free(x->book);
    free(x->clusters);
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
                                            .explain = slurm_explain,
                                            .close = slurm_close,
                                            .free = slurm_free};
    struct slurm *x = xcalloc(1, sizeof(*x));
    struct slurm_book_config config;
    x->base = (struct executor){.ops = &ops, .listener = *listener};
    x->loop = loop;
    x->shim_path = xstrdup(shim_path);
    slurm_book_config_default(&config);
    config.seed = seed;
    x->book = slurm_book_create(&config);
    (void)uv_timer_init(loop, &x->timer);
    x->timer.data = x;
    return &x->base;
}
