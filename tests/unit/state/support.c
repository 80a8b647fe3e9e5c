#include "tests/unit/state/support.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"

char *state_folder_make(void)
{
    struct err err = {0};
    char *dir = scratch_make();
    char *folder = xasprintf("%s/programs/%s", dir, SCRATCH_ID);
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    free(folder);
    return dir;
}

char *scratch_path(const char *dir, const char *name)
{
    return xasprintf("%s/programs/%s/%s", dir, SCRATCH_ID, name);
}

struct plan_program *program_make(size_t n_cells)
{
    struct plan_program *p = xcalloc(1, sizeof(*p));
    arena_init(&p->arena);
    p->name = "little";
    p->n_cells = n_cells;
    p->cells = arena_array(&p->arena, n_cells, sizeof(*p->cells));
    for (size_t i = 0; i < n_cells; i++) {
        p->cells[i].index = i;
        p->cells[i].name = arena_printf(&p->arena, "seed=%zu", i + 1);
        p->cells[i].folder = p->cells[i].name;
    }
    p->n_stages = 2;
    p->stages = arena_array(&p->arena, 2, sizeof(*p->stages));
    p->stages[0].name = "train";
    p->stages[1].name = "eval";
    p->stages[1].n_after = 1;
    p->stages[1].after = arena_array(&p->arena, 1, sizeof(size_t));
    p->n_measures = 1;
    p->measures = arena_array(&p->arena, 1, sizeof(*p->measures));
    p->measures[0].name = "score";
    p->measures[0].stage = 1;
    p->measures[0].metric = "acc";
    p->measures[0].counted = true;
    p->binding_counter = INDEX_NONE;
    return p;
}

void program_drop(struct plan_program *p)
{
    arena_release(&p->arena);
    free(p);
}

struct digest root_make(const char *text)
{
    return digest_bytes(text, strlen(text));
}

void walker_init(struct walker *w, struct store *store, uint32_t program, size_t n_tasks)
{
    *w = (struct walker){.store = store, .program = program, .now_ms = 1763694202123};
    for (size_t i = 0; i < n_tasks; i++) {
        task_row_init(&w->tasks[i], i % 2 == 0 ? TASK_READY : TASK_WAITING);
        attempt_row_init(&w->attempts[i]);
    }
}

static struct state_row move(struct walker *w, enum row_kind kind, uint32_t task,
                             enum task_state to, enum cause cause)
{
    struct state_row row = {
        .kind = kind, .program = w->program, .task = task, .time = {w->now_ms += 17}};
    row.from = w->tasks[task].state;
    w->tasks[task].state = to;
    w->tasks[task].cause = cause;
    row.after = w->tasks[task];
    attempt_row_init(&row.attempt);
    return row;
}

struct state_row walker_start(struct walker *w, uint32_t task)
{
    struct attempt_row *a = &w->attempts[task];
    attempt_row_init(a);
    a->no = ++w->tasks[task].n_attempts;
    (void)snprintf(a->id, sizeof(a->id), "00000000-0000-4000-8000-%012u", ++w->n_ids);
    a->state = ATTEMPT_STARTING;
    a->started.ms = w->now_ms;
    a->placement.threads = 2;
    if (task % 2 == 1) { /* so that both kinds go through every reader and writer */
        a->placement = (struct placement){.executor = EXECUTOR_SLURM,
                                          .threads = 8,
                                          .memory_bytes = INT64_C(1) << 35,
                                          .gpu_thousandths = 500,
                                          .gpu_memory_bytes = INT64_C(1) << 34,
                                          .gpus = "GPU-00000000-0000-4000-8000-000000000001"};
    }
    struct state_row row = move(w, ROW_ATTEMPT_STARTED, task, TASK_STARTING, CAUSE_NONE);
    row.attempt = *a;
    return row;
}

struct state_row walker_run(struct walker *w, uint32_t task)
{
    w->attempts[task].state = ATTEMPT_RUNNING;
    struct state_row row = move(w, ROW_ATTEMPT_RUNNING, task, TASK_RUNNING, CAUSE_NONE);
    row.attempt = w->attempts[task];
    return row;
}

