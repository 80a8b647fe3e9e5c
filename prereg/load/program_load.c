/*
 * Loads a program: TOML to tree, tree to JSON, then the section readers (load_*.c), and, only
 * without errors, the grid. Relative paths start at the folder of grid.toml, or at a given one for
 * a copy that was moved into the state folder. What is computed here beyond loading is which stages
 * are sealed and counted.
 */
#include "prereg/load/program_load.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/load/load.h"
#include "prereg/program/grid.h"
#include "prereg/program/input_reads.h"
#include "prereg/program/same_work.h"

/* `folder` NULL: relative paths start at the folder of `path`. */
static struct plan_program *program_create(const char *path, const char *folder)
{
    struct plan_program *p = xcalloc(1, sizeof(*p));
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

/* The readers of sections as bits, for those that met an error. */
enum {
    READ_FACTORS = 1 << 0,
    READ_DATA = 1 << 1,
    READ_STAGES = 1 << 2,
    READ_PARAMS = 1 << 3,
    READ_MEASURES = 1 << 4,
    READ_CONTRASTS = 1 << 5,
    READ_COUNTERS = 1 << 6,
    READ_INPUTS = 1 << 7,
    READ_OUTCOMES = 1 << 8,
    READ_TABLE = 1 << 9,
    READ_VALIDITY = 1 << 10,
    READ_FORECASTS = 1 << 11,
    READ_INSTRUMENTS = 1 << 12,
    READ_APPARATUS = 1 << 13,
    READ_RUN = 1 << 14,
    READ_HEAD = 1 << 15,
    READ_EXCLUSION = 1 << 16,
    READ_PIN = 1 << 17,
    READ_LOCK = 1 << 18,
    READ_SCOPE = 1 << 19,
    READ_RELEASE = 1 << 20,
    READ_SAME_WORK = 1 << 21,
    READ_REUSE = 1 << 22,
    READ_ALL = (1 << 23) - 1,
};

/* Each section reader needs the ones before it. Returns those that met an error. */
static unsigned load_sections(struct load *l)
{
    static const struct {
        void (*read)(struct load *l);
        unsigned bit;
    } readers[] = {{load_head, READ_HEAD},
                   {load_factors, READ_FACTORS},
                   {load_data, READ_DATA},
                   {load_stages, READ_STAGES},
                   {load_params, READ_PARAMS},
                   {load_measures, READ_MEASURES},
                   {load_contrasts, READ_CONTRASTS},
                   {load_same_work, READ_SAME_WORK},
                   {load_reuse, READ_REUSE},
                   {load_counters, READ_COUNTERS},
                   {load_inputs, READ_INPUTS},
                   {load_outcomes, READ_OUTCOMES},
                   {load_table, READ_TABLE},
                   {load_exclusion, READ_EXCLUSION},
                   {load_validity, READ_VALIDITY},
                   {load_pin, READ_PIN},
                   {load_lock_rule, READ_LOCK},
                   {load_release, READ_RELEASE},
                   {load_forecasts, READ_FORECASTS},
                   {load_instruments, READ_INSTRUMENTS},
                   {load_scope, READ_SCOPE},
                   {load_apparatus, READ_APPARATUS},
                   {load_run, READ_RUN}};
    unsigned faulty = 0;
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        const size_t before = l->diag->n_errors;
        readers[i].read(l);
        faulty |= l->diag->n_errors > before ? readers[i].bit : 0;
    }
    return faulty;
}

/* What can be checked without those sections. */
static struct program_sound sound_without(unsigned faulty)
{
    const unsigned stages = READ_FACTORS | READ_DATA | READ_STAGES;
    const unsigned named =
        READ_FACTORS | READ_STAGES | READ_MEASURES | READ_CONTRASTS | READ_COUNTERS;
    const unsigned table = READ_INPUTS | READ_OUTCOMES | READ_TABLE;
    const unsigned asides = READ_FORECASTS | READ_INSTRUMENTS;
    return (struct program_sound){
        .files = (faulty & (stages | READ_PIN | READ_APPARATUS)) == 0,
        .tasks = (faulty & (stages | READ_PARAMS | READ_SAME_WORK | READ_REUSE)) == 0,
        .run = (faulty & (READ_STAGES | READ_RUN)) == 0,
        .measures = (faulty & (READ_STAGES | READ_MEASURES)) == 0,
        .conditions = (faulty & named) == 0,
        .forecasts = (faulty & (named | asides)) == 0,
        .table = (faulty & table) == 0,
        .apparatus = (faulty & (READ_STAGES | READ_APPARATUS)) == 0,
        .decision =
            (faulty & (stages | READ_PARAMS | named | table | READ_VALIDITY | asides)) == 0};
}

