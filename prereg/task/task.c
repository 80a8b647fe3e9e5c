/*
 * task.json and the identities of tasks. Both are functions of program and lock, so that the same
 * program gives the same bytes on every machine; only the attempt's own members (id, number,
 * inputs, resume, limits) differ. Identities hash canonical JSON over names and the root; members
 * must not be added there, since every record refers to a task by its identity.
 */
#include "prereg/task/task.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/program/grid.h"

#define TASK_PROTOCOL    1
#define WORKER_PATH      "/usr/local/bin:/usr/bin:/bin"
#define PEERS_LEVELS_MAX ((size_t)64)

/* {FACTOR: level}, with the levels' own types. */
static cJSON *cell_factors(const struct plan_program *p, size_t cell)
{
    cJSON *factors = json_object();
    for (size_t i = 0; i < p->n_factors; i++) {
        const struct plan_factor *f = &p->factors[i];
        json_put(factors, f->name, json_copy(f->levels[p->cells[cell].levels[i]].value));
    }
    return factors;
}

/* The SHA-256 of the canonical text of `id`, which is freed. */
static void hash_identity(cJSON *id, char hex[DIGEST_HEX_SIZE])
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    int rc = json_canonical(id, &text, &err);
    assert(rc == 0); /* levels were checked when the program was loaded */
    struct digest d = digest_bytes(text.buf, text.len);
    digest_hex(&d, hex);
    strbuf_release(&text);
    cJSON_Delete(id);
}

static cJSON *identity(const struct plan_program *p, const char *root, size_t cell)
{
    assert(cell < p->n_cells && root != NULL);
    cJSON *id = json_object();
    json_put(id, "factors", cell_factors(p, cell));
    json_put_string(id, "root", root);
    return id;
}

void task_cell_id(const struct plan_program *p, const char *root, size_t cell,
                  char hex[DIGEST_HEX_SIZE])
{
    hash_identity(identity(p, root, cell), hex);
}

void task_id(const struct plan_program *p, const char *root, size_t cell, size_t stage,
             char hex[DIGEST_HEX_SIZE])
{
    assert(stage < p->n_stages);
    cJSON *id = identity(p, root, cell);
    json_put_string(id, "stage", p->stages[stage].name);
    hash_identity(id, hex);
}

/* The second run is the same task as the first: its worker cannot see which of the two it is. */
static const char *declared_name(const struct plan_program *p, const struct plan_apparatus *a)
{
    return a->first == INDEX_NONE ? a->name : p->apparatus[a->first].name;
}

void task_apparatus_id(const struct plan_program *p, const char *root,
                       const struct plan_apparatus *a, char hex[DIGEST_HEX_SIZE])
{
    cJSON *id = json_object();
    json_put_string(id, "apparatus", declared_name(p, a));
    json_put_string(id, "root", root);
    json_put_string(id, "stage", p->stages[a->stage].name);
    hash_identity(id, hex);
}

cJSON *task_params(const struct plan_program *p, const struct lock *lock, size_t cell, size_t stage)
{
    assert(stage < p->n_stages && cell < p->n_cells);
    cJSON *params = program_task_params(p, stage, cell);
    if (lock != NULL) {
        const char *condition = p->conditions[p->cells[cell].condition].name;
        const cJSON *stages = json_member(lock->solved, condition);
        grid_merge(params, stages == NULL ? NULL : json_member(stages, p->stages[stage].name));
    }
    return params;
}

/* The cell that differs from this one in one factor alone; the inverse of grid_expand(). */
static size_t neighbour(const struct plan_program *p, size_t cell, size_t factor, size_t level)
{
    size_t index = 0;
    for (size_t i = 0; i < p->n_factors; i++) {
        size_t own = p->cells[cell].levels[i];
        index = index * p->factors[i].n_levels + (i == factor ? level : own);
    }
    return index;
}

/* Factors with more than PEERS_LEVELS_MAX levels are left out: the task file would grow with
 * their square. */
