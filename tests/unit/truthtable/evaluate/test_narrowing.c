/*
 * A completion never widens a possible set and never changes a bound outcome: random programs whose
 * inputs may leave gaps, records that arrive one by one in random order as values, bounds, NaN or
 * without a value, and every input's possible levels compared from one record to the next.
 *
 * The seed is printed; PREREGD_SEED repeats a run, PREREGD_LONG makes it thirty times as long.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/strbuf.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/evaluate/evaluation.h"

#define N_PROGRAMS   1500
#define N_ORDERS     6
#define LEVELS_MAX   4
#define INPUTS_MAX   3
#define MEASURES_MAX 3
#define ROWS_MAX     (LEVELS_MAX * LEVELS_MAX * LEVELS_MAX) /* LEVELS_MAX to the INPUTS_MAX */
#define RECORDS_MAX  (MEASURES_MAX * 12)

static uint64_t base_seed;

struct shape {
    size_t n_lr;
    size_t n_seed;
    size_t n_measures;
};

static const char *pick_relop(struct rng *rng)
{
    static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};
    return ops[rng_below(rng, ARRAY_LEN(ops))];
}

static void number_text(struct rng *rng, struct strbuf *out)
{
    strbuf_addf(out, "%.17g", ((double)rng_below(rng, 9) - 4) / 64);
}

static void name_text(const struct shape *s, struct rng *rng, struct strbuf *out)
{
    static const char *const fields[] = {"mean", "ci_low", "item_high", "item_se"};
    static const char *const pooled[] = {"mean", "max_abs", "min", "sign"};
    size_t m = rng_below(rng, s->n_measures);
    switch (rng_below(rng, 4)) {
    case 0: strbuf_addf(out, "contrast.c[m%zu].%s", m, fields[rng_below(rng, 4)]); break;
    case 1: strbuf_addf(out, "contrast.c.%s", pooled[rng_below(rng, 4)]); break;
    case 2: strbuf_addf(out, "(measure.m%zu['x'].mean - 0.5)", m); break;
    default: strbuf_addf(out, "abs(contrast.c[m%zu].mean)", m); break;
    }
}

static void atom_text(const struct shape *s, struct rng *rng, struct strbuf *out)
{
    if (rng_below(rng, 3) == 0) {
        strbuf_addf(out, "counter.k %s %zu", pick_relop(rng), rng_below(rng, s->n_measures + 1));
        return;
    }
    if (rng_below(rng, 4) == 0) {
        number_text(rng, out);
        strbuf_addf(out, " %s ", pick_relop(rng));
        name_text(s, rng, out);
        return;
    }
    name_text(s, rng, out);
    strbuf_addf(out, " %s ", pick_relop(rng));
    if (rng_below(rng, 5) == 0) {
        name_text(s, rng, out);
    } else {
        number_text(rng, out);
    }
}

static void formula_text(const struct shape *s, struct rng *rng, struct strbuf *out)
{
    strbuf_adds(out, rng_below(rng, 5) == 0 ? "not (" : "(");
    atom_text(s, rng, out);
    if (rng_below(rng, 3) == 0) {
        strbuf_adds(out, rng_below(rng, 2) == 0 ? " and " : " or ");
        atom_text(s, rng, out);
    }
    strbuf_adds(out, ")");
}

/* Levels that leave no gap: below, at and above a number, or each value of the counter. */
static size_t partition_text(const struct shape *s, struct rng *rng, struct strbuf *out)
{
    struct strbuf name = STRBUF_INIT;
    size_t n = 2;
    name_text(s, rng, &name);
    double t = ((double)rng_below(rng, 5) - 2) / 64;
    switch (rng_below(rng, 3)) {
    case 0:
        strbuf_addf(out, "[\"l0\", \"%s < %.17g\"], [\"l1\", \"%s >= %.17g\"]", name.buf, t,
                    name.buf, t);
        break;
    case 1:
        strbuf_addf(out,
                    "[\"l0\", \"%s > %.17g\"], [\"l1\", \"%.17g > %s\"], [\"l2\", \"%s == %.17g\"]",
                    name.buf, t, t, name.buf, name.buf, t);
        n = 3;
        break;
    default:
        n = s->n_measures + 1;
        for (size_t k = 0; k < n; k++) {
            strbuf_addf(out, "%s[\"l%zu\", \"counter.k == %zu\"]", k > 0 ? ", " : "", k, n - 1 - k);
        }
    }
    strbuf_release(&name);
    return n;
}