/* Stages are in topological order: going backwards, a stage is final before those it waits for. */
static void mark_counted(struct plan_program *p)
{
    for (size_t i = 0; i < p->n_measures; i++) {
        struct plan_stage *s = &p->stages[p->measures[i].stage];
        s->sealed = s->sealed || p->measures[i].counted;
    }
    for (size_t i = p->n_stages; i-- > 0;) {
        p->stages[i].counted = p->stages[i].counted || p->stages[i].sealed;
        for (size_t k = 0; p->stages[i].counted && k < p->stages[i].n_after; k++) {
            p->stages[p->stages[i].after[k]].counted = true;
        }
    }
}

/* Multiplies with a check for overflow; the double only serves the message. */
static bool check_size(struct load *l)
{
    const struct plan_program *p = l->p;
    size_t n = 1;
    bool over = false;
    double exact = 1;
    for (size_t i = 0; i < p->n_factors; i++) {
        size_t levels = p->factors[i].n_levels;
        exact *= (double)levels;
        over = over || (levels > 0 && n > PROGRAM_CELLS_MAX / levels);
        n = over ? n : n * levels;
    }
    if (over) {
        const struct place at = p->factors[0].place;
        diag_add(l->diag, DIAG_ERROR, at.line, at.column,
                 "the factors make %.6g cells; the limit is %zu", exact, PROGRAM_CELLS_MAX);
    }
    return !over;
}

/* A level may hold ',' or '=': two cells then could have one name. */
static void check_names(struct load *l)
{
    const struct plan_program *p = l->p;
    for (size_t i = 1; i < p->n_cells; i++) {
        const char *name = p->cells_by_name[i]->name;
        if (strcmp(p->cells_by_name[i - 1]->name, name) == 0) {
            const struct place at = p->factors[0].place;
            diag_add(l->diag, DIAG_ERROR, at.line, at.column,
                     "two cells would be called \"%s\": take ',' and '=' out of the levels", name);
            return;
        }
    }
}

/* Every reader runs whatever the others found; cells are expanded only where what makes them has no
 * errors. */
static int parse_into(struct plan_program *p, const char *text, size_t len,
                      struct program_sound *sound, struct diag *diag, struct err *err)
{
    struct toml_node *root = NULL;
    struct load l = {.p = p, .diag = diag};
    size_t errors_before = diag->n_errors;
    *sound = (struct program_sound){0};
    if (toml_parse(text, len, &p->arena, &root, diag) == 0) {
        l.root = root;
        load_tree(&l);
        unsigned faulty = diag->n_errors == errors_before ? 0 : READ_ALL;
        faulty |= load_sections(&l);
        faulty |= check_size(&l) ? 0 : READ_FACTORS;
        *sound = sound_without(faulty);
        if (sound->tasks && sound->measures) {
            mark_counted(p);
        }
        if (sound->tasks && sound->decision) {
            mark_budgeted(p);
        }
        if (sound->tasks) {
            grid_expand(p);
            same_work_expand(p);
            check_names(&l);
        }
        sound->decision = sound->decision && sound->tasks;
    }
    return diag->n_errors == errors_before ? 0 : diag_result(diag, err);
}

/* A program with errors is none. */
static int drop_faulty(int rc, struct plan_program **p)
{
    if (rc != 0) {
        program_free(*p);
        *p = NULL;
    }
    return rc;
}

/* Reads the file and parses it; where: path, and the folder for relative paths or NULL. */
static int load_from(const char *const where[2], struct plan_program **out,
                     struct program_sound *sound, struct diag *diag, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    *sound = (struct program_sound){0};
    int rc = file_read(where[0], LAYOUT_GRID_MAX, &text, err);
    if (rc == 0) {
        *out = program_create(where[0], where[1]);
        rc = parse_into(*out, text.buf, text.len, sound, diag, err);
    } else {
        diag_add(diag, DIAG_ERROR, 0, 0, "%s", err->msg);
    }
    strbuf_release(&text);
    return rc;
}

int program_parse(const char *text, size_t len, const char *path, struct plan_program **out,
                  struct diag *diag, struct err *err)
{
    struct program_sound sound;
    assert(path != NULL && out != NULL && diag != NULL);
    *out = program_create(path, NULL);
    return drop_faulty(parse_into(*out, text, len, &sound, diag, err), out);
}

int program_load_from(const char *path, const char *folder, struct plan_program **out,
                      struct diag *diag, struct err *err)
{
    struct program_sound sound;
    const char *const where[2] = {path, folder};
    return drop_faulty(load_from(where, out, &sound, diag, err), out);
}

int program_load_sound(const char *path, struct plan_program **out, struct program_sound *sound,
                       struct diag *diag, struct err *err)
{
    const char *const where[2] = {path, NULL};
    return load_from(where, out, sound, diag, err);
}

int program_load(const char *path, struct plan_program **out, struct diag *diag, struct err *err)
{
    return program_load_from(path, NULL, out, diag, err);
}
