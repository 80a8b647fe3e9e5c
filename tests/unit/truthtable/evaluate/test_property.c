/*
 * The engine against brute force, on random small programs. The brute force shares no code with the
 * engine: it evaluates complete data in plain C and enumerates completions.
 *
 *  - Over scores: complete data fire exactly the brute force's rows; what fires under any
 * completion of partial data is among the rows the engine fires for the partial data; where the
 * engine binds, every completion gives that outcome.
 *  - Over truth values: inputs whose levels' conditions are true, false or unknown independently of
 * one another have exactly the possible sets, fired rows and outcome that enumeration gives.
 *
 * The seed is printed; PREREGD_SEED repeats a run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/strbuf.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/evaluate/evaluation.h"

#define N_SCORE_PROGRAMS 1500
#define N_DATA           12 /* partial data sets for each */
#define N_TRUTH_PROGRAMS 1000
#define N_VECTORS        20
#define MISSING_MAX      5
#define GRID_NR          4 /* values a missing score may turn out to have */
#define ROWS_MAX         64

enum tri { NO, YES, OPEN };

static uint64_t base_seed;

static enum tri tri_and(enum tri a, enum tri b)
{
    if (a == NO || b == NO) {
        return NO;
    }
    return a == YES && b == YES ? YES : OPEN;
}

static enum tri tri_not(enum tri a)
{
    return a == OPEN ? OPEN : (a == YES ? NO : YES);
}

/* ------------------------------------------------------------------ programs over scores */

enum atom_kind {
    ATOM_COUNTER,
    ATOM_POOLED_MEAN,
    ATOM_MAX_ABS,
    ATOM_MEASURE_DIFF,
    ATOM_LEVEL_MEAN,
    ATOM_NR
};

struct atom {
    enum atom_kind kind;
    size_t measure;
    int number; /* of 64ths, or of measures */
};

/* not a, a and b, a or b */
enum join { JOIN_PLAIN, JOIN_NOT, JOIN_AND, JOIN_OR, JOIN_NR };

struct formula {
    enum join join;
    struct atom a;
    struct atom b;
};

struct world {
    size_t n_lr;
    size_t n_seed;
    size_t n_measures;
    int floors[3]; /* 64ths */
    bool counted[3];
    bool every_cell;
    bool over_cleared;
    size_t n_inputs;
    size_t n_levels[3]; /* the last is `otherwise` */
    struct formula levels[3][3];
    size_t outcomes[ROWS_MAX];
    struct plan_program *p;
    struct rules rules;
};

static size_t n_cells_of(const struct world *w)
{
    return 2 * w->n_lr * w->n_seed;
}

static void atom_text(const struct atom *a, struct strbuf *out)
{
    double t = a->number / 64.0;
    switch (a->kind) {
    case ATOM_COUNTER: strbuf_addf(out, "counter.k == %d", abs(a->number) % 3); break;
    case ATOM_POOLED_MEAN: strbuf_addf(out, "contrast.c.mean > %.17g", t); break;
    case ATOM_MAX_ABS: strbuf_addf(out, "contrast.c.max_abs >= %.17g", t); break;
    case ATOM_MEASURE_DIFF: strbuf_addf(out, "contrast.c[m%zu].mean < %.17g", a->measure, t); break;
    case ATOM_LEVEL_MEAN:
        strbuf_addf(out, "measure.m%zu['x'].mean >= %.17g", a->measure, 0.5 + t);
        break;
    case ATOM_NR: break;
    }
}

static void formula_text(const struct formula *f, struct strbuf *out)
{
    strbuf_adds(out, f->join == JOIN_NOT ? "not " : "");
    atom_text(&f->a, out);
    if (f->join == JOIN_AND || f->join == JOIN_OR) {
        strbuf_adds(out, f->join == JOIN_AND ? " and " : " or ");
        atom_text(&f->b, out);
    }
}

