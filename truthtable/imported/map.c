/*
 * Reads a map: which results and samples files belong to which cell and stage, what the harness
 * calls a stage's task, and which of its keys are which metrics. Unknown keys, cells and stages are
 * errors with the nearest known name, because a typo would otherwise leave a cell silently without
 * records. Relative paths start at the map's folder.
 */
#include "truthtable/imported/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"

#define MAP_SCHEMA 1

/* Borrows the program. */
void map_init(struct map *m, const struct plan_program *p)
{
    *m = (struct map){.program = p};
    arena_init(&m->arena);
    m->unmatched = json_array();
}

/* Sources and their texts become invalid. */
void map_release(struct map *m)
{
    cJSON_Delete(m->json);
    cJSON_Delete(m->unmatched);
    free(m->sources);
    free(m->records);
    arena_release(&m->arena);
    *m = (struct map){0};
}

/* The path from the folder, kept in the arena. */
static const char *absolute(struct map *m, const char *folder, const char *path)
{
    char *full = path_absolute(folder, path);
    const char *kept = arena_strdup(&m->arena, full);
    free(full);
    return kept;
}

/* A file of records, from the map or from the command line. */
void map_add_records(struct map *m, const char *folder, const char *path)
{
    ARRAY_GROW(m->records, m->n_records, m->cap_records);
    m->records[m->n_records++] = absolute(m, folder, path);
}

/* The task's name for a stage may depend on the cell, through the parameter `task`. */
const char *map_task(struct map *m, size_t stage, size_t cell)
{
    const char *name = m->program->stages[stage].name;
    const cJSON *said = json_member(json_member(m->json, "tasks"), name);
    if (cJSON_IsString(said)) {
        return said->valuestring;
    }
    cJSON *params = program_task_params(m->program, stage, cell);
    const cJSON *task = json_member(params, "task");
    const char *kept = cJSON_IsString(task) ? arena_strdup(&m->arena, task->valuestring) : name;
    cJSON_Delete(params);
    return kept;
}

/* The map's names for one stage's metrics. */
const cJSON *map_metrics(const struct map *m, size_t stage)
{
    return json_member(json_member(m->json, "metrics"), m->program->stages[stage].name);
}

/* ---- the file ---- */

/* The index of a stage, or an error with the nearest name. */
static int find_stage(const struct map *m, const char *name, size_t *stage, struct err *err)
{
    const struct plan_program *p = m->program;
    *stage = program_find_stage(p, name);
    if (*stage != INDEX_NONE) {
        return 0;
    }
    const char **known = xcalloc(p->n_stages + 1, sizeof(*known));
    for (size_t i = 0; i < p->n_stages; i++) {
        known[i] = p->stages[i].name;
    }
    const char *near = text_nearest(name, known, p->n_stages);
    free(known);
    return near == NULL
               ? err_set(err, ERR_NOT_FOUND, "the program has no stage \"%.64s\"", name)
               : err_set(err, ERR_NOT_FOUND,
                         "the program has no stage \"%.64s\"; did you mean \"%s\"?", name, near);
}

/* The index of a cell, or an error that shows what cells are called here. */
static int find_cell(const struct map *m, const char *name, size_t *cell, struct err *err)
{
    *cell = program_find_cell(m->program, name);
    return *cell != INDEX_NONE
               ? 0
               : err_set(err, ERR_NOT_FOUND,
                         "the program has no cell \"%.80s\"; its first is \"%.80s\"", name,
                         m->program->cells[0].name);
}

