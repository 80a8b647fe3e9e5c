/*
 * Whether every level, stage and [data] entry has a use. A level of a factor has one when some cell
 * with it is compared (an arm of a contrast), or read by a condition: a level's mean, a ratio, a
 * fact over all cells. A level of an input has one when some records make it possible. Whether a
 * stage or an entry has one is decided by searching for its name as a word, which notes too little
 * rather than too much.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/prove/check_parts.h"

struct use {
    const struct rules *rules;
    bool *cells; /* [cell]: some figure reads it */
};

/* Marks the cells with a level as read; INDEX_NONE marks all. */
static void use_cells_at(struct use *u, size_t factor, size_t level)
{
    const struct plan_program *p = u->rules->program;
    for (size_t c = 0; c < p->n_cells; c++) {
        u->cells[c] = u->cells[c] || factor == INDEX_NONE || p->cells[c].levels[factor] == level;
    }
}

/* Marks the cells that a rank or a trend compares. */
static void use_cells_within(struct use *u, const struct cond *c)
{
    const struct plan_program *p = u->rules->program;
    for (size_t i = 0; i < p->n_cells; i++) {
        bool within = true;
        for (size_t k = 0; k < c->n_where; k++) {
            within = within && p->cells[i].levels[c->where[k].factor] == c->where[k].level;
        }
        u->cells[i] = u->cells[i] || within;
    }
}

/* Marks the cells that a condition reads apart from contrasts, which use_contrasts() covers. */
static void use_condition(struct use *u, const struct cond *c)
{
    if (c->kind == COND_FACT) {
        use_cells_at(u, INDEX_NONE, 0);
    } else if (c->kind == COND_MEASURE) {
        use_cells_at(u, c->factor, c->level_a);
    } else if (c->kind == COND_RANK || (c->kind == COND_TREND && c->index == INDEX_NONE)) {
        use_cells_within(u, c);
    } else if (c->kind == COND_RATIO) {
        use_cells_at(u, c->factor, c->level_a);
        use_cells_at(u, c->factor, c->level_b);
    }
    for (size_t i = 0; i < c->n_kids; i++) {
        use_condition(u, c->kids[i]);
    }
}

/* Whether a cell is in either arm of a contrast. */
static bool is_within(const struct plan_contrast *k, const struct plan_cell *cell)
{
    size_t level = cell->levels[k->factor];
    bool within = level == k->level_a || level == k->level_b;
    for (size_t i = 0; i < k->n_where; i++) {
        within = within && cell->levels[k->where[i].factor] == k->where[i].level;
    }
    return within;
}

/* A declared contrast uses its cells even if no condition reads it: the report shows it. */
static void use_contrasts(struct use *u)
{
    const struct plan_program *p = u->rules->program;
    for (size_t k = 0; k < p->n_contrasts; k++) {
        for (size_t c = 0; c < p->n_cells && !p->contrasts[k].is_difference; c++) {
            u->cells[c] = u->cells[c] || is_within(&p->contrasts[k], &p->cells[c]);
        }
    }
}

/* With the number of cells that were trained for nothing. */
static void warn_factor_level(const struct plan_program *p, size_t factor, size_t level,
                              size_t n_cells, struct diag *diag)
{
    const struct plan_factor *f = &p->factors[factor];
    diag_add(diag, DIAG_WARNING, f->place.line, f->place.column,
             "level \"%s\" of %s has no use: no contrast and no condition reads its %zu cells",
             f->levels[level].text, f->name, n_cells);
}

/* Warns of levels none of whose cells is read. */
static void check_factor_levels(const struct use *u, struct diag *diag)
{
    const struct plan_program *p = u->rules->program;
    for (size_t f = 0; f < p->n_factors; f++) {
        size_t n_levels = p->factors[f].n_levels;
        size_t *n_cells = xcalloc(n_levels, sizeof(*n_cells));
        size_t *n_used = xcalloc(n_levels, sizeof(*n_used));
        for (size_t c = 0; c < p->n_cells; c++) {
            n_cells[p->cells[c].levels[f]]++;
            n_used[p->cells[c].levels[f]] += u->cells[c] ? 1 : 0;
        }
        for (size_t l = 0; l < n_levels; l++) {
            if (n_used[l] == 0) {
                warn_factor_level(p, f, l, n_cells[l], diag);
            }
        }
        free(n_cells);
        free(n_used);
    }
}