static size_t levels_text(const struct shape *s, struct rng *rng, struct strbuf *out)
{
    if (rng_below(rng, 3) == 0) {
        return partition_text(s, rng, out);
    }
    size_t n = 1 + rng_below(rng, LEVELS_MAX);
    bool otherwise = n > 1 && rng_below(rng, 4) == 0;
    for (size_t l = 0; l < n; l++) {
        strbuf_addf(out, "%s[\"l%zu\", \"", l > 0 ? ", " : "", l);
        if (otherwise && l + 1 == n) {
            strbuf_adds(out, "otherwise");
        } else {
            formula_text(s, rng, out);
        }
        strbuf_adds(out, "\"]");
    }
    return n;
}

static void program_text(struct shape *s, struct rng *rng, struct strbuf *out)
{
    size_t n_levels[INPUTS_MAX];
    size_t outcomes[ROWS_MAX];
    size_t n_inputs = 1 + rng_below(rng, INPUTS_MAX);
    *s = (struct shape){.n_lr = 1 + rng_below(rng, 2),
                        .n_seed = 1 + rng_below(rng, 3),
                        .n_measures = 1 + rng_below(rng, MEASURES_MAX)};
    fixture_head_text(out);
    strbuf_adds(out, s->n_lr == 2 ? "[[factor]]\nname = \"lr\"\nlevels = [1, 2]\n" : "");
    strbuf_adds(out, "[[factor]]\nname = \"seed\"\nreplicate = true\nlevels = [1");
    strbuf_addf(out, "%s%s]\n", s->n_seed > 1 ? ", 2" : "", s->n_seed > 2 ? ", 3" : "");
    strbuf_adds(out, "[stage.train]\ncommand = [\"w\"]\n[stage.train.params]\na = \"$arch\"\ns = "
                     "\"$seed\"\n");
    strbuf_adds(out, s->n_lr == 2 ? "l = \"$lr\"\n" : "");
    strbuf_adds(out, "[measure]\n");
    for (size_t m = 0; m < s->n_measures; m++) {
        strbuf_addf(out, "m%zu = { metric = \"train.m%zu\", chance = 0.1, floor = %.17g }\n", m, m,
                    (double)(28 + rng_below(rng, 8)) / 64);
    }
    strbuf_addf(out, "[contrast]\nc = { between = { arch = [\"x\", \"y\"] }, over = \"%s\" }\n",
                rng_below(rng, 2) == 0 ? "cleared" : "counted");
    strbuf_addf(out, "[counter]\nk = { contrast = \"c\", clears = \"%s\", binds = true }\n",
                rng_below(rng, 2) == 0 ? "every_cell" : "arm_means");
    for (size_t i = 0; i < n_inputs; i++) {
        strbuf_addf(out, "[[input]]\nname = \"i%zu\"\nlevels = [", i);
        n_levels[i] = levels_text(s, rng, out);
        strbuf_adds(out, "]\n");
    }
    for (size_t r = 0; r < ARRAY_LEN(outcomes); r++) {
        outcomes[r] = rng_below(rng, 2);
    }
    fixture_table_text(n_inputs, n_levels, outcomes, 2, out);
}

/* ------------------------------------------------------------------ one program's records */

struct state {
    bool possible[INPUTS_MAX][LEVELS_MAX];
    size_t outcome;
};

struct counts {
    uint64_t n_steps;
    uint64_t n_bound_early; /* an outcome bound before the last record */
    uint64_t n_covered;     /* an input without a true level whose levels are proved to cover */
    uint64_t n_may_be_none;
};

static struct evidence_value random_value(struct rng *rng)
{
    struct evidence_value v = {.state = VALUE_KNOWN,
                               .value = (double)(28 + rng_below(rng, 8)) / 64,
                               .has_n = rng_below(rng, 8) > 0,
                               .n = 64};
    switch (rng_below(rng, 16)) {
    case 0: v.value = (double)NAN; break;
    case 1: v.state = VALUE_NULL; break;
    case 2:
        v.state = VALUE_CENSORED;
        v.bound = v.value;
        v.bound_above = rng_below(rng, 2) == 0;
        break;
    default: break;
    }
    return v;
}

