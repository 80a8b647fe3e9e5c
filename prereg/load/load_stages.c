/* [stage.*]: what runs in a cell, in which order. Stages are read in the order of the file, then
 * sorted topologically, so that all later code may go through them in one pass. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/load/load.h"
#include "prereg/program/image_name.h"
#include "prereg/program/stage_set.h"

#define COMMAND_MAX  ((size_t)256)
#define THREADS_MAX  1024
#define ENV_NAME_MAX ((size_t)128)

/* Keys of [run]: [run.STAGE] must stay tellable from them. */
static const char *const RESERVED[] = {
    "memory", "crashes", "attempts", "deadlines", "checkpoint", "executor", "work",      "slots",
    "gpus",   "slurm",   "priority", "keep",      "time",       "threads",  "gpu_memory"};

/* argv as written; the first string is the worker. */
static void load_command(struct load *l, struct plan_stage *s, const struct toml_node *t)
{
    const struct toml_node *array = load_need(l, t, "command", TOML_ARRAY);
    if (array == NULL) {
        return;
    }
    if (array->n_items == 0 || array->n_items > COMMAND_MAX) {
        load_error(l, array, "expected 1 to %zu strings, found %zu", COMMAND_MAX, array->n_items);
        return;
    }
    s->command = arena_array(&l->p->arena, array->n_items, sizeof(*s->command));
    for (size_t i = 0; i < array->n_items; i++) {
        const struct toml_node *n = array->items[i];
        if (!load_is(l, n, TOML_STRING)) {
            continue;
        }
        if (i == 0 && n->string[0] == '\0') {
            load_error(l, n, "an empty name of a program");
        }
        s->command[s->n_command++] = n->string;
    }
}

static bool env_name_ok(const char *name)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t n = strlen(name);
    return n > 0 && n <= ENV_NAME_MAX && strspn(name, first) == n &&
           !(name[0] >= '0' && name[0] <= '9');
}

/* The daemon's own two variables cannot be set. */
static void load_env(struct load *l, struct plan_stage *s, const struct toml_node *t)
{
    const struct toml_node *env = load_member(l, t, "env", TOML_TABLE);
    for (size_t i = 0; env != NULL && i < env->n_items; i++) {
        const struct toml_node *m = env->items[i];
        if (!env_name_ok(m->key)) {
            load_error_key(l, m, "\"%s\" is not a name of a variable", m->key);
        } else if (strcmp(m->key, "PREREG_TASK") == 0 || strcmp(m->key, "PREREG_EVENTS") == 0) {
            load_error_key(l, m, "%s is set by the daemon", m->key);
        }
        (void)load_is(l, m, TOML_STRING);
    }
    s->env = env == NULL ? NULL : env->json;
}

/* The image of a container: it decides what its programs find, its own variables included. */
static void load_image(struct load *l, struct plan_stage *s, const struct toml_node *t)
{
    s->image = s->environment + strlen(IMAGE_SCHEME);
    if (!image_name_ok(s->image)) {
        load_error_key(l, toml_member(t, "environment"),
                       "expected " IMAGE_SCHEME "NAME, the name of an image as podman has it");
    }
}

/* A folder counts from grid.toml's on. It decides PATH, so the stage cannot. */
static void load_environment(struct load *l, struct plan_stage *s, const struct toml_node *t)
{
    static const char *const own[] = {"PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"};
    if (!load_text(l, t, "environment", false, &s->environment)) {
        return;
    }
    if (strncmp(s->environment, IMAGE_SCHEME, strlen(IMAGE_SCHEME)) == 0) {
        load_image(l, s, t);
        return;
    }
    char *path = path_absolute(l->p->folder, s->environment);
    s->environment_path = arena_strdup(&l->p->arena, path);
    free(path);
    if (strchr(s->environment_path, ':') != NULL) {
        load_error_key(l, toml_member(t, "environment"),
                       "the path of an environment must not have a ':', which parts PATH");
    }
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (json_member(s->env, own[i]) != NULL) {
            load_error_key(l, toml_member(t, "environment"),
                           "env.%s and environment exclude each other: the environment decides it",
                           own[i]);
        }
    }
}