static cJSON *peers_of(const struct plan_program *p, size_t cell, size_t stage)
{
    cJSON *peers = json_object();
    for (size_t i = 0; i < p->n_factors; i++) {
        const struct plan_factor *f = &p->factors[i];
        if (f->replicate || f->n_levels > PEERS_LEVELS_MAX) {
            continue;
        }
        cJSON *levels = json_object();
        for (size_t k = 0; k < f->n_levels; k++) {
            if (k != p->cells[cell].levels[i]) {
                json_put(levels, f->levels[k].text,
                         program_task_params(p, stage, neighbour(p, cell, i, k)));
            }
        }
        json_put(peers, f->name, levels);
    }
    return peers;
}

/* Paths of [data] with their locked digests; under --describe nothing is hashed. */
static cJSON *data_of(const struct plan_program *p, const struct lock *lock)
{
    cJSON *data = json_object();
    for (size_t i = 0; i < p->n_data; i++) {
        cJSON *entry = json_object();
        json_put_string(entry, "path", p->data[i].abs_path);
        if (lock != NULL) {
            json_put_string(entry, "sha256", lock_data_digest(lock, p->data[i].name));
        }
        json_put(data, p->data[i].name, entry);
    }
    return data;
}

/* Digest and cell of a task of the grid. */
static void put_cell(cJSON *task, const struct plan_program *p, const char *root,
                     const struct task_attempt *a)
{
    char hex[DIGEST_HEX_SIZE];
    task_id(p, root, a->cell, a->stage, hex);
    json_put_string(task, "digest", hex);
    cJSON *cell = json_object();
    task_cell_id(p, root, a->cell, hex);
    json_put_string(cell, "id", hex);
    json_put_string(cell, "name", p->cells[a->cell].name);
    json_put(cell, "factors", cell_factors(p, a->cell));
    json_put(task, "cell", cell);
}

/* Digest and expectation of an apparatus check; "cell" is null. */
static void put_apparatus(cJSON *task, const struct plan_program *p, const char *root,
                          const struct plan_apparatus *a)
{
    char hex[DIGEST_HEX_SIZE];
    task_apparatus_id(p, root, a, hex);
    json_put_string(task, "digest", hex);
    json_put_null(task, "cell");
    cJSON *spec = json_object();
    json_put_string(spec, "name", declared_name(p, a));
    json_put_string(spec, "model", a->model);
    json_put(spec, "expect", json_copy(json_member(a->spec, "expect")));
    json_put(task, "apparatus", spec);
}

/* The metrics of the stage that counted measures read, each once. */
static cJSON *sealed_metrics(const struct plan_program *p, size_t stage)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        bool is_new = m->counted && m->stage == stage;
        const cJSON *known = NULL;
        cJSON_ArrayForEach(known, list)
        {
            is_new = is_new && strcmp(known->valuestring, m->metric) != 0;
        }
        if (is_new) {
            json_push_string(list, m->metric);
        }
    }
    return list;
}

/* What the task is, without the attempt; under --describe the root does not exist yet. */
static void put_identity(cJSON *task, const struct plan_program *p, const struct lock *lock,
                         const struct task_attempt *a)
{
    const char *root = lock == NULL ? "" : lock->root;
    json_put_int(task, "protocol", TASK_PROTOCOL);
    json_put_string(task, "program", p->name);
    if (a->apparatus != NULL) {
        put_apparatus(task, p, root, a->apparatus);
    } else {
        put_cell(task, p, root, a);
    }
    if (lock != NULL) {
        json_put_string(task, "root", root);
        json_put_string(task, "head", lock->head);
    }
    const struct plan_stage *s = &p->stages[a->stage];
    json_put_string(task, "stage", s->name);
    cJSON *command = json_array();
    for (size_t i = 0; i < s->n_command; i++) {
        json_push_string(command, s->command[i]);
    }
    json_put(task, "command", command);
    json_put_bool(task, "sealed", program_stage_is_sealed(p, a->stage));
    json_put(task, "sealed_metrics", sealed_metrics(p, a->stage));
}