/* Refuses keys that are not among `known`, with the nearest of them. */
static int check_keys(const cJSON *obj, const char *const *known, size_t n, struct err *err)
{
    for (const cJSON *v = obj->child; v != NULL; v = v->next) {
        size_t i = 0;
        while (i < n && strcmp(v->string, known[i]) != 0) {
            i++;
        }
        const char *near = i < n ? NULL : text_nearest(v->string, known, n);
        if (i == n) {
            return err_set(err, ERR_SYNTAX, "unknown key \"%.60s\"%s%s%s", v->string,
                           near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        }
    }
    return 0;
}

/* The same for an element of a list, which must be an object. */
static int check_element(const cJSON *v, const char *const *known, size_t n, struct err *err)
{
    return cJSON_IsObject(v) ? check_keys(v, known, n, err)
                             : err_set(err, ERR_SYNTAX, "is not an object");
}

/* A string, or a list of strings. */
static int take_paths(struct map *m, const char *folder, const cJSON *v, struct map_source *s,
                      struct err *err)
{
    const cJSON *first = cJSON_IsArray(v) ? v->child : v;
    if (v == NULL) {
        return 0;
    }
    s->samples = arena_array(&m->arena, cJSON_IsArray(v) ? (size_t)cJSON_GetArraySize(v) + 1 : 1,
                             sizeof(*s->samples));
    for (const cJSON *p = first; p != NULL; p = cJSON_IsArray(v) ? p->next : NULL) {
        if (!cJSON_IsString(p)) {
            return err_set(err, ERR_SYNTAX, "\"samples\" is a path or a list of paths");
        }
        char *full = map_pattern_path(folder, p->valuestring);
        s->samples[s->n_samples++] = arena_strdup(&m->arena, full);
        free(full);
    }
    return 0;
}

/* One element of "files". */
static int take_file(struct map *m, const char *folder, const cJSON *v, struct err *err)
{
    static const char *const keys[] = {"cell", "stage", "results", "samples"};
    struct map_source s = {.stage = INDEX_NONE};
    const char *cell = NULL;
    const char *stage = NULL;
    const char *results = NULL;
    int rc = check_element(v, keys, ARRAY_LEN(keys), err);
    if (rc != 0 || (rc = json_get_string(v, "cell", &cell, err)) != 0 ||
        (rc = json_get_string(v, "results", &results, err)) != 0 ||
        (rc = json_opt_string(v, "stage", &stage, err)) != 0 ||
        (rc = find_cell(m, cell, &s.cell, err)) != 0 ||
        (stage != NULL && (rc = find_stage(m, stage, &s.stage, err)) != 0) ||
        (rc = take_paths(m, folder, json_member(v, "samples"), &s, err)) != 0) {
        return rc;
    }
    /* Only a source that is complete is added. */
    s.results = absolute(m, folder, results);
    ARRAY_GROW(m->sources, m->n_sources, m->cap_sources);
    m->sources[m->n_sources++] = s;
    return 0;
}

/* One element of "pattern". */
static int take_pattern(struct map *m, const char *folder, const cJSON *v, struct err *err)
{
    static const char *const keys[] = {"results", "samples"};
    const char *results = NULL;
    const char *samples = NULL;
    int rc = check_element(v, keys, ARRAY_LEN(keys), err);
    if (rc != 0 || (rc = json_get_string(v, "results", &results, err)) != 0 ||
        (rc = json_opt_string(v, "samples", &samples, err)) != 0) {
        return rc;
    }
    return map_add_pattern(m, folder, results, samples, err);
}

/* One element of "records". */
static int take_record(struct map *m, const char *folder, const cJSON *v, struct err *err)
{
    if (!cJSON_IsString(v)) {
        return err_set(err, ERR_SYNTAX, "is not a path");
    }
    map_add_records(m, folder, v->valuestring);
    return 0;
}

typedef int take_fn(struct map *m, const char *folder, const cJSON *v, struct err *err);

/* Every element of a list of the map; errors name the list and the index. */
static int take_list(struct map *m, const char *folder, const char *key, take_fn *take,
                     struct err *err)
{
    const cJSON *list = json_member(m->json, key);
    size_t i = 0;
    int rc = 0;
    if (list != NULL && !cJSON_IsArray(list)) {
        return err_set(err, ERR_SYNTAX, "\"%s\" is not a list", key);
    }
    for (const cJSON *v = list == NULL ? NULL : list->child; rc == 0 && v != NULL; v = v->next) {
        rc = take(m, folder, v, err);
        if (rc != 0) {
            (void)err_wrap(err, "%s %zu", key, i);
        }
        i++;
    }
    return rc;
}

/* The keys of "tasks" and "metrics" must be stages, and their values strings. */
static int check_tables(const struct map *m, struct err *err)
{
    const cJSON *v = NULL;
    const cJSON *k = NULL;
    size_t stage = 0;
    cJSON_ArrayForEach(v, json_member(m->json, "tasks"))
    {
        int rc = find_stage(m, v->string, &stage, err);
        if (rc != 0) {
            return rc;
        }
        if (!cJSON_IsString(v)) {
            return err_set(err, ERR_SYNTAX, "tasks.%.64s is not the name of a task", v->string);
        }
    }
    cJSON_ArrayForEach(v, json_member(m->json, "metrics"))
    {
        int rc = find_stage(m, v->string, &stage, err);
        if (rc != 0) {
            return rc;
        }
        cJSON_ArrayForEach(k, v)
        {
            if (k->string == NULL || !cJSON_IsString(k)) {
                return err_set(err, ERR_SYNTAX, "metrics.%.64s is not a table of keys", v->string);
            }
        }
    }
    return 0;
}

/* Files before patterns before records: the order of the sources. */
static int take_map(struct map *m, const char *folder, struct err *err)
{
    static const char *const keys[] = {"schema",  "label",   "tasks", "metrics",
                                       "pattern", "records", "files"};
    int64_t schema = 0;
    if (!cJSON_IsObject(m->json)) {
        return err_set(err, ERR_SYNTAX, "a map is an object");
    }
    int rc = check_keys(m->json, keys, ARRAY_LEN(keys), err);
    if (rc != 0 || (rc = json_get_int(m->json, "schema", 0, 1000, &schema, err)) != 0) {
        return rc;
    }
    if (schema != MAP_SCHEMA) {
        return err_set(err, ERR_VERSION, "a map of schema %lld; this reads %d", (long long)schema,
                       MAP_SCHEMA);
    }
    if ((rc = json_opt_string(m->json, "label", &m->label, err)) != 0 ||
        (rc = check_tables(m, err)) != 0 ||
        (rc = take_list(m, folder, "files", take_file, err)) != 0 ||
        (rc = take_list(m, folder, "pattern", take_pattern, err)) != 0) {
        return rc;
    }
    return take_list(m, folder, "records", take_record, err);
}

/* Messages begin with the map's path. */
int map_read(struct map *m, const char *path, struct err *err)
{
    char *full = path_absolute(NULL, path);
    char *folder = path_folder(full);
    int rc = json_read_file(path, MAP_BYTES_MAX, &m->json, err);
    if (rc == 0 && take_map(m, folder, err) != 0) {
        rc = err_wrap(err, "%s", path);
    }
    free(folder);
    free(full);
    return rc;
}
