/*
 * Whether the levels of every factor make different tasks. Levels of a factor that no task reads
 * are the same computation under other names: a contrast between them compares noise, and
 * replicates among them have a spread of 0. What counts is what a task asks of its worker, its
 * resolved parameters: those of the stage, a level's own from `when`, and "$factor".
 *
 * The stages that count are those that a measure or a condition reads, and all that they come
 * after: an evaluation need not read a factor that its training reads.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/xalloc.h"
#include "prereg/program/same_work.h"
#include "truthtable/condition/decision_rules.h"
#include "truthtable/condition/equal_pairs.h"
#include "truthtable/evidence/task_params.h"
#include "truthtable/prove/check.h"

struct reads {
    const struct plan_program *p;
    struct stage_set stages;  /* that count */
    struct stage_set telling; /* those that mention the factor in question */
    struct diag *diag;
};

/* The stages that a measure or a fact reads, and everything they come after. Stages are walked
 * backwards, so each is complete when its own predecessors are added. */
static struct stage_set stages_that_count(const struct rules *rules)
{
    const struct plan_program *p = rules->program;
    struct stage_set set = {0};
    for (size_t m = 0; m < p->n_measures; m++) {
        stage_set_add(&set, p->measures[m].stage);
    }
    for (size_t f = 0; f < rules->facts.n; f++) {
        stage_set_add(&set, rules->facts.refs[f].stage);
    }
    for (size_t s = p->n_stages; s-- > 0;) { /* stages are in topological order */
        for (size_t i = 0; stage_set_has(&set, s) && i < p->stages[s].n_after; i++) {
            stage_set_add(&set, p->stages[s].after[i]);
        }
    }
    return set;
}

/* Cells are numbered with the first factor slowest: neighboring levels of a factor are a stride
 * apart. */
static size_t stride_of(const struct plan_program *p, size_t factor)
{
    size_t stride = 1;
    for (size_t i = factor + 1; i < p->n_factors; i++) {
        stride *= p->factors[i].n_levels;
    }
    return stride;
}

/* The cell without the factor: "arch=dense, seed=1"; "" when it is the only factor. */
static void add_setting(struct strbuf *out, const struct plan_program *p, size_t factor,
                        size_t cell)
{
    for (size_t i = 0; i < p->n_factors; i++) {
        if (i != factor) {
            strbuf_addf(out, "%s%s=%s", out->len == 0 ? "" : ",", p->factors[i].name,
                        p->factors[i].levels[p->cells[cell].levels[i]].text);
        }
    }
}

struct level_asks {
    struct digest asked; /* at the present setting of the other factors */
    size_t group;        /* levels of one group were the same at every setting so far */
    size_t level;
};

/* Groups levels by what they ask; ties are broken by level, so that messages do not depend on the
 * sort. */
static int by_asked(const void *a, const void *b)
{
    const struct level_asks *x = a;
    const struct level_asks *y = b;
    int order = memcmp(x->asked.bytes, y->asked.bytes, sizeof(x->asked.bytes));
    return order != 0 ? order : (x->level > y->level) - (x->level < y->level);
}

/* Orders by the groups found so far, then by what is asked at the present setting. */
static int by_group(const void *a, const void *b)
{
    const struct level_asks *x = a;
    const struct level_asks *y = b;
    return x->group != y->group ? (x->group > y->group) - (x->group < y->group) : by_asked(a, b);
}

struct levels {
    size_t n;
    struct level_asks *items;
    bool some; /* at some setting two of them are the same and others are not: a, b, its first cell
                */
    size_t a;
    size_t b;
    size_t cell;
    bool all; /* at some setting all replicates are the same: its first cell */
    size_t all_cell;
};

/* Whether the plan says that two cells are one work in the stages that count. */
static bool is_declared(const struct reads *r, size_t a, size_t b)
{
    bool declared = true;
    for (size_t s = 0; s < r->p->n_stages; s++) {
        declared =
            declared && (!stage_set_has(&r->stages, s) || program_is_same_work(r->p, s, a, b));
    }
    return declared;
}

/* Compares the levels at one setting of the other factors. Groups are only ever split: two levels
 * remain in one group if they are the same at every setting. */
