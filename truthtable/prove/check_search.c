/*
 * The seeded search for witnesses: complete sets of made-up records, over which measures clear and
 * by how much. Sizes of differences are taken from the numbers in the program's own conditions, a
 * little under and over each.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/xalloc.h"
#include "prereg/program/same_work.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/prove/check_parts.h"

#define SEARCH_SEED     UINT64_C(0x70726572656764) /* any; printed programs must not change with it */
#define SEARCH_WORK     3e7 /* cells x measures x contrasts + rows / 16, summed over trials */
#define TRIALS_MAX      20000.0
#define TRIALS_MIN      16.0
#define MAGNITUDES_MAX  64
#define CONDITIONS_TOLD 8 /* scores of a witness are spelled out up to here */

struct magnitudes {
    double v[MAGNITUDES_MAX];
    size_t n;
};

/* Whether a node compares a counter, whose literals are counts. */
static bool is_about_counter(const struct cond *c)
{
    bool about = false;
    for (size_t i = 0; i < c->n_kids; i++) {
        about = about || c->kids[i]->kind == COND_COUNTER;
    }
    return about;
}

/* Gathers the literals of a condition as sizes worth trying. */
static void collect(const struct cond *c, struct magnitudes *out)
{
    if (is_about_counter(c)) {
        return; /* counts of measures are not sizes of differences */
    }
    bool is_literal = c->kind == COND_NUMBER || c->kind == COND_WITHIN;
    if (is_literal && c->number > 0 && out->n < MAGNITUDES_MAX) {
        out->v[out->n++] = c->number;
    }
    for (size_t i = 0; i < c->n_kids; i++) {
        collect(c->kids[i], out);
    }
}

/* Common sizes, and then those in the program's own conditions. */
static struct magnitudes magnitudes_of(const struct rules *rules)
{
    static const double plain[] = {1e-4, 1e-3, 0.01, 0.05, 0.2};
    const struct plan_program *p = rules->program;
    struct magnitudes out = {0};
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        out.v[out.n++] = plain[i];
    }
    for (size_t i = 0; i < p->n_inputs; i++) {
        for (size_t l = 0; l < p->inputs[i].n_levels; l++) {
            collect(rules->inputs[i][l], &out);
        }
    }
    return out;
}

/* A signed size near one of the magnitudes, just under and over it as well; now and then 0. */
static double pick_size(struct rng *rng, const struct magnitudes *sizes)
{
    static const double around[] = {0.5, 0.99, 1.01, 1.5, 3};
    double sign = rng_below(rng, 2) == 0 ? -1 : 1;
    if (rng_below(rng, 8) == 0) {
        return 0;
    }
    return sign * sizes->v[rng_below(rng, sizes->n)] * around[rng_below(rng, ARRAY_LEN(around))];
}

/* Level effects of every factor except replicates, on one measure; [factor][level] one after
 * another. */
static void add_effects(double *scores, const struct plan_program *p, struct rng *rng,
                        const struct magnitudes *sizes)
{
    double noise = rng_below(rng, 2) == 0 ? 0 : 0.2 * pick_size(rng, sizes);
    for (size_t f = 0; f < p->n_factors; f++) {
        const struct plan_factor *fa = &p->factors[f];
        double *effects = xcalloc(fa->n_levels, sizeof(*effects));
        for (size_t l = 0; l < fa->n_levels && !fa->replicate; l++) {
            effects[l] = rng_below(rng, 3) == 0 ? 0 : pick_size(rng, sizes);
        }
        for (size_t c = 0; c < p->n_cells; c++) {
            scores[c] += effects[p->cells[c].levels[f]];
        }
        free(effects);
    }
    bool interact = rng_below(rng, 3) == 0;
    for (size_t i = 0; i < p->n_conditions && interact; i++) {
        double extra = pick_size(rng, sizes);
        for (size_t c = 0; c < p->n_cells; c++) {
            scores[c] += p->cells[c].condition == i ? extra : 0;
        }
        interact = p->n_conditions <= 64; /* beyond, one condition is enough */
    }
    for (size_t c = 0; c < p->n_cells && noise != 0; c++) {
        scores[c] += noise * (rng_unit(rng) - 0.5);
    }
}

