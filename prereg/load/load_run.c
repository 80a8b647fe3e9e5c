/* [run] and [run.STAGE]: how and where, never what. A stage's own keys win over the program's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/load/load.h"
#include "prereg/program/run_limits.h"

#define SLOTS_MAX    4096
#define GPUS_MAX     64
#define PRIORITY_MAX 1000
#define THREADS_MAX  1024

#define GPU_MEMORY_MIN (INT64_C(1) << 20)

/* In the order of the sections a worker reports (worker-protocol.md). */
static const char *const SECTIONS[] = {"setup", "step", "checkpoint", "eval"};
/* Of [run], and of [run.STAGE] where they differ from it. */
static const char *const SHARED_KEYS[] = {"executor", "memory",    "time",      "crashes",
                                          "attempts", "deadlines", "checkpoint"};
static const char *const STAGE_KEYS[] = {"threads", "gpus", "gpu_memory"};
static const char *const PROGRAM_KEYS[] = {"work", "slots", "gpus", "priority", "keep", "slurm"};

bool load_ms(struct load *l, const struct toml_node *table, const char *key, int64_t *out)
{
    struct err err;
    const struct toml_node *m = load_member(l, table, key, TOML_STRING);
    if (m != NULL && text_to_ms(m->string, out, &err) != 0) {
        load_error(l, m, "%s (a duration is \"300s\", \"5min\", \"2h\")", err.msg);
        return false;
    }
    return m != NULL;
}

/* A number of bytes or a text with a unit. */
static void load_bytes(struct load *l, const struct toml_node *t, const char *key, int64_t *out)
{
    struct err err;
    const struct toml_node *m = toml_member(t, key);
    if (m == NULL) {
        return;
    }
    if (m->kind == TOML_INTEGER) {
        (void)load_int(l, t, key, (int64_t[]){1, JSON_INT_MAX}, out);
    } else if (m->kind != TOML_STRING) {
        load_error(l, m, "expected \"8GiB\" or a number of bytes, found %s",
                   toml_kind_name(m->kind));
    } else if (text_to_bytes(m->string, out, &err) != 0) {
        load_error(l, m, "%s", err.msg);
    }
}

/* {setup, step, checkpoint, eval}, each a duration. */
static void load_deadlines(struct load *l, const struct toml_node *t, int64_t out[4])
{
    const struct toml_node *table = load_member(l, t, "deadlines", TOML_TABLE);
    if (table == NULL) {
        return;
    }
    load_check_keys(l, table, SECTIONS, ARRAY_LEN(SECTIONS));
    for (size_t i = 0; i < ARRAY_LEN(SECTIONS); i++) {
        (void)load_ms(l, table, SECTIONS[i], &out[i]);
    }
}

/* Where the value of a key is; `place` keeps its own where the key is absent. */
static void note_place(const struct toml_node *t, const char *key, struct place *place)
{
    const struct toml_node *m = toml_member(t, key);
    if (m != NULL) {
        *place = load_place(m);
    }
}

static void load_executor(struct load *l, const struct toml_node *t, struct stage_run *run)
{
    static const char *const words[] = {"local", "slurm", NULL};
    size_t word = 0;
    if (load_word(l, t, "executor", words, &word)) {
        run->executor = executor_kind_from_name(words[word]);
        note_place(t, "executor", &run->executor_place);
    }
}

/* The keys that [run] and [run.STAGE] share. `run` keeps its value where a key is absent: for a
 * stage that is the program's. */
static void load_shared_keys(struct load *l, const struct toml_node *t, struct stage_run *run)
{
    load_executor(l, t, run);
    load_bytes(l, t, "memory", &run->memory_bytes);
    note_place(t, "memory", &run->memory_place);
    (void)load_ms(l, t, "time", &run->time_ms);
    note_place(t, "time", &run->time_place);
    (void)load_int(l, t, "crashes", (int64_t[]){0, RUN_BUDGET_MAX}, &run->crashes);
    (void)load_int(l, t, "attempts", (int64_t[]){1, RUN_BUDGET_MAX}, &run->attempts);
    load_deadlines(l, t, run->deadline_ms);
    const struct toml_node *checkpoint = toml_member(t, "checkpoint");
    if (checkpoint != NULL && checkpoint->kind == TOML_STRING &&
        strcmp(checkpoint->string, "auto") == 0) {
        run->checkpoint_ms = 0;
    } else {
        (void)load_ms(l, t, "checkpoint", &run->checkpoint_ms);
    }
}

/* Whole GPUs, or a share of one. A share needs gpu_memory, because what is free is counted by what
 * was declared, never measured. */