/* A conflict of a single level is a proof that this level is never possible. */
static void check_input_levels(const struct check_report *r, struct diag *diag)
{
    const struct plan_program *p = r->program;
    for (size_t c = 0; c < r->n_conflicts; c++) {
        size_t n = 0;
        size_t input = INDEX_NONE;
        for (size_t i = 0; i < p->n_table_inputs; i++) {
            bool part = r->conflicts[c].levels[i] != INDEX_NONE;
            input = part ? i : input;
            n += part ? 1 : 0;
        }
        /* A conflict of one level: that level is impossible by itself. */
        if (n == 1) {
            const struct plan_input *in = &p->inputs[p->table_inputs[input]];
            const struct input_level *l = &in->levels[r->conflicts[c].levels[input]];
            diag_add(diag, DIAG_WARNING, l->condition.place.line, l->condition.place.column,
                     "level \"%s\" of input %s has no use: no complete set of records makes it "
                     "possible",
                     l->name, in->name);
        }
    }
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether the text contains the name as a whole word. */
static bool text_names(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        if ((at == text || !is_of_name(at[-1])) && !is_of_name(at[n])) {
            return true;
        }
    }
    return false;
}

/* Whether any text or key within names it; no tree of a program is deep. */
static bool is_named(const cJSON *within, const char *name)
{
    if (within != NULL && within->string != NULL && text_names(within->string, name)) {
        return true;
    }
    if (cJSON_IsString(within)) {
        return text_names(within->valuestring, name);
    }
    const cJSON *m;
    cJSON_ArrayForEach(m, within)
    {
        if (is_named(m, name)) {
            return true;
        }
    }
    return false;
}

/* Instruments are searched by name, because each kind names stages in its own members. */
static bool stage_is_read(const struct plan_program *p, const struct rules *rules, size_t stage)
{
    bool read = false;
    for (size_t m = 0; m < p->n_measures; m++) {
        read = read || p->measures[m].stage == stage;
    }
    for (size_t a = 0; a < p->n_apparatus; a++) {
        read = read || p->apparatus[a].stage == stage;
    }
    for (size_t f = 0; f < rules->facts.n; f++) {
        read = read || rules->facts.refs[f].stage == stage;
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        for (size_t i = 0; i < p->stages[s].n_after; i++) {
            read = read || p->stages[s].after[i] == stage;
        }
    }
    return read || is_named(json_member(p->tree, "instrument"), p->stages[stage].name);
}

/* A stage may run for its side effects, so this is a note. */
static void note_stages(const struct plan_program *p, const struct rules *rules, struct diag *diag)
{
    for (size_t s = 0; s < p->n_stages; s++) {
        if (!stage_is_read(p, rules, s)) {
            diag_add(diag, DIAG_NOTE, p->stages[s].place.line, p->stages[s].place.column,
                     "stage.%s: no measure, no condition and no other stage reads it: it runs for "
                     "nothing",
                     p->stages[s].name);
        }
    }
}

/* Ours read the data that their parameters name; any other may know names by itself. */
static bool workers_are_ours(const struct plan_program *p)
{
    static const char *const names[] = {"prereg-train", "prereg-eval", "prereg-lm-eval"};
    size_t n = 0;
    for (size_t s = 0; s < p->n_stages; s++) {
        const char *slash = strrchr(p->stages[s].command[0], '/');
        const char *worker = slash == NULL ? p->stages[s].command[0] : slash + 1;
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            n += strcmp(worker, names[i]) == 0 ? 1 : 0;
        }
    }
    return n == p->n_stages;
}

