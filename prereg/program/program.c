/*
 * Loads a program: TOML to tree, tree to JSON, then the section readers (load_*.c), and, only
 * without errors, the grid. Relative paths start at the folder of grid.toml, or at a given one for
 * a copy that was moved into the state folder. What is computed here beyond loading is which stages
 * are sealed and counted, and the plan that a lock covers.
 */
#include "prereg/program/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "prereg/program/input_reads.h"
#include "prereg/program/load.h"

/* `folder` NULL: relative paths start at the folder of `path`. */
static struct program *program_create(const char *path, const char *folder)
{
    struct program *p = xcalloc(1, sizeof(*p));
    arena_init(&p->arena);
    p->empty_object = json_object();
    p->path = arena_strdup(&p->arena, path);
    char *abs_path = folder == NULL ? path_absolute(NULL, path) : path_absolute(NULL, folder);
    char *own = folder == NULL ? path_folder(abs_path) : xstrdup(abs_path);
    p->folder = arena_strdup(&p->arena, own);
    free(own);
    free(abs_path);
    p->binding_counter = INDEX_NONE;
    return p;
}

void program_free(struct program *p)
{
    if (p == NULL) {
        return;
    }
    cJSON_Delete(p->tree);
    cJSON_Delete(p->empty_object);
    arena_release(&p->arena);
    free(p);
}

/* Each section reader needs the ones before it. */
static void load_sections(struct load *l)
{
    load_head(l);
    load_factors(l);
    load_data(l);
    load_stages(l);
    load_params(l);
    load_measures(l);
    load_contrasts(l);
    load_counters(l);
    load_inputs(l);
    load_outcomes(l);
    load_table(l);
    load_rules(l);
    load_forecasts(l);
    load_instruments(l);
    load_apparatus(l);
    load_run(l);
}

/* Stages are in topological order: going backwards, a stage is final before those it waits for. */
static void mark_counted(struct program *p)
{
    for (size_t i = 0; i < p->n_measures; i++) {
        struct stage *s = &p->stages[p->measures[i].stage];
        s->sealed = s->sealed || p->measures[i].counted;
    }
    for (size_t i = p->n_stages; i-- > 0;) {
        p->stages[i].counted = p->stages[i].counted || p->stages[i].sealed;
        for (size_t k = 0; p->stages[i].counted && k < p->stages[i].n_after; k++) {
            p->stages[p->stages[i].after[k]].counted = true;
        }
    }
}

/* Every reader runs whatever the others found; cells are expanded only for a program without
 * errors. */
static int parse_into(struct program *p, const char *text, size_t len, struct diag *diag,
                      struct err *err)
{
    struct toml_node *root = NULL;
    struct load l = {.p = p, .diag = diag};
    size_t errors_before = diag->n_errors;
    if (toml_parse(text, len, &p->arena, &root, diag) == 0) {
        l.root = root;
        load_tree(&l);
        load_sections(&l);
        if (grid_check_size(&l) && diag->n_errors == errors_before) {
            mark_counted(p);
            mark_budgeted(p);
            grid_expand(p);
            grid_check_names(&l);
        }
    }
    return diag->n_errors == errors_before ? 0 : diag_result(diag, err);
}

/* where: path, and the folder for relative paths or NULL. */
static int parse_from(const char *text, size_t len, const char *const where[2],
                      struct program **out, struct diag *diag, struct err *err)
{
    struct program *p = program_create(where[0], where[1]);
    int rc = parse_into(p, text, len, diag, err);
    if (rc != 0) {
        program_free(p);
        p = NULL;
    }
    *out = p;
    return rc;
}

int program_parse(const char *text, size_t len, const char *path, struct program **out,
                  struct diag *diag, struct err *err)
{
    return parse_from(text, len, (const char *const[]){path, NULL}, out, diag, err);
}

int program_load_from(const char *path, const char *folder, struct program **out, struct diag *diag,
                      struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    int rc = file_read(path, TOML_BYTES_MAX, &text, err);
    if (rc == 0) {
        rc = parse_from(text.buf, text.len, (const char *const[]){path, folder}, out, diag, err);
    } else {
        diag_add(diag, DIAG_ERROR, 0, 0, "%s", err->msg);
    }
    strbuf_release(&text);
    return rc;
}

int program_load(const char *path, struct program **out, struct diag *diag, struct err *err)
{
    return program_load_from(path, NULL, out, diag, err);
}

size_t program_n_tasks(const struct program *p)
{
    return p->n_cells * p->n_stages;
}

bool program_stage_is_sealed(const struct program *p, size_t stage)
{
    return p->stages[stage].sealed;
}

bool program_stage_is_counted(const struct program *p, size_t stage)
{
    return p->stages[stage].counted;
}

bool program_stage_is_budgeted(const struct program *p, size_t stage)
{
    return p->stages[stage].budgeted;
}

bool program_stage_is_excludable(const struct program *p, size_t stage)
{
    return p->stages[stage].excludable;
}

size_t program_find_stage(const struct program *p, const char *name)
{
    return names_find(names_stages(p), name);
}

size_t program_find_measure(const struct program *p, const char *name)
{
    return names_find(names_measures(p), name);
}

size_t program_find_contrast(const struct program *p, const char *name)
{
    return names_find(names_contrasts(p), name);
}

size_t program_find_counter(const struct program *p, const char *name)
{
    return names_find(names_counters(p), name);
}

size_t program_find_apparatus(const struct program *p, const char *name)
{
    for (size_t i = 0; i < p->n_apparatus; i++) {
        if (strcmp(p->apparatus[i].name, name) == 0) {
            return i;
        }
    }
    return INDEX_NONE;
}

size_t program_find_outcome(const struct program *p, const char *name)
{
    return names_find(names_outcomes(p), name);
}

/* The sections whose order a report shows, as arrays, because RFC 8785 sorts keys. Stages are in
 * the order in which they run. */
static cJSON *covered_order(const struct program *p)
{
    static const char *const sections[] = {"measure",  "contrast",   "counter",  "outcome",
                                           "validity", "instrument", "forecast", "apparatus"};
    cJSON *order = json_object();
    cJSON *stages = json_array();
    for (size_t i = 0; i < p->n_stages; i++) {
        json_push_string(stages, p->stages[i].name);
    }
    json_put(order, "stage", stages);
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        const cJSON *section = json_member(p->tree, sections[i]);
        if (section == NULL) {
            continue;
        }
        cJSON *names = json_array();
        for (const cJSON *m = section->child; m != NULL; m = m->next) {
            json_push_string(names, m->string);
        }
        json_put(order, sections[i], names);
    }
    return order;
}

cJSON *program_covered(const struct program *p)
{
    cJSON *plan = json_object();
    for (const cJSON *m = p->tree->child; m != NULL; m = m->next) {
        if (strcmp(m->string, "run") != 0) {
            json_put(plan, m->string, json_copy(m));
        }
    }
    json_put(plan, "order", covered_order(p));
    return plan;
}

bool program_same_run(const struct program *a, const struct program *b)
{
    return json_equal(a->run.covered, b->run.covered);
}

int program_canonical(const struct program *p, struct strbuf *out, struct err *err)
{
    cJSON *plan = program_covered(p);
    int rc = json_canonical(plan, out, err);
    cJSON_Delete(plan);
    return rc;
}