static void world_text(const struct world *w, struct strbuf *out)
{
    fixture_head_text(out);
    if (w->n_lr == 2) {
        strbuf_adds(out, "[[factor]]\nname = \"lr\"\nlevels = [1e-3, 2e-3]\n");
    }
    if (w->n_seed == 2) {
        strbuf_adds(out, "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n");
    }
    strbuf_adds(out, "[stage.train]\ncommand = [\"w\"]\n[stage.train.params]\na = \"$arch\"\n");
    strbuf_adds(out, w->n_lr == 2 ? "l = \"$lr\"\n" : "");
    strbuf_adds(out, w->n_seed == 2 ? "s = \"$seed\"\n" : "");
    strbuf_adds(out, "[measure]\n");
    for (size_t m = 0; m < w->n_measures; m++) {
        strbuf_addf(out, "m%zu = { metric = \"train.m%zu\", floor = %.17g, counted = %s }\n", m, m,
                    w->floors[m] / 64.0, w->counted[m] ? "true" : "false");
    }
    strbuf_addf(out, "[contrast]\nc = { between = { arch = [\"x\", \"y\"] }, over = \"%s\" }\n",
                w->over_cleared ? "cleared" : "counted");
    strbuf_addf(out, "[counter]\nk = { contrast = \"c\", clears = \"%s\", binds = true }\n",
                w->every_cell ? "every_cell" : "arm_means");
    for (size_t i = 0; i < w->n_inputs; i++) {
        strbuf_addf(out, "[[input]]\nname = \"i%zu\"\nlevels = [", i);
        for (size_t l = 0; l + 1 < w->n_levels[i]; l++) {
            strbuf_addf(out, "[\"l%zu\", \"", l);
            formula_text(&w->levels[i][l], out);
            strbuf_adds(out, "\"], ");
        }
        strbuf_addf(out, "[\"l%zu\", \"otherwise\"]]\n", w->n_levels[i] - 1);
    }
    fixture_table_text(w->n_inputs, w->n_levels, w->outcomes, 3, out);
}

static struct atom random_atom(struct rng *rng, size_t n_measures)
{
    return (struct atom){.kind = (enum atom_kind)rng_below(rng, ATOM_NR),
                         .measure = rng_below(rng, n_measures),
                         .number = (int)rng_below(rng, 25) - 12};
}

static void world_init(struct world *w, struct rng *rng)
{
    struct strbuf text = STRBUF_INIT;
    *w = (struct world){.n_lr = 1 + rng_below(rng, 2),
                        .n_seed = 1 + rng_below(rng, 2),
                        .n_measures = 1 + rng_below(rng, 3),
                        .every_cell = rng_below(rng, 2) == 0,
                        .over_cleared = rng_below(rng, 2) == 0,
                        .n_inputs = 1 + rng_below(rng, 3)};
    for (size_t m = 0; m < w->n_measures; m++) {
        w->floors[m] = 20 + (int)rng_below(rng, 24);
        w->counted[m] = m == 0 || rng_below(rng, 3) > 0;
    }
    for (size_t i = 0; i < w->n_inputs; i++) {
        w->n_levels[i] = 2 + rng_below(rng, 2);
        for (size_t l = 0; l < 3; l++) {
            w->levels[i][l] = (struct formula){.join = (enum join)rng_below(rng, JOIN_NR),
                                               .a = random_atom(rng, w->n_measures),
                                               .b = random_atom(rng, w->n_measures)};
        }
    }
    for (size_t r = 0; r < ROWS_MAX; r++) {
        w->outcomes[r] = rng_below(rng, 3);
    }
    world_text(w, &text);
    w->p = fixture_program(text.buf);
    fixture_rules(w->p, &w->rules);
    strbuf_release(&text);
}

static void world_release(struct world *w)
{
    rules_release(&w->rules);
    program_free(w->p);
}

/* ------------------------------------------------------------------ brute force over complete
 * scores (64ths) */

struct sight { /* what one complete data set shows */
    int n_cleared;
    bool cleared[3];
    size_t n_pairs;
    double sum;
    double max_abs;
    double diff[3];
    double level_mean[3];
};

/* Cells are arch-major; all sums are of multiples of 1/64 and small, so exact in any order. */
static bool measure_clears(const struct world *w, const int *scores, size_t m)
{
    size_t half = n_cells_of(w) / 2;
    int sum[2] = {0, 0};
    bool every = true;
    for (size_t c = 0; c < 2 * half; c++) {
        int s = scores[m * 2 * half + c];
        every = every && s >= w->floors[m];
        sum[c / half] += s;
    }
    bool means = sum[0] >= w->floors[m] * (int)half && sum[1] >= w->floors[m] * (int)half;
    return w->every_cell ? every : means;
}