static void observe(const struct rules *rules, const struct evidence_value *values,
                    const bool *arrived, struct state *out, struct counts *counts)
{
    const struct plan_program *p = rules->program;
    struct evidence e;
    struct table_evaluation ev;
    evidence_init(&e, p);
    fixture_all_done(&e);
    for (size_t i = 0; i < p->n_measures * p->n_cells; i++) {
        if (arrived[i]) {
            evidence_add_metric(&e, i % p->n_cells, 0, p->measures[i / p->n_cells].metric,
                                &values[i]);
        }
    }
    fixture_evaluate(&e, rules, &ev);
    out->outcome = evaluation_outcome(&ev);
    for (size_t i = 0; i < p->n_inputs; i++) {
        const struct input_state *st = &ev.inputs[i];
        bool none_true = true;
        for (size_t l = 0; l < p->inputs[i].n_levels; l++) {
            out->possible[i][l] = st->possible[l];
            none_true = none_true && st->holds[l] != TRUTH_TRUE;
        }
        counts->n_may_be_none += st->may_be_none ? 1 : 0;
        counts->n_covered += none_true && !st->may_be_none ? 1 : 0;
    }
    evidence_release(&e);
}

static void compare(const struct plan_program *p, const struct state *before,
                    const struct state *after, const char *text)
{
    for (size_t i = 0; i < p->n_inputs; i++) {
        for (size_t l = 0; l < p->inputs[i].n_levels; l++) {
            if (after->possible[i][l] && !before->possible[i][l]) {
                fail_msg("a record made level l%zu of i%zu possible\nseed %llu\n%s", l, i,
                         (unsigned long long)base_seed, text);
            }
        }
    }
    if (before->outcome != INDEX_NONE && after->outcome != before->outcome) {
        fail_msg("a record took a bound outcome back\nseed %llu\n%s", (unsigned long long)base_seed,
                 text);
    }
}

static void check_order(const struct rules *rules, struct rng *rng, const char *text,
                        struct counts *counts)
{
    const struct plan_program *p = rules->program;
    struct evidence_value values[RECORDS_MAX];
    bool arrived[RECORDS_MAX] = {false};
    struct state before;
    struct state after;
    size_t n = p->n_measures * p->n_cells;
    for (size_t i = 0; i < n; i++) {
        values[i] = random_value(rng);
    }
    observe(rules, values, arrived, &before, counts);
    for (size_t left = n; left > 0; left--) {
        size_t skip = rng_below(rng, left);
        size_t i = 0;
        while (arrived[i] || skip > 0) {
            skip -= arrived[i] ? 0 : 1;
            i++;
        }
        arrived[i] = true;
        observe(rules, values, arrived, &after, counts);
        compare(p, &before, &after, text);
        counts->n_bound_early += left > 1 && after.outcome != INDEX_NONE ? 1 : 0;
        counts->n_steps++;
        before = after;
    }
}

static void test_narrowing(void **state)
{
    const size_t n_programs = fixture_cases(N_PROGRAMS) * (getenv("PREREGD_LONG") != NULL ? 30 : 1);
    struct rng rng;
    struct counts counts = {0};
    (void)state;
    rng_seed(&rng, base_seed);
    for (size_t k = 0; k < n_programs; k++) {
        struct shape shape;
        struct rules rules;
        struct strbuf text = STRBUF_INIT;
        program_text(&shape, &rng, &text);
        struct plan_program *p = fixture_program(text.buf);
        fixture_rules(p, &rules);
        for (size_t i = 0; i < N_ORDERS; i++) {
            check_order(&rules, &rng, text.buf, &counts);
        }
        rules_release(&rules);
        program_free(p);
        strbuf_release(&text);
    }
    print_message("%llu records; bound early %llu times, covered %llu, maybe none %llu\n",
                  (unsigned long long)counts.n_steps, (unsigned long long)counts.n_bound_early,
                  (unsigned long long)counts.n_covered, (unsigned long long)counts.n_may_be_none);
    /* The test means something only while all of these happen often. */
    assert_true(counts.n_bound_early > counts.n_steps / 20 &&
                counts.n_covered > counts.n_steps / 20 &&
                counts.n_may_be_none > counts.n_steps / 20);
}

/* ------------------------------------------------------------------ the cases that were found */

