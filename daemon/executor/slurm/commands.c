/*
 * Slurm's commands, as the book wants them run: builds each command line (command.h), runs it
 * (client.h) and steps the book with what was answered. One of each kind is under way at most.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "daemon/executor/slurm/client.h"
#include "daemon/executor/slurm/command.h"
#include "daemon/executor/slurm/folder.h"
#include "daemon/executor/slurm/parse.h"
#include "daemon/executor/slurm/slurm_parts.h"

#define LONG_AGO_S      (30 * 24 * 60 * 60) /* of jobs that an earlier daemon submitted */
#define CONFIG_AGAIN_MS (60 * 1000)
#define TEST_SCRIPT     "#!/bin/sh\nexit 0\n"

extern char **environ;

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
    bool off; /* accounting is absent */
    struct strbuf text;
};

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

static void run_command(struct call *c, struct arena *a, char *const *argv, const char *input,
                        slurm_reply_fn *done)
{
    const struct slurm_command command = {
        .argv = argv, .environment = environment_of(a), .input = input};
    c->running = slurm_call_start(c->owner->loop, &command, done, c);
}

/* Takes the call out of its place, so that the book may ask for the next one at once. */
static void finish(struct call *c, struct slurm_event *ev)
{
    struct slurm *x = c->owner;
    x->calls[c->kind] = NULL;
    x->step(x, ev);
    call_free(c);
}

static enum slurm_submit_answer submit_answer(const struct slurm_reply *r, char *why, size_t size)
{
    slurm_parse_why(r->err->buf, r->err->len, why, size);
    if (!r->whole ||
        r->code <= 0) { /* rule 5: what it warns of while it succeeds refuses nothing */
        return SLURM_SUBMIT_UNKNOWN;
    }
    switch (slurm_parse_refusal(r->err->buf, r->err->len)) {
    case SLURM_REFUSED_FULL: return SLURM_SUBMIT_FULL;
    case SLURM_REFUSED_NEVER: return SLURM_SUBMIT_NEVER;
    case SLURM_REFUSED_NODES: return SLURM_SUBMIT_NEVER;
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
    const bool fits = reply->whole && reply->code == 0;
    ev.submit = fits ? SLURM_SUBMIT_DONE : submit_answer(reply, why, sizeof(why));
    if (ev.submit == SLURM_SUBMIT_NEVER &&
        slurm_parse_refusal(reply->err->buf, reply->err->len) == SLURM_REFUSED_NODES) {
        ev.submit = SLURM_SUBMIT_DONE; /* the nodes may be down: sbatch itself knows better */
    }
    ev.text = why;
    finish(c, &ev);
}

void command_test(struct slurm *x, const struct slurm_act *act)
{
    struct call *c = call_new(x, CALL_TEST);
    const struct slurm_shape *s = x->shapes.list[act->shape];
    const struct slurm_submission submission = {.name = "preregd-test", .folder = "/"};
    struct arena a;
    arena_init(&a);
    c->shape = act->shape;
    run_command(c, &a, slurm_command_test(&a, &s->request, &submission), TEST_SCRIPT, on_tested);
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
void command_submit(struct slurm *x, const char *name, const char *array, const char *exclude,
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
    run_command(c, &a, slurm_command_submit(&a, &s->request, &submission), NULL, on_submitted);
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

void command_cancel(struct slurm *x, const struct slurm_act *act)
{
    struct call *c = call_new(x, CALL_CANCEL);
    struct arena a;
    arena_init(&a);
    (void)snprintf(c->name, sizeof(c->name), "%s", act->name);
    const char *clusters = x->shapes.list[act->shape]->request.clusters;
    run_command(c, &a, slurm_command_cancel(&a, clusters, act->name, act->ids, act->soft), NULL,
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
    c->off = c->off || reply->missing ||
             (reply->whole && reply->code != 0 && refusal == SLURM_REFUSED_NO_ACCOUNTING);
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
    run_command(c, &a, argv, NULL, on_answered);
    arena_release(&a);
}

void command_ask(struct slurm *x, const struct slurm_act *act)
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

void command_account(struct slurm *x, const struct slurm_act *act)
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
    x->config_due_ms = clock_mono().ms + CONFIG_AGAIN_MS;
    if (max > 0) {
        slurm_book_set_max_array(x->book, max > UINT32_MAX ? UINT32_MAX : (uint32_t)max);
    }
    call_free(c);
}

/* Once, and where it failed again with a later start, at most once a minute: until then arrays are
 * as long as Slurm's default allows. It is not in the book's bucket (rule 10), so it must be rare.
 */
void command_config(struct slurm *x, const char *clusters)
{
    if (x->configured || x->calls[CALL_CONFIG] != NULL || clock_mono().ms < x->config_due_ms) {
        return;
    }
    struct call *c = call_new(x, CALL_CONFIG);
    struct arena a;
    arena_init(&a);
    run_command(c, &a, slurm_command_config(&a, clusters), NULL, on_config);
    arena_release(&a);
}

void commands_add_clusters(struct slurm *x, const char *clusters)
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

void commands_give_up(struct slurm *x)
{
    for (int i = 0; i < CALL_NR; i++) {
        if (x->calls[i] != NULL && x->calls[i]->running != NULL) {
            slurm_call_give_up(x->calls[i]->running);
        }
    }
}

void commands_free(struct slurm *x)
{
    for (int i = 0; i < CALL_NR; i++) {
        if (x->calls[i] != NULL) {
            call_free(x->calls[i]);
        }
    }
    free(x->clusters);
}