enum clearing { CLEARS_ALL, CLEARS_NONE, CLEARS_ANYHOW, CLEARING_NR };

/* Shifts the scores to where the measure should be relative to its floor; proportions stay in 0..1.
 */
static void place(double *scores, const struct plan_program *p, const struct plan_measure *m,
                  struct rng *rng, enum clearing how)
{
    double low = scores[0];
    double high = scores[0];
    for (size_t c = 1; c < p->n_cells; c++) {
        low = fmin(low, scores[c]);
        high = fmax(high, scores[c]);
    }
    /* Without a floor any level will do: a proportion's, or a loss's. */
    double level = (measure_is_share(m) ? 0.2 : 3) + 0.6 * rng_unit(rng);
    double shift = level - 0.5 * (low + high);
    double gap = rng_below(rng, 2) == 0 ? 1e-3 : 0.1 * rng_unit(rng);
    if (m->has_floor && how == CLEARS_ALL) {
        shift = m->floor + gap - low;
    } else if (m->has_floor && how == CLEARS_NONE) {
        shift = m->floor - gap - high;
    } else if (m->has_floor) {
        shift = m->floor - low - rng_unit(rng) * (high - low);
    }
    for (size_t c = 0; c < p->n_cells; c++) {
        scores[c] += shift;
        if (measure_is_share(m)) {
            scores[c] = fmin(1, fmax(0, scores[c]));
        }
    }
}

/* Cells that are one work have one score. */
static void tie(double *scores, const struct plan_program *p, size_t stage)
{
    for (size_t c = 0; c < p->n_cells && p->workers != NULL; c++) {
        scores[c] = scores[program_worker_of(p, c * p->n_stages + stage) / p->n_stages];
    }
}

/* The items behind a made-up proportion: what the plan says, else the one size or the other. The
 * generator is left alone, for trials must stay what they were. */
static int64_t items_of(const struct plan_measure *m, uint64_t trial)
{
    static const int64_t sizes[] = {1000, 100, 10000};
    return m->has_items ? m->items : sizes[trial % ARRAY_LEN(sizes)];
}

/* The order of calls of the generator is part of the format: a report keeps only a trial's number,
 * and the printed scores of an old lock must come out again. */
void search_make(struct table_reading *out, const struct rules *rules, uint64_t trial,
                 struct arena *arena)
{
    const struct plan_program *p = rules->program;
    struct magnitudes sizes = magnitudes_of(rules);
    struct rng rng;
    rng_seed(&rng, SEARCH_SEED + trial);
    out->scores = arena_array(arena, p->n_measures * p->n_cells, sizeof(*out->scores));
    out->facts = arena_array(arena, rules->facts.n * p->n_cells, sizeof(*out->facts));
    out->fact_excluded = arena_array(arena, rules->facts.n * p->n_cells, sizeof(bool));
    out->n_copies = 0;
    double *scores = xcalloc(p->n_cells, sizeof(*scores));
    for (size_t m = 0; m < p->n_measures; m++) {
        memset(scores, 0, p->n_cells * sizeof(*scores));
        add_effects(scores, p, &rng, &sizes);
        place(scores, p, &p->measures[m], &rng, (enum clearing)rng_below(&rng, CLEARING_NR));
        tie(scores, p, p->measures[m].stage);
        for (size_t c = 0; c < p->n_cells; c++) {
            struct score *s = &out->scores[m * p->n_cells + c];
            s->value = number_point(scores[c]);
            s->has_n = p->measures[m].has_items || measure_is_share(&p->measures[m]);
            s->n = s->has_n ? items_of(&p->measures[m], trial) : 0;
        }
    }
    for (size_t i = 0; i < rules->facts.n * p->n_cells; i++) {
        out->facts[i] = number_point(1 + (rng_below(&rng, 4) == 0 ? rng_unit(&rng) : 0));
    }
    free(scores);
}