static struct sight see(const struct world *w, const int *scores)
{
    struct sight v = {0};
    size_t half = n_cells_of(w) / 2;
    for (size_t m = 0; m < w->n_measures; m++) {
        const int *x = &scores[m * 2 * half];
        v.cleared[m] = w->counted[m] && measure_clears(w, scores, m);
        v.n_cleared += v.cleared[m] ? 1 : 0;
        for (size_t s = 0; s < w->n_lr; s++) {
            double d = 0;
            for (size_t r = 0; r < w->n_seed; r++) {
                size_t c = s * w->n_seed + r;
                d += (x[c] - x[half + c]) / 64.0 / (double)w->n_seed;
                v.level_mean[m] += x[c] / 64.0 / (double)half;
            }
            v.diff[m] += d / (double)w->n_lr;
            if (w->counted[m] && (!w->over_cleared || v.cleared[m])) {
                v.n_pairs++;
                v.sum += d;
                d = d < 0 ? -d : d;
                v.max_abs = d > v.max_abs ? d : v.max_abs;
            }
        }
    }
    return v;
}

static enum tri of_bool(bool b)
{
    return b ? YES : NO;
}

static enum tri atom_holds(const struct sight *v, const struct atom *a)
{
    double t = a->number / 64.0;
    switch (a->kind) {
    case ATOM_COUNTER: return of_bool(v->n_cleared == abs(a->number) % 3);
    case ATOM_POOLED_MEAN:
        /* A sum of n pairs over n compares like the sum with n t: exact for thresholds in 64ths. */
        return v->n_pairs == 0 ? OPEN : of_bool(v->sum > t * (double)v->n_pairs);
    case ATOM_MAX_ABS: return v->n_pairs == 0 ? OPEN : of_bool(v->max_abs >= t);
    case ATOM_MEASURE_DIFF: return of_bool(v->diff[a->measure] < t);
    case ATOM_LEVEL_MEAN: return of_bool(v->level_mean[a->measure] >= 0.5 + t);
    case ATOM_NR: break;
    }
    return OPEN;
}

static enum tri formula_holds(const struct sight *v, const struct formula *f)
{
    enum tri a = atom_holds(v, &f->a);
    enum tri b = atom_holds(v, &f->b);
    switch (f->join) {
    case JOIN_NOT: return tri_not(a);
    case JOIN_AND: return tri_and(a, b);
    case JOIN_OR: return tri_not(tri_and(tri_not(a), tri_not(b)));
    case JOIN_PLAIN:
    case JOIN_NR: break;
    }
    return a;
}

/* Marks the rows that complete data fire. Every input ends in `otherwise`: some level always holds
 * or is open. */
static void brute_rows(const struct world *w, const int *scores, bool *rows)
{
    struct sight v = see(w, scores);
    bool may[3][3] = {{false}};
    size_t n_rows = 1;
    for (size_t i = 0; i < w->n_inputs; i++) {
        bool closed = false;
        for (size_t l = 0; l < w->n_levels[i]; l++) {
            enum tri t = l + 1 < w->n_levels[i] ? formula_holds(&v, &w->levels[i][l]) : YES;
            may[i][l] = !closed && t != NO;
            closed = closed || t == YES;
        }
        n_rows *= w->n_levels[i];
    }
    for (size_t r = 0; r < n_rows; r++) {
        size_t rest = r;
        bool fires = true;
        for (size_t i = w->n_inputs; i-- > 0;) {
            fires = fires && may[i][rest % w->n_levels[i]];
            rest /= w->n_levels[i];
        }
        rows[r] = rows[r] || fires;
    }
}

/* ------------------------------------------------------------------ the engine */

static void engine_rows(const struct world *w, const int *scores, const bool *missing, bool *rows,
                        size_t *outcome)
{
    struct evidence e;
    struct table_evaluation ev;
    size_t n_cells = n_cells_of(w);
    evidence_init(&e, w->p);
    fixture_all_done(&e);
    for (size_t i = 0; i < w->n_measures * n_cells; i++) {
        if (missing == NULL || !missing[i]) {
            char name[48];
            (void)snprintf(name, sizeof(name), "m%zu", i / n_cells);
            fixture_score(&e, i % n_cells, name, scores[i] / 64.0, 0);
        }
    }
    fixture_evaluate(&e, &w->rules, &ev);
    memset(rows, 0, w->p->n_rows * sizeof(*rows));
    for (size_t i = 0; i < ev.n_fired; i++) {
        rows[ev.fired[i]] = true;
    }
    *outcome = evaluation_outcome(&ev);
    evidence_release(&e);
}