/* The members that belong to one attempt; under --describe there is neither id nor input. */
static void put_attempt(cJSON *task, const struct plan_program *p, const struct task_attempt *a)
{
    const struct plan_stage *s = &p->stages[a->stage];
    if (a->id != NULL) {
        json_put_string(task, "attempt", a->id);
        json_put_int(task, "attempt_no", a->no);
    }
    cJSON *inputs = json_object();
    for (size_t i = 0; a->input_folders != NULL && i < s->n_after; i++) {
        json_put_string(inputs, p->stages[s->after[i]].name, a->input_folders[i]);
    }
    json_put(task, "inputs", inputs);
    cJSON *resume = json_array();
    for (size_t i = 0; i < a->n_resume; i++) {
        json_push_string(resume, a->resume[i]);
    }
    json_put(task, "resume", resume);
    if (a->accepts.folder != NULL) {
        cJSON *accepts = json_object();
        json_put_string(accepts, "folder", a->accepts.folder);
        json_put_string(accepts, "sha256", a->accepts.sha256);
        json_put(task, "accepts", accepts);
    }
}

cJSON *task_json_build(const struct plan_program *p, const struct lock *lock,
                       const struct task_attempt *a)
{
    const struct plan_stage *s = &p->stages[a->stage];
    cJSON *task = json_object();
    put_identity(task, p, lock, a);
    put_attempt(task, p, a);
    json_put(task, "params", task_params(p, lock, a->apparatus != NULL ? 0 : a->cell, a->stage));
    if (lock == NULL) {
        json_put(task, "peers", peers_of(p, a->cell, a->stage));
    }
    json_put(task, "data", data_of(p, lock));
    json_put_int(task, "threads", s->threads);
    if (a->memory_bytes > 0) {
        json_put_int(task, "memory_bytes", a->memory_bytes);
    }
    if (a->deadline_ms > 0) {
        json_put_int(task, "deadline_ms", a->deadline_ms);
    }
    if (s->run.checkpoint_ms > 0) {
        json_put_number(task, "checkpoint", (double)s->run.checkpoint_ms / 1000);
    } else {
        json_put_string(task, "checkpoint", "auto");
    }
    return task;
}

void task_environment(const struct plan_stage *s, const char *folder, task_variable_fn *fn,
                      void *ctx)
{
    char threads[24];
    char *task = path_join(folder, LAYOUT_TASK);
    char *events = path_join(folder, LAYOUT_EVENTS);
    (void)snprintf(threads, sizeof(threads), "%lld", (long long)s->threads);
    const char *environment = s->environment_path;
    char *programs =
        environment == NULL ? xstrdup(WORKER_PATH) : xasprintf("%s/bin:" WORKER_PATH, environment);
    const struct {
        const char *name;
        const char *value;
    } list[] = {
        {"PATH", s->image == NULL ? programs : NULL}, /* an image has its own */
        {"HOME", folder}, /* nothing of the user's own settings reaches a worker */
        {"LANG", "C.UTF-8"},
        {"TZ", "UTC"},
        {"OMP_NUM_THREADS", threads},
        {"OPENBLAS_NUM_THREADS", threads},
        {"PREREG_TASK", task},
        {"PREREG_EVENTS", events},
        {"VIRTUAL_ENV", environment},
    };
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        if (list[i].value != NULL && json_member(s->env, list[i].name) == NULL) {
            fn(ctx, list[i].name, list[i].value);
        }
    }
    const cJSON *own;
    cJSON_ArrayForEach(own, s->env)
    {
        if (cJSON_IsString(own)) {
            fn(ctx, own->string, own->valuestring);
        }
    }
    free(programs);
    free(task);
    free(events);
}

struct variables {
    char **list;
    size_t n;
};

static void add_variable(void *ctx, const char *name, const char *value)
{
    struct variables *v = ctx;
    v->list = xreallocarray(v->list, v->n + 2, sizeof(*v->list));
    v->list[v->n++] = xasprintf("%s=%s", name, value);
    v->list[v->n] = NULL;
}

char **task_environment_list(const struct plan_stage *s, const char *folder)
{
    struct variables v = {.list = xcalloc(1, sizeof(*v.list))};
    task_environment(s, folder, add_variable, &v);
    return v.list;
}