/* The mean of one condition over its replicates. */
static double condition_mean(const struct table_reading *r, const struct rules *rules,
                             size_t measure, size_t condition)
{
    const struct layout *l = &rules->layout;
    double sum = 0;
    for (size_t k = 0; k < l->n_replicates; k++) {
        sum += r->scores[measure * rules->program->n_cells + layout_cell(l, condition, k)].value.lo;
    }
    return sum / (double)l->n_replicates;
}

const char *search_scores(const struct table_reading *reading, const struct rules *rules,
                          struct arena *arena)
{
    const struct plan_program *p = rules->program;
    struct strbuf sb = STRBUF_INIT;
    for (size_t m = 0; m < p->n_measures; m++) {
        strbuf_addf(&sb, "%s%s:", m > 0 ? "; " : "", p->measures[m].name);
        for (size_t i = 0; i < p->n_conditions && i < CONDITIONS_TOLD; i++) {
            strbuf_addf(&sb, " %.4g", condition_mean(reading, rules, m, i));
        }
        strbuf_adds(&sb, p->n_conditions > CONDITIONS_TOLD ? " ..." : "");
    }
    const char *text = arena_strdup(arena, sb.buf);
    strbuf_release(&sb);
    return text;
}

struct searching {
    struct check_report *report;
    const struct rules *rules;
    size_t n_open; /* rows and outcomes still without the best they can get */
};

/* Records what a trial shows: rows that fire, alone or with others, outcomes, and inputs without a
 * level. A better witness replaces a weaker one. */
static void mark(struct searching *s, const struct table_evaluation *ev,
                 const struct table_reading *reading, uint64_t trial)
{
    struct check_report *r = s->report;
    const struct plan_program *p = r->program;
    size_t binds = evaluation_outcome(ev);
    for (size_t i = 0; i < p->n_inputs; i++) {
        if (ev->inputs[i].no_level && r->uncovered[i] == NULL) {
            r->uncovered[i] = search_scores(reading, s->rules, &r->arena);
        }
    }
    for (size_t i = 0; i < ev->n_fired; i++) {
        size_t k = ev->fired[i];
        struct row_proof *row = &r->rows[k];
        struct outcome_proof *o = &r->outcomes[p->rows[k].outcome];
        if (row->reach != REACH_WITNESSED) {
            row->reach = REACH_WITNESSED;
            row->witness = trial;
            s->n_open--;
        }
        if (ev->n_fired == 1 && !row->alone) {
            row->alone = true;
            row->witness = trial;
        }
        if (o->reach != REACH_WITNESSED || (binds == p->rows[k].outcome && !o->binds)) {
            bool was_binding = o->binds;
            o->reach = REACH_WITNESSED;
            o->binds = binds == p->rows[k].outcome;
            o->scores = search_scores(reading, s->rules, &r->arena);
            s->n_open -= o->binds && !was_binding ? 1 : 0;
        }
    }
}

/* The number of trials is chosen so that the work, not the time, is bounded: the result does not
 * depend on the machine. It ends as soon as nothing can improve. */
void search_run(struct check_report *r, const struct rules *rules)
{
    const struct plan_program *p = r->program;
    double work = (double)(p->n_cells * p->n_measures * (p->n_contrasts + 1) + p->n_rows / 16);
    uint64_t n_trials = (uint64_t)fmin(TRIALS_MAX, fmax(TRIALS_MIN, SEARCH_WORK / work));
    struct searching s = {.report = r, .rules = rules, .n_open = p->n_rows + p->n_outcomes};
    struct arena arena;
    arena_init(&arena);
    for (r->n_trials = 0; r->n_trials < n_trials && s.n_open > 0; r->n_trials++) {
        struct table_reading reading;
        struct table_evaluation ev;
        search_make(&reading, rules, r->n_trials, &arena);
        evaluation_run(&ev, rules, &reading, &arena);
        mark(&s, &ev, &reading, r->n_trials);
        arena_clear(&arena);
    }
    arena_release(&arena);
}