struct state_row walker_fail(struct walker *w, uint32_t task, enum task_state to, enum cause cause)
{
    struct attempt_row *a = &w->attempts[task];
    a->state = ATTEMPT_ENDED;
    a->cause = cause;
    a->reason = END_SIGNALLED;
    a->signal = 9;
    a->ended.ms = w->now_ms + 1;
    a->done = 40;
    w->tasks[task].crashes++;
    struct state_row row =
        move(w, ROW_ATTEMPT_ENDED, task, to, to == TASK_BLOCKED ? cause : CAUSE_NONE);
    row.attempt = *a;
    row.detail = "killed by signal 9 \xE2\x82"; /* not even a cut character keeps a row out */
    return row;
}

struct state_row walker_done(struct walker *w, uint32_t task, const char *result)
{
    struct attempt_row *a = &w->attempts[task];
    a->state = ATTEMPT_ENDED;
    a->reason = END_EXITED;
    a->code = 0;
    a->ran_ms = 35;
    a->ended.ms = w->now_ms + 1;
    struct state_row row = move(w, ROW_ATTEMPT_ENDED, task, TASK_DONE, CAUSE_NONE);
    row.attempt = *a;
    row.has_result = true;
    row.sealed = task % 2 == 1;
    row.result_digest = digest_bytes(result, strlen(result));
    return row;
}

struct state_row walker_ready(struct walker *w, uint32_t task)
{
    return move(w, ROW_TASK_READY, task, TASK_READY, CAUSE_NONE);
}

struct state_row program_row_make(const struct walker *w, enum row_kind kind,
                                  struct program_row status)
{
    return (struct state_row){
        .kind = kind, .program = w->program, .time = {w->now_ms}, .status = status};
}

int commit_rows(struct store *store, const struct state_row *rows, size_t n, struct err *err)
{
    int rc = store_begin(store, err);
    if (rc != 0) {
        return rc;
    }
    rc = store_apply(store, rows, n, err);
    if (rc != 0) {
        store_rollback(store);
        return rc;
    }
    return store_commit(store, err);
}

static int dump_task(void *ctx, const struct store_task *t, struct err *err)
{
    (void)err;
    char hex[DIGEST_HEX_SIZE] = "";
    if (t->has_result) {
        digest_hex(&t->result_digest, hex);
    }
    strbuf_addf(ctx, "%u %s/%s %s %s %u %u %s\n", t->task, t->cell, t->stage,
                task_state_name(t->row.state), cause_name(t->row.cause), t->row.n_attempts,
                t->row.crashes, hex);
    return 0;
}

static int dump_attempt(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    (void)err;
    const struct placement *at = &a->placement;
    strbuf_addf(ctx, "%u.%u %s %s %s %s %d %d %lld %lld", task, a->no, a->id,
                attempt_state_name(a->state), cause_name(a->cause), end_reason_name(a->reason),
                a->code, a->signal, (long long)a->done, (long long)a->ran_ms);
    strbuf_addf(ctx, " %s %u %lld %lld %lld %s\n", executor_kind_name(at->executor), at->threads,
                (long long)at->memory_bytes, (long long)at->gpu_thousandths,
                (long long)at->gpu_memory_bytes, at->gpus);
    return 0;
}

static int dump_line(void *ctx, int64_t seq, const char *line, struct err *err)
{
    (void)err;
    strbuf_addf(ctx, "%lld %s\n", (long long)seq, line);
    return 0;
}

char *dump(struct store *store, uint32_t program)
{
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    assert_int_equal(store_tasks(store, program, dump_task, &out, &err), 0);
    assert_int_equal(store_attempts(store, program, UINT32_MAX, dump_attempt, &out, &err), 0);
    assert_int_equal(store_journal(store, program, 1, dump_line, &out, &err), 0);
    return strbuf_detach(&out);
}
