/*
 * `cancel --all` of 200,000 tasks that wait: how long the request takes, and the longest turn of
 * the daemon's loop until all of them have ended. Core, pump and store are the daemon's own;
 * nothing is started.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "daemon/core/explain.h"
#include "daemon/shell/pump.h"

#define N_CELLS  100000
#define N_STAGES 2

static void must(int rc, const struct err *err)
{
    if (rc != 0) {
        (void)fprintf(stderr, "bench cancel: %s\n", err->msg);
        exit(1);
    }
}

static int committing(void *ctx, const struct state_row *rows, size_t n, struct err *err)
{
    (void)ctx, (void)rows, (void)n, (void)err;
    return 0;
}

static void committed(void *ctx, const struct state_row *rows, size_t n)
{
    (void)ctx, (void)rows, (void)n;
}

static void act(void *ctx, const struct core_act *a)
{
    (void)ctx, (void)a;
}

static void make_program(struct plan_program *p)
{
    static size_t first;
    static struct plan_stage stages[N_STAGES] = {{.name = "train"}, {.name = "eval"}};
    *p = (struct plan_program){.name = "many", .n_stages = N_STAGES, .stages = stages};
    arena_init(&p->arena);
    stages[1].n_after = 1;
    stages[1].after = &first;
    p->n_cells = N_CELLS;
    p->cells = arena_array(&p->arena, N_CELLS, sizeof(*p->cells));
    for (size_t i = 0; i < N_CELLS; i++) {
        p->cells[i].index = i;
        p->cells[i].name = p->cells[i].folder = arena_printf(&p->arena, "arch=moe,seed=%zu", i + 1);
    }
    p->binding_counter = INDEX_NONE;
}

static uint32_t n_open(const struct core *core)
{
    struct core_counts c = {0};
    (void)core_counts_get(core, 1, &c);
    return c.by_state[TASK_WAITING] + c.by_state[TASK_READY];
}

static void run(struct pump *pump, struct core *core, uv_loop_t *loop)
{
    struct err err;
    struct core_event stop = {.kind = CORE_STOP, .program = 1};
    int64_t begun = clock_mono_ns();
    int64_t n_turns = 0;
    must(pump_request(pump, &stop, &err), &err);
    int64_t request = clock_mono_ns() - begun;
    int64_t longest = request;
    while (n_open(core) > 0) {
        int64_t before = clock_mono_ns();
        (void)uv_run(loop, UV_RUN_NOWAIT);
        int64_t turn = clock_mono_ns() - before;
        longest = turn > longest ? turn : longest;
        n_turns++;
    }
    (void)printf("cancel of %d tasks: request %.0f ms, longest turn %.0f ms, %.1f s in all, "
                 "%lld turns\n",
                 N_CELLS * N_STAGES, (double)request / 1e6, (double)longest / 1e6,
                 (double)(clock_mono_ns() - begun) / 1e9, (long long)n_turns);
    (void)printf("{\"figure\":\"cancel of 200,000 tasks, longest turn\",\"unit\":\"ms\","
                 "\"values\":[%.3f]}\n",
                 (double)longest / 1e6);
}

/* Where: /tmp, or the folder that is named. */
int main(int argc, char **argv)
{
    static const uint32_t first = 0;
    char *dir =
        xasprintf("%s/preregd-bench-XXXXXX", argc > 1 && argv[1][0] != '-' ? argv[1] : "/tmp");
    struct err err = {0};
    struct plan_program program;
    struct store *store = NULL;
    struct core_config config;
    uv_loop_t loop;
    uint32_t no = 0;
    struct pump_listener listener = {.committing = committing, .committed = committed, .act = act};
    struct core_plan_stage stages[N_STAGES] = {{.threads = 1, .crashes = 3, .attempts = 50},
                                               {.threads = 1, .crashes = 3, .attempts = 50}};
    struct core_event added = {.kind = CORE_PROGRAM_ADDED, .program = 1};
    if (mkdtemp(dir) == NULL) {
        return 1;
    }
    char *folder = xasprintf("%s/programs/many-00000000", dir);
    struct store_submission s = {"many-00000000", digest_bytes("root", 4), clock_wall(), {0}};
    must(dir_make(folder, 0700, &err), &err);
    make_program(&program);
    must(store_open(dir, STORE_OWNER, &store, &err), &err);
    must(store_program_create(store, &program, &s, &no, &err), &err);
    core_config_default(&config);
    (void)uv_loop_init(&loop);
    struct core *core = core_create(&config);
    struct pump *pump = pump_create(&loop, core, store, &listener);
    stages[1].after = &first;
    stages[1].n_after = 1;
    added.added.plan =
        (struct core_plan){.n_cells = N_CELLS, .n_stages = N_STAGES, .stages = stages};
    must(pump_request(pump, &added, &err), &err);
    run(pump, core, &loop);
    pump_close(pump);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    pump_free(pump);
    core_free(core);
    store_close(store);
    arena_release(&program.arena);
    must(dir_remove(dir, &err), &err);
    free(folder);
    free(dir);
    return 0;
}