static void compare_at(const struct reads *r, size_t factor, size_t cell, struct levels *l)
{
    const size_t stride = stride_of(r->p, factor);
    for (size_t i = 0; i < l->n; i++) {
        l->items[i].asked = asked_digest(r->p, &r->telling, cell + l->items[i].level * stride);
    }
    qsort(l->items, l->n, sizeof(*l->items), by_asked);
    const bool all = r->p->factors[factor].replicate &&
                     digest_equal(&l->items[0].asked, &l->items[l->n - 1].asked);
    if (all && !l->all) {
        l->all = true;
        l->all_cell = cell;
    }
    for (size_t i = 1; i < l->n && !all && !l->some; i++) {
        l->some = digest_equal(&l->items[i - 1].asked, &l->items[i].asked) &&
                  !is_declared(r, cell + l->items[i - 1].level * stride,
                               cell + l->items[i].level * stride);
        l->a = l->items[i - 1].level;
        l->b = l->items[i].level;
        l->cell = cell;
    }
    qsort(l->items, l->n, sizeof(*l->items), by_group);
    size_t group = 0;
    size_t before = l->items[0].group;
    for (size_t i = 0; i < l->n; i++) {
        bool differs = l->items[i].group != before ||
                       (i > 0 && !digest_equal(&l->items[i - 1].asked, &l->items[i].asked));
        before = l->items[i].group;
        group += differs ? 1 : 0;
        l->items[i].group = group;
    }
}

/* No task names the factor at all. */
static void refuse_unread(const struct reads *r, const struct plan_factor *f)
{
    diag_add(r->diag, DIAG_ERROR, f->place.line, f->place.column,
             "factor.%s: no stage that a measure reads takes it: its %zu levels are the same tasks "
             "under other names; write NAME = \"$%s\" in the stage's params, or "
             "[stage.STAGE.when.%s]",
             f->name, f->n_levels, f->name, f->name);
}

/* Two levels that are the same everywhere are one level under two names. */
static void refuse_pair(const struct reads *r, const struct plan_factor *f, size_t a, size_t b)
{
    diag_add(r->diag, DIAG_ERROR, f->place.line, f->place.column,
             "factor.%s: levels \"%s\" and \"%s\" are the same tasks in every stage that a measure "
             "reads: nothing is compared between them",
             f->name, f->levels[a].text, f->levels[b].text);
}

/* Two levels that differ in some cells alone: an arm may have no effect on another factor's level.
 * Replicates that are alike among others that are not are a mistake. */
static void report_some(const struct reads *r, size_t factor, const struct levels *l)
{
    const struct plan_factor *f = &r->p->factors[factor];
    struct strbuf setting = STRBUF_INIT;
    add_setting(&setting, r->p, factor, l->cell);
    diag_add(r->diag, f->replicate ? DIAG_ERROR : DIAG_WARNING, f->place.line, f->place.column,
             "factor.%s: levels \"%s\" and \"%s\" are the same tasks where %s%s", f->name,
             f->levels[l->a].text, f->levels[l->b].text, setting.buf,
             f->replicate ? ": such replicates have no spread" : ": [[same_work]] runs them once");
    strbuf_release(&setting);
}

/* An arm that takes no seed at all may be a deterministic baseline. It has one value, and is
 * refused only where something rests on its spread (check_intervals). */
static void report_all(const struct reads *r, size_t factor, const struct levels *l)
{
    const struct plan_factor *f = &r->p->factors[factor];
    struct strbuf setting = STRBUF_INIT;
    add_setting(&setting, r->p, factor, l->all_cell);
    diag_add(r->diag, DIAG_WARNING, f->place.line, f->place.column,
             "factor.%s: all %zu levels are the same tasks where %s: one value there, not %zu "
             "replicates, and no contrast with it has an interval over replicates",
             f->name, f->n_levels, setting.buf, f->n_levels);
    strbuf_release(&setting);
}

/* Visits every setting once, through its cell with the factor's first level. */
static void compare_levels(const struct reads *r, size_t factor)
{
    const struct plan_program *p = r->p;
    const struct plan_factor *f = &p->factors[factor];
    struct levels l = {.n = f->n_levels, .items = xcalloc(f->n_levels, sizeof(*l.items))};
    bool refused = false;
    for (size_t i = 0; i < l.n; i++) {
        l.items[i].level = i;
    }
    for (size_t c = 0; c < p->n_cells; c++) {
        if (p->cells[c].levels[factor] == 0) {
            compare_at(r, factor, c, &l);
        }
    }
    for (size_t i = 1; i < l.n && !refused; i++) {
        refused = l.items[i - 1].group == l.items[i].group;
        if (refused) {
            refuse_pair(r, f, l.items[i - 1].level, l.items[i].level);
        }
    }
    if (!refused && l.some) {
        report_some(r, factor, &l);
    }
    if (!refused && l.all) {
        report_all(r, factor, &l);
    }
    free(l.items);
}