struct counts {
    uint64_t n_data;
    uint64_t n_bound;
    uint64_t n_open;
};

static void fail_case(const struct world *w, const char *what)
{
    struct strbuf text = STRBUF_INIT;
    world_text(w, &text);
    fail_msg("%s\nseed %llu\n%s", what, (unsigned long long)base_seed, text.buf);
}

/* All completions of the data: `index` counts through them in base GRID_NR. */
static void check_completions(const struct world *w, const int *scores, const bool *missing,
                              const bool *partial, size_t outcome)
{
    size_t n = w->n_measures * n_cells_of(w);
    size_t n_completions = 1;
    int full[3 * 8];
    for (size_t i = 0; i < n; i++) {
        n_completions *= missing[i] ? GRID_NR : 1;
    }
    for (size_t index = 0; index < n_completions; index++) {
        bool rows[ROWS_MAX] = {false};
        size_t rest = index;
        for (size_t i = 0; i < n; i++) {
            full[i] = scores[i];
            if (missing[i]) {
                full[i] = 16 + 11 * (int)(rest % GRID_NR);
                rest /= GRID_NR;
            }
        }
        brute_rows(w, full, rows);
        for (size_t r = 0; r < w->p->n_rows; r++) {
            if (rows[r] && !partial[r]) {
                fail_case(w, "a completion fires a row that the engine says cannot fire");
            }
            if (rows[r] && outcome != INDEX_NONE && w->p->rows[r].outcome != outcome) {
                fail_case(w, "the engine binds, a completion says otherwise");
            }
        }
    }
}

static void check_data(const struct world *w, struct rng *rng, struct counts *counts)
{
    int scores[3 * 8];
    bool missing[3 * 8] = {false};
    bool partial[ROWS_MAX];
    bool complete[ROWS_MAX];
    bool brute[ROWS_MAX] = {false};
    size_t outcome = INDEX_NONE;
    size_t n = w->n_measures * n_cells_of(w);
    for (size_t i = 0; i < n; i++) {
        scores[i] = 16 + (int)rng_below(rng, 34);
    }
    engine_rows(w, scores, NULL, complete, &outcome);
    brute_rows(w, scores, brute);
    if (memcmp(complete, brute, w->p->n_rows * sizeof(bool)) != 0) {
        fail_case(w, "complete data fire other rows than brute force");
    }
    for (size_t i = rng_below(rng, MISSING_MAX + 1); i > 0; i--) {
        missing[rng_below(rng, n)] = true;
    }
    engine_rows(w, scores, missing, partial, &outcome);
    check_completions(w, scores, missing, partial, outcome);
    counts->n_data++;
    counts->n_bound += outcome != INDEX_NONE ? 1 : 0;
    counts->n_open += outcome == INDEX_NONE ? 1 : 0;
}

static void test_scores(void **state)
{
    struct rng rng;
    struct counts counts = {0};
    (void)state;
    rng_seed(&rng, base_seed);
    for (size_t i = fixture_cases(N_SCORE_PROGRAMS); i > 0; i--) {
        struct world w;
        world_init(&w, &rng);
        for (size_t k = 0; k < N_DATA; k++) {
            check_data(&w, &rng, &counts);
        }
        world_release(&w);
    }
    print_message("%llu partial data sets, %llu bind, %llu do not\n",
                  (unsigned long long)counts.n_data, (unsigned long long)counts.n_bound,
                  (unsigned long long)counts.n_open);
    /* The test means something only while both happen often. */
    assert_true(counts.n_bound > counts.n_data / 10 && counts.n_open > counts.n_data / 10);
}

/* ------------------------------------------------------------------ truth values */

struct truths {
    size_t n_inputs;
    size_t n_levels[3];
    size_t outcomes[ROWS_MAX];
    enum tri holds[3][4];
};