static void load_gpus(struct load *l, const struct toml_node *t, struct stage_run *run)
{
    const struct toml_node *m = toml_member(t, "gpus");
    double gpus = 0;
    const struct toml_node *memory = toml_member(t, "gpu_memory");
    load_bytes(l, t, "gpu_memory", &run->gpu_memory_bytes);
    if (run->gpu_memory_bytes > 0 && run->gpu_memory_bytes < GPU_MEMORY_MIN) {
        load_error(l, memory, "%lld bytes are under 1 MiB: give a unit, such as \"20GiB\"",
                   (long long)run->gpu_memory_bytes);
    }
    if (m == NULL) {
        if (run->gpu_memory_bytes > 0) {
            load_error(l, memory, "gpus is missing: how many GPUs?");
        }
        return;
    }
    run->gpus_place = load_place(m);
    if (!load_number(l, t, "gpus", &gpus)) {
        return;
    }
    const bool is_whole = gpus >= 0 && gpus <= GPUS_MAX && gpus == floor(gpus);
    if (!is_whole && !(gpus >= 0.001 && gpus < 1)) {
        load_error(l, m, "expected a whole number up to %d, or a share from 0.001 to 0.999",
                   GPUS_MAX);
        return;
    }
    run->gpu_thousandths = llround(gpus * 1000);
    if (!is_whole && memory == NULL) {
        load_error(l, m, "a share of a GPU needs gpu_memory, such as \"20GiB\"");
    } else if (!is_whole && run->executor == EXECUTOR_SLURM) {
        load_error(l, m, "under Slurm an attempt has whole GPUs: expected a whole number");
    } else if (run->gpu_memory_bytes > 0 && run->executor == EXECUTOR_SLURM) {
        load_warn(l, memory,
                  "Slurm does not know the memory of a GPU: choose nodes by partition, or by "
                  "--constraint in options of [run.slurm]");
    }
}

/* What preregd sets for the GPUs that it, or Slurm, gives: the stage's own value would win. */
static void check_gpu_environment(struct load *l, const struct plan_stage *s)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                        "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                        "GPU_DEVICE_ORDINAL"};
    for (size_t i = 0; i < ARRAY_LEN(names) && s->run.gpu_thousandths > 0; i++) {
        if (json_member(s->env, names[i]) != NULL) {
            diag_add(l->diag, DIAG_ERROR, s->run.gpus_place.line, s->run.gpus_place.column,
                     "run.%s.gpus: the stage's env sets %s, so its attempts would not use the GPUs "
                     "that they are given; remove one of the two",
                     s->name, names[i]);
        }
    }
}

/* The daemon cannot check which images a node has. */
static void check_images(struct load *l)
{
    for (size_t i = 0; i < l->p->n_stages; i++) {
        const struct plan_stage *s = &l->p->stages[i];
        if (s->image != NULL && s->run.executor == EXECUTOR_SLURM) {
            diag_add(l->diag, DIAG_ERROR, s->place.line, s->place.column,
                     "stage.%s.environment: an image runs on this machine alone, and the stage's "
                     "executor is slurm",
                     s->name);
        }
    }
}

/* The keys of [run.STAGE] alone. */
static void load_stage_keys(struct load *l, const struct toml_node *t, struct plan_stage *s)
{
    const struct toml_node *threads = toml_member(t, "threads");
    if (load_int(l, t, "threads", (int64_t[]){1, THREADS_MAX}, &s->run.threads) &&
        s->run.threads < s->threads) {
        load_error(l, threads, "the stage's own threads are %lld: expected at least as many",
                   (long long)s->threads);
    }
    note_place(t, "threads", &s->run.threads_place);
    load_gpus(l, t, &s->run);
}

/* [run] gpus: "auto", 0, or a list of UUIDs and indices. */
static void load_gpu_list(struct load *l, const struct toml_node *t)
{
    struct run_settings *run = &l->p->run;
    const struct toml_node *m = toml_member(t, "gpus");
    run->gpus_auto = m == NULL || (m->kind == TOML_STRING && strcmp(m->string, "auto") == 0);
    if (run->gpus_auto) {
        return;
    }
    if (m->kind == TOML_INTEGER && m->integer == 0) {
        return;
    }
    if (m->kind != TOML_ARRAY || m->n_items > GPUS_MAX) {
        load_error(l, m,
                   "expected \"auto\", 0, or a list of at most %d UUIDs or indices (GPUs of "
                   "one attempt: gpus of [run.STAGE])",
                   GPUS_MAX);
        return;
    }
    run->gpus = arena_array(&l->p->arena, m->n_items, sizeof(*run->gpus));
    for (size_t i = 0; i < m->n_items; i++) {
        const struct toml_node *n = m->items[i];
        if (n->kind == TOML_INTEGER && n->integer >= 0 && n->integer < GPUS_MAX) {
            run->gpus[run->n_gpus++] = arena_printf(&l->p->arena, "%d", (int)n->integer);
        } else if (n->kind == TOML_STRING && n->string[0] != '\0') {
            run->gpus[run->n_gpus++] = n->string;
        } else {
            load_error(l, n, "expected the UUID of a GPU, or its index");
        }
    }
}