/* A parameter that always takes the factor makes all levels differ, which is the common case and
 * needs no comparison. */
static void compare_factor(struct reads *r, size_t factor)
{
    const struct plan_program *p = r->p;
    bool always = false;
    r->telling = (struct stage_set){0};
    for (size_t s = 0; s < p->n_stages; s++) {
        if (stage_set_has(&r->stages, s) &&
            asked_mentions(&p->stages[s], p->factors[factor].name)) {
            stage_set_add(&r->telling, s);
            always = always || asked_always(&p->stages[s], p->factors[factor].name);
        }
    }
    if (p->factors[factor].n_levels < 2 || always) {
        return;
    }
    if (!stage_set_is_empty(&r->telling)) {
        compare_levels(r, factor);
    } else {
        refuse_unread(r, &p->factors[factor]);
    }
}

/* ---- conditions on the spread of what has none ---- */

/* What the plan asks of the cells up to a stage. */
struct asked_of {
    bool known;
    bool compared; /* asked_telling() found something to compare */
    struct stage_set telling;
    const size_t *twins; /* of asked_twins(); stages with equal `telling` share it */
};

struct intervals {
    const struct rules *rules;
    const struct stage_set *before; /* of each stage */
    struct asked_of *asked;         /* of each stage that a condition met so far reads */
    struct arena arena;
    struct diag *diag;
};

/* Resolves the parameters of every cell, which costs too much to be done for each condition. */
static const size_t *twins_of(struct intervals *iv, size_t stage)
{
    const struct plan_program *p = iv->rules->program;
    struct asked_of *own = &iv->asked[stage];
    if (own->known) {
        return own->twins;
    }
    own->known = true;
    own->compared = asked_telling(p, &iv->before[stage], &own->telling);
    if (!own->compared) {
        return NULL;
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        const struct asked_of *other = &iv->asked[s];
        if (s != stage && other->compared && stage_set_equal(&other->telling, &own->telling)) {
            own->twins = other->twins;
            return own->twins;
        }
    }
    own->twins = asked_twins(p, &own->telling, &iv->arena);
    return own->twins;
}

/* A cell of the condition's contrast, or of the given one of the two that it is the difference of,
 * that is asked the same as another of its cell's condition; INDEX_NONE: none. What is equal by
 * construction has no spread to lose. */
static size_t find_repeated_in(const struct intervals *iv, const struct cond *c, size_t contrast,
                               const size_t *twins)
{
    const struct layout *l = &iv->rules->layout;
    size_t found = INDEX_NONE;
    for (size_t s = 0; s < l->contrasts[contrast].n_settings; s++) {
        for (size_t r = 0; r < l->n_replicates && found == INDEX_NONE; r++) {
            const struct pair_at at = {c->index, c->measure, s, r};
            const size_t a = layout_pair_a(l, contrast, s, r);
            const size_t b = layout_pair_b(l, contrast, s, r);
            if (!pair_is_equal(iv->rules->program, l, &at)) {
                found = twins[a] != a ? a : twins[b] != b ? b : INDEX_NONE;
            }
        }
    }
    return found;
}

static size_t find_repeated(const struct intervals *iv, const struct cond *c, const size_t *twins)
{
    const struct plan_contrast *k = &iv->rules->program->contrasts[c->index];
    const size_t found = find_repeated_in(iv, c, k->is_difference ? k->of : c->index, twins);
    return found != INDEX_NONE || !k->is_difference ? found
                                                    : find_repeated_in(iv, c, k->minus, twins);
}

/* Names one pair of cells as the proof, and the fields that could be decided instead. */
static void refuse_interval(const struct intervals *iv, const struct cond *c, const char *what,
                            const struct cond_text *text, size_t cell, size_t twin)
{
    const struct plan_program *p = iv->rules->program;
    diag_add(iv->diag, DIAG_ERROR, text->place.line, text->place.column,
             "%s: contrast.%s[%s].%s is never known: %s is given the same tasks as %s, which makes "
             "one replicate of the two; a condition on %s can be decided",
             what, p->contrasts[c->index].name, p->measures[c->measure].name,
             contrast_field_name(c->field), p->cells[cell].name, p->cells[twin].name,
             measure_is_share(&p->measures[c->measure]) ? "mean, item_low or item_high" : "mean");
}