/* Parameters name data, or take the name from a level of a factor. */
static void note_data(const struct plan_program *p, struct diag *diag)
{
    static const char *const readers[] = {"stage", "factor", "apparatus"};
    for (size_t d = 0; d < p->n_data && workers_are_ours(p); d++) {
        bool named = false;
        for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
            named = named || is_named(json_member(p->tree, readers[i]), p->data[d].name);
        }
        if (!named) {
            diag_add(diag, DIAG_NOTE, p->data[d].place.line, p->data[d].place.column,
                     "data.%s: no stage names it; it is locked all the same", p->data[d].name);
        }
    }
}

/* Where nothing is known, an input whose levels may all turn out false says so. */
static void warn_uncovered_inputs(const struct check_report *r, const struct rules *rules,
                                  struct diag *diag)
{
    const struct plan_program *p = r->program;
    struct evidence e;
    struct coverage coverage;
    struct table_reading reading;
    struct table_evaluation ev;
    evidence_init(&e, p);
    /* An evaluation without any record: what is undetermined here depends on the conditions
     * alone. */
    coverage_init(&coverage, &e, &e.arena);
    reading_of_evidence(&reading, &e, rules, &coverage, &e.arena);
    evaluation_run(&ev, rules, &reading, &e.arena);
    for (size_t i = 0; i < p->n_inputs; i++) {
        if (ev.inputs[i].may_be_none && r->uncovered[i] == NULL) {
            diag_add(diag, DIAG_WARNING, p->inputs[i].place.line, p->inputs[i].place.column,
                     "input %s: its levels are not shown to cover every case, so that all of them "
                     "stay possible until one is true; let the last one be [\"%s\", \"otherwise\"]",
                     p->inputs[i].name, p->inputs[i].levels[p->inputs[i].n_levels - 1].name);
        }
    }
    evidence_release(&e);
}

/* Whether a condition reads a field that needs spread between replicates. */
static bool reads_interval(const struct cond *c)
{
    bool reads = (c->kind == COND_CONTRAST || c->kind == COND_TREND) && c->field >= FIELD_SE &&
                 c->field <= FIELD_BF10;
    for (size_t i = 0; i < c->n_kids && !reads; i++) {
        reads = reads_interval(c->kids[i]);
    }
    return reads;
}

/* The rule that leaves such an input open where the replicates agree. */
static void note_intervals(const struct plan_program *p, const struct rules *rules,
                           struct diag *diag)
{
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *in = &p->inputs[p->table_inputs[i]];
        for (size_t l = 0; l < in->n_levels; l++) {
            if (reads_interval(rules->inputs[p->table_inputs[i]][l])) {
                diag_add(diag, DIAG_NOTE, in->levels[l].condition.place.line,
                         in->levels[l].condition.place.column,
                         "input %s rests on an interval over replicates, which is unknown where "
                         "they agree exactly (no spread seen); of a proportion, item_low and "
                         "item_high are over its items",
                         in->name);
                /* One note for each input is enough. */
                break;
            }
        }
    }
}

/* Errors are not possible here: everything found is a warning or a note. */
void check_use(const struct check_report *r, const struct rules *rules, struct diag *diag)
{
    const struct plan_program *p = r->program;
    struct use u = {.rules = rules, .cells = xcalloc(p->n_cells, sizeof(*u.cells))};
    use_contrasts(&u);
    for (size_t i = 0; i < p->n_inputs; i++) {
        for (size_t l = 0; l < p->inputs[i].n_levels; l++) {
            use_condition(&u, rules->inputs[i][l]);
        }
    }
    for (size_t v = 0; v < p->n_validity; v++) {
        use_condition(&u, rules->validity[v]);
    }
    check_factor_levels(&u, diag);
    check_input_levels(r, diag);
    warn_uncovered_inputs(r, rules, diag);
    note_intervals(p, rules, diag);
    note_stages(p, rules, diag);
    note_data(p, diag);
    free(u.cells);
}