static void open_program(const char *levels, const char *rows, struct plan_program **p,
                         struct rules *rules)
{
    struct strbuf text = STRBUF_INIT;
    fixture_head_text(&text);
    strbuf_addf(&text,
                "[stage.train]\ncommand = [\"w\"]\nparams = { a = \"$arch\" }\n"
                "[measure]\nm1 = { metric = \"train.m1\", floor = 0.5 }\n"
                "m2 = { metric = \"train.m2\", floor = 0.5 }\n"
                "[contrast]\nc = { between = { arch = [\"x\", \"y\"] } }\n"
                "[counter]\nk = { contrast = \"c\", clears = \"every_cell\", binds = true }\n"
                "[[input]]\nname = \"i\"\nlevels = [%s]\n[table]\ninputs = [\"i\"]\nrows = [%s]\n"
                "[outcome]\nO1 = { prior = 0.4, title = \"a\" }\n"
                "O2 = { prior = 0.4, title = \"b\" }\n",
                levels, rows);
    *p = fixture_program(text.buf);
    fixture_rules(*p, rules);
    strbuf_release(&text);
}

/* m1 is 0.75 in y and m1_x in x, m2 of x is NaN: the possible levels, "10" for the first alone. */
static void expect_possible(const char *levels, const char *rows, double m1_x, const char *want)
{
    struct plan_program *p = NULL;
    struct rules rules;
    struct counts counts = {0};
    struct state got = {0};
    open_program(levels, rows, &p, &rules);
    const struct evidence_value values[4] = {{.state = VALUE_KNOWN, .value = m1_x},
                                             {.state = VALUE_KNOWN, .value = 0.75},
                                             {.state = VALUE_KNOWN, .value = (double)NAN},
                                             {.state = VALUE_KNOWN, .value = 0.75}};
    const bool arrived[4] = {true, true, true, true};
    observe(&rules, values, arrived, &got, &counts);
    for (size_t l = 0; l < strlen(want); l++) {
        if (got.possible[0][l] != (want[l] == '1')) {
            fail_msg("%s: level %zu is%s possible", levels, l, got.possible[0][l] ? "" : " not");
        }
    }
    rules_release(&rules);
    program_free(p);
}

static void test_cases(void **state)
{
    static const char two[] = "[\"a\", \"O1\"], [\"b\", \"O2\"]";
    static const char three[] = "[\"a\", \"O1\"], [\"b\", \"O2\"], [\"c\", \"O2\"]";
    (void)state;
    /* m1 says no, m2 is open: m2 may say no, too, and then neither level is told apart. */
    expect_possible("[\"a\", \"contrast.c[m1].mean > 0\"], [\"b\", \"contrast.c[m2].mean > 0\"]",
                    two, 0.5, "11");
    /* What is true stays decided. */
    expect_possible("[\"a\", \"contrast.c[m1].mean > 0\"], [\"b\", \"contrast.c[m2].mean > 0\"]",
                    two, 1, "10");
    /* K lies in 0..1: the open levels cover it. */
    expect_possible("[\"a\", \"counter.k == 2\"], [\"b\", \"counter.k == 1\"], [\"c\", "
                    "\"counter.k == 0\"]",
                    three, 0.25, "011");
    /* They do not. */
    expect_possible("[\"a\", \"counter.k == 2\"], [\"b\", \"counter.k == 1\"], [\"c\", "
                    "\"counter.k < 0\"]",
                    three, 0.25, "111");
    /* Complementary comparisons of one quantity. */
    expect_possible("[\"a\", \"counter.k > 1\"], [\"b\", \"contrast.c[m2].mean < 0.1\"], [\"c\", "
                    "\"0.1 <= contrast.c[m2].mean\"]",
                    three, 0.25, "011");
    /* All but one point. */
    expect_possible("[\"a\", \"counter.k > 1\"], [\"b\", \"contrast.c[m2].mean < 0.1\"], [\"c\", "
                    "\"0.1 < contrast.c[m2].mean\"]",
                    three, 0.25, "111");
    /* Two quantities held against each other. */
    expect_possible("[\"a\", \"contrast.c[m2].mean > contrast.c[m1].mean\"], [\"b\", "
                    "\"not (contrast.c[m2].mean > contrast.c[m1].mean)\"]",
                    two, 0.25, "11");
    expect_possible("[\"a\", \"counter.k == 2\"], [\"b\", \"contrast.c[m2].mean > 0\"], [\"c\", "
                    "\"otherwise\"]",
                    three, 0.25, "011");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_narrowing),
    };
    base_seed = fixture_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
