/* [run] and [run.STAGE]: how and where, never what. A stage's own keys win over the program's. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/program/load.h"
#include "prereg/program/run_limits.h"

#define SLOTS_MAX 4096

/* In the order of the sections a worker reports (worker-protocol.md). */
static const char *const SECTIONS[] = {"setup", "step", "checkpoint", "eval"};
static const char *const STAGE_KEYS[] = {"memory", "crashes", "attempts", "deadlines",
                                         "checkpoint"};
static const char *const PROGRAM_KEYS[] = {"executor", "work", "slots"};

/* A duration as text. */
static void load_ms(struct load *l, const struct toml_node *t, const char *key, int64_t *out)
{
    struct err err;
    const struct toml_node *m = load_member(l, t, key, TOML_STRING);
    if (m != NULL && text_to_ms(m->string, out, &err) != 0) {
        load_error(l, m, "%s (a duration is \"300s\", \"5min\", \"2h\")", err.msg);
    }
}

/* A number of bytes or a text with a unit. */
static void load_memory(struct load *l, const struct toml_node *t, struct stage_run *run)
{
    int64_t *out = &run->memory_bytes;
    struct err err;
    const struct toml_node *m = toml_member(t, "memory");
    if (m == NULL) {
        return;
    }
    run->memory_place = load_place(m);
    if (m->kind == TOML_INTEGER) {
        (void)load_int(l, t, "memory", (int64_t[]){1, JSON_INT_MAX}, out);
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
        load_ms(l, table, SECTIONS[i], &out[i]);
    }
}

/* The keys that [run] and [run.STAGE] share. `run` keeps its value where a key is absent: for a
 * stage that is the program's. */
static void load_stage_keys(struct load *l, const struct toml_node *t, struct stage_run *run)
{
    load_memory(l, t, run);
    (void)load_int(l, t, "crashes", (int64_t[]){0, RUN_BUDGET_MAX}, &run->crashes);
    (void)load_int(l, t, "attempts", (int64_t[]){1, RUN_BUDGET_MAX}, &run->attempts);
    load_deadlines(l, t, run->deadline_ms);
    const struct toml_node *checkpoint = toml_member(t, "checkpoint");
    if (checkpoint != NULL && checkpoint->kind == TOML_STRING &&
        strcmp(checkpoint->string, "auto") == 0) {
        run->checkpoint_ms = 0;
    } else {
        load_ms(l, t, "checkpoint", &run->checkpoint_ms);
    }
}

/* The keys of [run] that no stage may have of its own. */
static void load_program_keys(struct load *l, const struct toml_node *t)
{
    static const char *const executors[] = {"local", NULL};
    struct plan_program *p = l->p;
    size_t word = 0;
    (void)load_word(l, t, "executor", executors, &word);
    (void)load_int(l, t, "slots", (int64_t[]){1, SLOTS_MAX}, &p->run.slots);
    const char *work = NULL;
    if (load_text(l, t, "work", false, &work)) {
        char *abs_path = path_absolute(p->folder, work);
        p->run.work = arena_strdup(&p->arena, abs_path);
        free(abs_path);
    }
}

/* Every other member of [run] must be the table of a stage. */
static void check_run_keys(struct load *l, const struct toml_node *t)
{
    struct plan_program *p = l->p;
    size_t n_keys = ARRAY_LEN(STAGE_KEYS) + ARRAY_LEN(PROGRAM_KEYS);
    const char **known = xcalloc(n_keys + p->n_stages, sizeof(*known));
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(STAGE_KEYS); i++) {
        known[n++] = STAGE_KEYS[i];
    }
    for (size_t i = 0; i < ARRAY_LEN(PROGRAM_KEYS); i++) {
        known[n++] = PROGRAM_KEYS[i];
    }
    for (size_t i = 0; i < p->n_stages; i++) {
        known[n++] = p->stages[i].name;
    }
    load_check_keys(l, t, known, n);
    free(known);
}

void load_run(struct load *l)
{
    struct plan_program *p = l->p;
    struct stage_run common = {.crashes = RUN_CRASHES_DEFAULT, .attempts = RUN_ATTEMPTS_DEFAULT};
    p->run = (struct run_settings){.executor = "local", .covered = p->empty_object};
    const struct toml_node *t = load_member(l, l->root, "run", TOML_TABLE);
    if (t != NULL) {
        p->run.covered = t->json;
        check_run_keys(l, t);
        load_program_keys(l, t);
        load_stage_keys(l, t, &common);
    }
    for (size_t i = 0; i < p->n_stages; i++) {
        struct plan_stage *s = &p->stages[i];
        s->run = common;
        const struct toml_node *own = t == NULL ? NULL : load_member(l, t, s->name, TOML_TABLE);
        if (own != NULL) {
            load_check_keys(l, own, STAGE_KEYS, ARRAY_LEN(STAGE_KEYS));
            load_stage_keys(l, own, &s->run);
        }
    }
}