/* A cell that a trend compares and that is asked the same as another of its condition; INDEX_NONE:
 * none. */
static size_t find_repeated_within(const struct intervals *iv, const struct cond *c,
                                   const size_t *twins)
{
    const struct plan_program *p = iv->rules->program;
    if (c->index != INDEX_NONE) {
        return find_repeated(iv, c, twins);
    }
    for (size_t i = 0; i < p->n_cells; i++) {
        bool within = twins[i] != i;
        for (size_t k = 0; k < c->n_where; k++) {
            within = within && p->cells[i].levels[c->where[k].factor] == c->where[k].level;
        }
        if (within) {
            return i;
        }
    }
    return INDEX_NONE;
}

static void check_trend(struct intervals *iv, const struct cond *c, const char *what,
                        const struct cond_text *text)
{
    const struct plan_program *p = iv->rules->program;
    const size_t *twins = twins_of(iv, p->measures[c->measure].stage);
    const size_t cell = twins == NULL ? INDEX_NONE : find_repeated_within(iv, c, twins);
    if (cell == INDEX_NONE) {
        return;
    }
    struct strbuf name = STRBUF_INIT;
    cond_print(c, p, &iv->rules->facts, &name);
    diag_add(
        iv->diag, DIAG_ERROR, text->place.line, text->place.column,
        "%s: %s is never known: %s is given the same tasks as %s, which makes one replicate of "
        "the two; a condition on slope can be decided",
        what, name.buf, p->cells[cell].name, p->cells[twins[cell]].name);
    strbuf_release(&name);
}

/* Walks a condition for fields that need a spread over replicates. */
static void check_interval(struct intervals *iv, const struct cond *c, const char *what,
                           const struct cond_text *text)
{
    if (c->kind == COND_CONTRAST && c->measure != INDEX_NONE && c->field >= FIELD_SD &&
        c->field <= FIELD_BF10) {
        const size_t *twins = twins_of(iv, iv->rules->program->measures[c->measure].stage);
        const size_t cell = twins == NULL ? INDEX_NONE : find_repeated(iv, c, twins);
        if (cell != INDEX_NONE) {
            refuse_interval(iv, c, what, text, cell, twins[cell]);
        }
    }
    if (c->kind == COND_TREND && c->field >= FIELD_SD && c->field <= FIELD_CI_HIGH) {
        check_trend(iv, c, what, text);
    }
    for (size_t i = 0; i < c->n_kids; i++) {
        check_interval(iv, c->kids[i], what, text);
    }
}

/* A condition on the spread of replicates that are copies of each other could never be decided. */
static void check_intervals(const struct rules *rules, struct diag *diag)
{
    const struct plan_program *p = rules->program;
    struct stage_set *before = asked_before(p);
    struct intervals iv = {.rules = rules, .before = before, .diag = diag};
    iv.asked = xcalloc(p->n_stages, sizeof(*iv.asked));
    arena_init(&iv.arena);
    for (size_t i = 0; i < p->n_inputs; i++) {
        char *what = xasprintf("input %s", p->inputs[i].name);
        for (size_t l = 0; l < p->inputs[i].n_levels; l++) {
            check_interval(&iv, rules->inputs[i][l], what, &p->inputs[i].levels[l].condition);
        }
        free(what);
    }
    for (size_t v = 0; v < p->n_validity; v++) {
        check_interval(&iv, rules->validity[v], "validity", &p->validity[v].condition);
    }
    arena_release(&iv.arena);
    free(iv.asked);
    free(before);
}

/* Conditions that do not compile are reported by check_run(); here they are only needed to know
 * which stages are read. */
void check_factors(const struct plan_program *p, struct diag *diag)
{
    struct rules rules;
    struct diag of_conditions; /* reported where they are compiled for their own sake */
    struct err err;
    diag_init(&of_conditions, p->path);
    if (rules_compile(p, &rules, &of_conditions, &err) == 0) {
        struct reads r = {.p = p, .stages = stages_that_count(&rules), .diag = diag};
        for (size_t f = 0; f < p->n_factors && !stage_set_is_empty(&r.stages); f++) {
            compare_factor(&r, f);
        }
        check_intervals(&rules, diag);
    }
    rules_release(&rules);
    diag_release(&of_conditions);
}