/* The keys of [run] that no stage may have of its own. */
static void load_program_keys(struct load *l, const struct toml_node *t)
{
    static const char *const keeps[] = {"all", "last", "none", NULL};
    struct plan_program *p = l->p;
    size_t keep = RUN_KEEP_ALL;
    (void)load_int(l, t, "slots", (int64_t[]){1, SLOTS_MAX}, &p->run.slots);
    note_place(t, "slots", &p->run.slots_place);
    (void)load_int(l, t, "priority", (int64_t[]){-PRIORITY_MAX, PRIORITY_MAX}, &p->run.priority);
    (void)load_word(l, t, "keep", keeps, &keep);
    p->run.keep = (enum run_keep)keep;
    load_gpu_list(l, t);
    load_slurm(l, t);
    const char *work = NULL;
    if (load_text(l, t, "work", false, &work)) {
        char *abs_path = path_absolute(p->folder, work);
        p->run.work = arena_strdup(&p->arena, abs_path);
        note_place(t, "work", &p->run.work_place);
        free(abs_path);
    }
}

static size_t add_keys(const char **known, size_t n, const char *const *keys, size_t n_keys)
{
    memcpy(known + n, keys, n_keys * sizeof(*keys));
    return n + n_keys;
}

/* Every other member of [run] must be the table of a stage. */
static void check_run_keys(struct load *l, const struct toml_node *t)
{
    struct plan_program *p = l->p;
    const char **known =
        xcalloc(ARRAY_LEN(SHARED_KEYS) + ARRAY_LEN(PROGRAM_KEYS) + p->n_stages, sizeof(*known));
    size_t n = add_keys(known, 0, SHARED_KEYS, ARRAY_LEN(SHARED_KEYS));
    n = add_keys(known, n, PROGRAM_KEYS, ARRAY_LEN(PROGRAM_KEYS));
    for (size_t i = 0; i < p->n_stages; i++) {
        known[n++] = p->stages[i].name;
    }
    load_check_keys(l, t, known, n);
    free(known);
}

static void check_stage_keys(struct load *l, const struct toml_node *t)
{
    const char *known[ARRAY_LEN(SHARED_KEYS) + ARRAY_LEN(STAGE_KEYS)];
    size_t n = add_keys(known, 0, SHARED_KEYS, ARRAY_LEN(SHARED_KEYS));
    load_check_keys(l, t, known, add_keys(known, n, STAGE_KEYS, ARRAY_LEN(STAGE_KEYS)));
}

/* Jobs are bounded by max_queued alone. */
static void check_slots(struct load *l)
{
    const struct plan_program *p = l->p;
    bool local = p->n_stages == 0;
    for (size_t i = 0; i < p->n_stages; i++) {
        local = local || p->stages[i].run.executor == EXECUTOR_LOCAL;
    }
    if (p->run.slots > 0 && !local) {
        diag_add(l->diag, DIAG_WARNING, p->run.slots_place.line, p->run.slots_place.column,
                 "run.slots: it bounds attempts on this machine, and every stage runs under Slurm: "
                 "use max_queued of [run.slurm]");
    }
}

void load_run(struct load *l)
{
    struct plan_program *p = l->p;
    struct stage_run common = {.crashes = RUN_CRASHES_DEFAULT, .attempts = RUN_ATTEMPTS_DEFAULT};
    p->run = (struct run_settings){.gpus_auto = true, .covered = p->empty_object};
    const struct toml_node *t = load_member(l, l->root, "run", TOML_TABLE);
    if (t != NULL) {
        p->run.covered = t->json;
        check_run_keys(l, t);
        load_shared_keys(l, t, &common);
        load_program_keys(l, t);
    } else {
        load_slurm(l, NULL);
    }
    for (size_t i = 0; i < p->n_stages; i++) {
        struct plan_stage *s = &p->stages[i];
        s->run = common;
        s->run.threads = s->threads;
        const struct toml_node *own = t == NULL ? NULL : load_member(l, t, s->name, TOML_TABLE);
        if (own != NULL) {
            check_stage_keys(l, own);
            load_shared_keys(l, own, &s->run);
            load_stage_keys(l, own, s);
            check_gpu_environment(l, s);
        }
    }
    check_slots(l);
    check_images(l);
}