static void truths_text(const struct truths *t, struct strbuf *out)
{
    fixture_head_text(out);
    strbuf_adds(out, "[stage.train]\ncommand = [\"w\"]\nparams = { a = \"$arch\" }\n"
                     "[measure]\nq = { metric = \"train.q\" }\n");
    for (size_t i = 0; i < t->n_inputs; i++) {
        strbuf_addf(out, "[[input]]\nname = \"i%zu\"\nlevels = [", i);
        for (size_t l = 0; l < t->n_levels[i]; l++) {
            strbuf_addf(out, "%s[\"l%zu\", \"fact.train.f%zu%zu > 0\"]", l > 0 ? ", " : "", l, i,
                        l);
        }
        strbuf_adds(out, "]\n");
    }
    fixture_table_text(t->n_inputs, t->n_levels, t->outcomes, 3, out);
}

/* By enumeration of one input's completions: a level is possible when it is the first true one of
 * some completion; where some completion makes every condition false, all are. */
static void enumerate_input(const enum tri *holds, size_t n_levels, bool *possible)
{
    bool none = false;
    for (size_t l = 0; l < n_levels; l++) {
        possible[l] = false;
    }
    for (size_t mask = 0; mask < (size_t)1 << n_levels; mask++) {
        size_t first = INDEX_NONE;
        bool agrees = true;
        for (size_t l = n_levels; l-- > 0;) {
            bool on = (mask >> l & 1U) != 0;
            agrees = agrees && (holds[l] == OPEN || (holds[l] == YES) == on);
            first = on ? l : first;
        }
        if (agrees && first != INDEX_NONE) {
            possible[first] = true;
        }
        none = none || (agrees && first == INDEX_NONE);
    }
    for (size_t l = 0; l < n_levels && none; l++) {
        possible[l] = true;
    }
}

static void check_vector(const struct truths *t, const struct plan_program *p,
                         const struct rules *rules)
{
    struct evidence e;
    struct table_evaluation ev;
    bool possible[3][4];
    size_t outcome = INDEX_NONE;
    bool mixed = false;
    evidence_init(&e, p);
    fixture_all_done(&e);
    for (size_t i = 0; i < t->n_inputs; i++) {
        enumerate_input(t->holds[i], t->n_levels[i], possible[i]);
        for (size_t k = 0; k < t->n_levels[i] * p->n_cells; k++) {
            char name[48];
            enum tri h = t->holds[i][k / p->n_cells];
            struct evidence_value v = {.state = VALUE_KNOWN, .value = h == YES ? 1 : -1};
            (void)snprintf(name, sizeof(name), "f%zu%zu", i, k / p->n_cells);
            if (h != OPEN) {
                evidence_add_fact(&e, k % p->n_cells, 0, name, &v);
            }
        }
    }
    fixture_evaluate(&e, rules, &ev);
    size_t n_fired = 0;
    for (size_t r = 0; r < p->n_rows; r++) {
        bool fires = true;
        for (size_t i = 0; i < t->n_inputs; i++) {
            fires = fires && possible[i][p->rows[r].levels[i]];
        }
        assert_true(!fires || (n_fired < ev.n_fired && ev.fired[n_fired] == r));
        n_fired += fires ? 1 : 0;
        mixed = mixed || (fires && outcome != INDEX_NONE && outcome != p->rows[r].outcome);
        outcome = fires ? p->rows[r].outcome : outcome;
    }
    assert_int_equal(ev.n_fired, n_fired);
    assert_true(evaluation_outcome(&ev) == (mixed ? INDEX_NONE : outcome));
    evidence_release(&e);
}

static void test_truths(void **state)
{
    struct rng rng;
    (void)state;
    rng_seed(&rng, base_seed + 1);
    for (size_t k = fixture_cases(N_TRUTH_PROGRAMS); k > 0; k--) {
        struct truths t = {.n_inputs = 1 + rng_below(&rng, 3)};
        struct strbuf text = STRBUF_INIT;
        struct rules rules;
        for (size_t i = 0; i < t.n_inputs; i++) {
            t.n_levels[i] = 1 + rng_below(&rng, 4);
        }
        for (size_t r = 0; r < ROWS_MAX; r++) {
            t.outcomes[r] = rng_below(&rng, 3);
        }
        truths_text(&t, &text);
        struct plan_program *p = fixture_program(text.buf);
        fixture_rules(p, &rules);
        for (size_t v = 0; v < N_VECTORS; v++) {
            for (size_t i = 0; i < 12; i++) {
                t.holds[i / 4][i % 4] = (enum tri)rng_below(&rng, 3);
            }
            check_vector(&t, p, &rules);
        }
        rules_release(&rules);
        program_free(p);
        strbuf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_truths),
    };
    base_seed = fixture_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