/* All keys but `after`, which needs the names of all stages. */
static void load_stage(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"after", "command", "threads",  "params",
                                       "when",  "env",     "describe", "environment"};
    struct plan_program *p = l->p;
    struct plan_stage *s = &p->stages[p->n_stages++];
    *s = (struct plan_stage){.name = t->key,
                             .threads = 1,
                             .describes = true,
                             .params = p->empty_object,
                             .place = load_key_place(t)};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    if (names_find((struct names){"key", RESERVED, ARRAY_LEN(RESERVED), sizeof(RESERVED[0])},
                   t->key) != INDEX_NONE) {
        load_error_key(l, t, "\"%s\" is a key of [run] and cannot name a stage", t->key);
    }
    load_command(l, s, t);
    (void)load_int(l, t, "threads", (int64_t[]){1, THREADS_MAX}, &s->threads);
    const struct toml_node *params = load_member(l, t, "params", TOML_TABLE);
    const struct toml_node *when = load_member(l, t, "when", TOML_TABLE);
    s->params = params == NULL ? p->empty_object : params->json;
    s->when = when == NULL ? NULL : when->json;
    load_env(l, s, t);
    load_environment(l, s, t);
    (void)load_bool(l, t, "describe", &s->describes);
}

/* Indices of `after` as in the file's order of stages; sorting renumbers them. */
static void load_after(struct load *l, struct plan_stage *s, const struct toml_node *t)
{
    struct plan_program *p = l->p;
    const struct toml_node *array = load_member(l, t, "after", TOML_ARRAY);
    if (array == NULL) {
        return;
    }
    s->after = arena_array(&p->arena, array->n_items, sizeof(*s->after));
    for (size_t i = 0; i < array->n_items; i++) {
        const struct toml_node *n = array->items[i];
        size_t stage = load_lookup(l, n, names_stages(l->p));
        for (size_t k = 0; stage != INDEX_NONE && k < s->n_after; k++) {
            if (s->after[k] == stage) {
                load_error(l, n, "\"%s\" is duplicated", n->string);
                stage = INDEX_NONE;
            }
        }
        if (stage != INDEX_NONE) {
            s->after[s->n_after++] = stage;
        }
    }
}

/* Whether all stages that s waits for have a position. */
static bool is_ready(const struct plan_stage *s, const size_t *position)
{
    for (size_t k = 0; k < s->n_after; k++) {
        if (position[s->after[k]] == INDEX_NONE) {
            return false;
        }
    }
    return true;
}

/* Reports one circle. Every remaining stage waits for another remaining one: after n steps along
 * such edges the walk is inside a circle, which it then goes through once more for the message. */
static void report_circle(struct load *l, const size_t *position, const struct toml_node *section)
{
    const struct plan_program *p = l->p;
    size_t at = 0;
    while (position[at] != INDEX_NONE) {
        at++;
    }
    struct strbuf text = STRBUF_INIT;
    size_t start = INDEX_NONE;
    for (size_t step = 0; step < 2 * p->n_stages + 1 && at != start; step++) {
        if (step == p->n_stages) {
            start = at;
        }
        if (step >= p->n_stages) {
            strbuf_addf(&text, "%s -> ", p->stages[at].name);
        }
        size_t k = 0;
        while (position[p->stages[at].after[k]] != INDEX_NONE) {
            k++;
        }
        at = p->stages[at].after[k];
    }
    load_error_key(l, section->items[at], "stages wait for each other in a circle: %s%s", text.buf,
                   p->stages[at].name);
    strbuf_release(&text);
}

/* Sorts topologically; among the stages that could come next, the first in the file does. */
static void sort_stages(struct load *l, const struct toml_node *section)
{
    struct plan_program *p = l->p;
    size_t n = p->n_stages;
    size_t *position = xcalloc(n, sizeof(*position));
    struct plan_stage *sorted = arena_array(&p->arena, n, sizeof(*sorted));
    for (size_t i = 0; i < n; i++) {
        position[i] = INDEX_NONE;
    }
    size_t done = 0;
    while (done < n) {
        size_t next = 0;
        while (next < n &&
               (position[next] != INDEX_NONE || !is_ready(&p->stages[next], position))) {
            next++;
        }
        if (next == n) {
            report_circle(l, position, section);
            free(position);
            return;
        }
        position[next] = done;
        sorted[done++] = p->stages[next];
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < sorted[i].n_after; k++) {
            sorted[i].after[k] = position[sorted[i].after[k]];
        }
    }
    p->stages = sorted;
    free(position);
}

void load_stages(struct load *l)
{
    struct plan_program *p = l->p;
    const struct toml_node *section = load_section(l, "stage", TOML_TABLE, STAGES_MAX);
    if (toml_member(l->root, "stage") == NULL || (section != NULL && section->n_items == 0)) {
        load_missing(l, "no [stage.NAME]: nothing would run");
        return;
    }
    if (section == NULL) {
        return;
    }
    p->stages = arena_array(&p->arena, section->n_items, sizeof(*p->stages));
    for (size_t i = 0; i < section->n_items; i++) {
        load_stage(l, section->items[i]);
    }
    for (size_t i = 0; i < section->n_items; i++) {
        load_after(l, &p->stages[i], section->items[i]);
    }
    sort_stages(l, section);
}
