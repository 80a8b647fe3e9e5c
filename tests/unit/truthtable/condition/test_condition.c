/* The grammar of conditions: structure, types, names, places of errors, limits; and their
 * evaluation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/evaluate/evaluation.h"

static const char toml[] =
    "[program]\n"
    "name = \"t\"\n"
    "schema = 1\n"
    "question = \"?\"\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"it's\"]\n"
    "[[factor]]\nname = \"lr\"\nlevels = [1e-3, 2e-3]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
    "[stage.train]\ncommand = [\"w\"]\nparams = { a = \"$arch\", l = \"$lr\", s = \"$seed\" }\n"
    "[measure]\n"
    "q = { metric = \"train.q\" }\n"
    "g = { metric = \"train.g\", items = 100, chance = 0.25, floor = 0.3 }\n"
    "[contrast]\n"
    "arch = { between = { arch = [\"it's\", \"dense\"] }, over = \"counted\" }\n"
    "[counter]\nk = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n"
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"counter.k == 1\"], [\"b\", \"otherwise\"]]\n"
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"], [\"b\", \"O2\"]]\n"
    "[outcome]\nO1 = { prior = 0.5, title = \"one\" }\nO2 = { prior = 0.4, title = \"two\" }\n"
    "[exclusion]\nbudget = 0.5\n"
    "[instrument.bayes]\ncontrast = \"arch\"\npriors = { s = 0.01, w = 0.02 }\n";

struct fixture {
    struct plan_program *p;
    struct arena arena;
    struct fact_table facts;
    struct diag diag;
};

static void set_up(struct fixture *f)
{
    f->p = fixture_program(toml);
    arena_init(&f->arena);
    f->facts = (struct fact_table){.arena = &f->arena};
    diag_init(&f->diag, "grid.toml");
}

static void tear_down(struct fixture *f)
{
    diag_release(&f->diag);
    arena_release(&f->arena);
    program_free(f->p);
}

static const struct cond *parse(struct fixture *f, const char *text, enum cond_use use)
{
    struct cond_text t = {.text = text, .place = {.line = 7, .column = 11}};
    return cond_parse(&t, f->p, use, &f->facts, &f->diag);
}

static void test_structure(void **state)
{
    static const char *const cases[][2] = {
        {"counter.k == 1", "counter.k == 1"},
        {"contrast.arch.mean < 0 or contrast.arch.max_abs >= 0.04 and not counter.k > 2",
         "(contrast.arch.mean < 0 or (contrast.arch.max_abs >= 0.04 and not (counter.k > 2)))"},
        {"1 + 2 * 3 - 4 / -5 < 6", "((1 + (2 * 3)) - (4 / -(5))) < 6"},
        {"(1 + 2) * 3 <= 9 == 9", "((1 + 2) * 3) <= 9 == 9"},
        {"0.85 <= ratio(fact.train.step_seconds, arch, 'it''s', 'dense') <= 1.20",
         "0.85 <= ratio(fact.train.step_seconds, arch, 'it''s', 'dense') <= 1.2"},
        {"ratio(fact.train.p, lr, '0.001', '0.002') within 1e-2",
         "ratio(fact.train.p, lr, '0.001', '0.002') within 0.01"},
        {"rank(measure.g, arch, 'it''s') == 1", "rank(measure.g, arch, 'it''s') == 1"},
        {"rank(measure.g,arch,'dense',lr,'0.001') == 1",
         "rank(measure.g, arch, 'dense', lr, '0.001') == 1"},
        {"trend(measure.q, lr).slope > 0", "trend(measure.q, lr).slope > 0"},
        {"trend(contrast.arch[q], lr).ci_low > 0", "trend(contrast.arch[q], lr).ci_low > 0"},
        {"trend(measure.q, lr, arch, 'dense').n > 1", "trend(measure.q, lr, arch, 'dense').n > 1"},
        {"contrast.arch[q].ci_low > 0", "contrast.arch[q].ci_low > 0"},
        {"measure.g['it''s'].mean - measure.g['dense'].mean != 0",
         "(measure.g['it''s'].mean - measure.g['dense'].mean) != 0"},
        {"max(1, min(fact.train.x, 2), abs(-3)) >= 3",
         "max(1, min(fact.train.x, 2), abs(-(3))) >= 3"},
        {"(counter.k == 1) and otherwise", "(counter.k == 1 and otherwise)"},
        {"1<2<3", "1 < 2 < 3"},
    };
    struct fixture f;
    (void)state;
    set_up(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        const struct cond *c = parse(&f, cases[i][0], COND_USE_INPUT);
        struct strbuf sb = STRBUF_INIT;
        if (c == NULL) {
            diag_print(&f.diag, stderr);
            fail_msg("%s", cases[i][0]);
        }
        cond_print(c, f.p, &f.facts, &sb);
        assert_string_equal(sb.buf, cases[i][1]);
        strbuf_release(&sb);
    }
    assert_int_equal(f.facts.n, 3);
    tear_down(&f);
}

static void test_errors(void **state)
{
    /* The column counts from the opening quote at 11: offset 0 is column 12. */
    static const struct {
        const char *text;
        unsigned column;
        const char *message;
    } cases[] = {
        {"", 12, "it ends where a number or a name is expected"},
        {"counter.kk == 1", 20, "did you mean \"k\"?"},
        {"kounter.k == 1", 12, "did you mean \"counter\"?"},
        {"contrast.arch.max_ab > 1", 26, "did you mean \"max_abs\"?"},
        {"contrast.arch.sd > 1", 26, "no pooled field \"sd\""},
        {"contrast.arch[q].sign > 1", 29, "no per-measure field \"sign\""},
        {"contrast.arch[h].mean > 1", 26, "no measure \"h\""},
        {"measure.g['moe'].mean > 1", 22, "no factor has a level 'moe'"},
        {"measure.g['dense'].sd > 1", 31, "no field \"sd\""},
        {"ratio(fact.train.x, arch, 'dense', 'dens') > 1", 47, "did you mean \"dense\"?"},
        {"ratio(fact.train.x, arch, 'dense', 'dense') > 1", 12, "always 1"},
        {"ratio(counter.k, arch, 'dense', 'x') > 1", 18, "a ratio is one of facts"},
        {"rank(counter.k, arch, 'dense') > 1", 17, "a rank is one by a measure"},
        {"rank(measure.q, seed, '1') > 1", 28, "factor seed holds replicates"},
        {"rank(measure.q, arch, 'dens') > 1", 34, "did you mean \"dense\"?"},
        {"rank(measure.q, arch, 'dense', arch, 'dense') > 1", 43, "arch is named already"},
        {"rank(measure.q, arch, 'dense', seed, '1') > 1", 43, "seed holds replicates"},
        {"trend(counter.k, lr).slope > 1", 18, "a trend is one of measure.NAME"},
        {"trend(measure.q, seed).slope > 1", 29, "factor seed holds replicates"},
        {"trend(measure.q, lr).mean > 1", 33, "no field of a trend \"mean\""},
        {"trend(measure.q, lr) > 1", 33, "\".\""},
        {"trend(contrast.arch.mean, lr).slope > 1", 31, "\"[\""},
        {"trend(contrast.arch[q], arch).slope > 1", 12, "does not leave factor arch free"},
        {"trend(contrast.arch[q], lr, arch, 'dense').slope > 1", 12,
         "does not leave factor arch free"},
        {"fact.tran.x > 1", 17, "did you mean \"train\"?"},
        {"instrument.bayes.x > 1", 12, "forecasts only"},
        {"1 + 2", 14, "a number stands where a comparison is needed"},
        {"(1 < 2) + 3 > 4", 13, "a truth value stands where a number is needed"},
        {"1 < 2 and 3", 22, "a number stands where a comparison is needed"},
        {"not not 1 < 2", 16, "no name \"not\""},
        {"1 = 2", 14, "written =="},
        {"1 ! 2", 14, "written !="},
        {"1 < 2 3", 18, "\"and\", \"or\" or the end is expected, not \"3\""},
        {"1 < \"x\"", 16, "single quotes"},
        {"measure.g['dense.mean > 1", 22, "not closed"},
        {"1 =< 2", 14, "did you mean <=?"},
        {"1 => 2", 14, "did you mean >=?"},
        {"1. < 2", 12, "digits must follow the point"},
        {"1e < 2", 12, "digits must follow the exponent"},
        {"1e999 < 2", 12, "too large"},
        {"1x < 2", 12, "neither a number nor a name"},
        {"(1 < 2", 18, "it ends where \")\" is expected"},
        {"1 within counter.k", 21, "a number is expected, not \"counter\""},
        {"1 < \xc3\xa9 2", 16, "no meaning here"},
        {"'\xc3\xa9' < 2 ?", 12, "a number or a name is expected"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct fixture f;
        set_up(&f);
        assert_null(parse(&f, cases[i].text, COND_USE_VALIDITY));
        assert_int_equal(f.diag.n_errors, 1);
        if (strstr(f.diag.items[0].msg, cases[i].message) == NULL ||
            f.diag.items[0].column != cases[i].column || f.diag.items[0].line != 7) {
            fail_msg("%s: got %u:%u %s", cases[i].text, f.diag.items[0].line,
                     f.diag.items[0].column, f.diag.items[0].msg);
        }
        tear_down(&f);
    }
}

static void test_place_in_lines(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f);
    assert_null(parse(&f, "counter.k == 1\n  or counter.z == 2", COND_USE_INPUT));
    assert_int_equal(f.diag.items[0].line, 8);
    assert_int_equal(f.diag.items[0].column, 14);
    tear_down(&f);
}

static void test_uses(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f);
    assert_non_null(parse(&f, "instrument.bayes.robust", COND_USE_FORECAST));
    assert_non_null(parse(&f, "instrument.bayes.max_bf10 < 0.33", COND_USE_FORECAST));
    assert_null(parse(&f, "instrument.bayes.max_bf10", COND_USE_FORECAST));
    assert_null(parse(&f, "instrument.bayes.robust > 1", COND_USE_FORECAST));
    assert_null(parse(&f, "instrument.bayes.robust", COND_USE_INPUT));
    assert_null(parse(&f, "instrument.bayes.robusst", COND_USE_FORECAST));
    assert_string_equal(f.diag.items[f.diag.n_items - 1].msg +
                            strlen(f.diag.items[f.diag.n_items - 1].msg) -
                            strlen("did you mean \"robust\"?"),
                        "did you mean \"robust\"?");
    assert_null(parse(&f, "otherwise", COND_USE_VALIDITY));
    assert_null(parse(&f, "otherwise", COND_USE_FORECAST));
    tear_down(&f);
}

/* n times `a`, then `middle`, then n times `b`. */
static char *nested(const char *a, const char *middle, const char *b, size_t n)
{
    struct strbuf sb = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        strbuf_adds(&sb, a);
    }
    strbuf_adds(&sb, middle);
    for (size_t i = 0; i < n; i++) {
        strbuf_adds(&sb, b);
    }
    return strbuf_detach(&sb);
}

static void test_limits(void **state)
{
    static const struct {
        const char *a;
        const char *middle;
        const char *b;
        size_t n;
        const char *message; /* NULL: it parses */
    } cases[] = {
        {"(", "1 < 2", ")", COND_DEPTH_MAX - 1, NULL},
        {"(", "1 < 2", ")", COND_DEPTH_MAX, "nested deeper"},
        {"abs(", "1", ")", 500, "nested deeper"},
        {"", "1 < 2", " ", COND_LENGTH_MAX, "longer than"},
        {"1+", "1 < 2", "", 1200, "more than"},
        {"1<", "1", "", 70, "more than"},
        {"1<2 and ", "1<2", "", 70, "more than"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].a);
        struct fixture f;
        set_up(&f);
        char *text = nested(cases[i].a, cases[i].middle, cases[i].b, cases[i].n);
        bool ok = parse(&f, text, COND_USE_INPUT) != NULL;
        assert_int_equal(ok, cases[i].message == NULL);
        assert_true(ok || strstr(f.diag.items[0].msg, cases[i].message) != NULL);
        free(text);
        tear_down(&f);
    }
}

/* Cells in order: dense 0.001 s1, s2; dense 0.002 s1, s2; it's 0.001 s1, s2; it's 0.002 s1, s2. */
static const struct {
    const char *text;
    enum truth want;
} EVALUATED[] = {
    {"counter.k == 0", TRUTH_TRUE},
    {"contrast.arch[q].mean == 1.5", TRUTH_TRUE}, /* settings 1 and 2 */
    {"contrast.arch[q].n == 2", TRUTH_TRUE},
    {"contrast.arch[q].sd == contrast.arch[q].se * contrast.arch[q].n / contrast.arch[q].n",
     TRUTH_FALSE},
    {"0.999 < contrast.arch[q].se * 2 / 1 < 1.001", TRUTH_TRUE}, /* d = {1, 2} */
    {"contrast.arch[q].ci_low < 0 and contrast.arch[q].ci_high > 3", TRUTH_TRUE},
    {"contrast.arch.n == 4", TRUTH_TRUE}, /* 2 measures x 2 settings */
    {"contrast.arch.max == 2 and contrast.arch.max_abs == 2", TRUTH_TRUE},
    {"contrast.arch.sign == 1", TRUTH_TRUE},
    {"contrast.arch.min < 0.006", TRUTH_TRUE},
    {"measure.q['dense'].mean == 2.5", TRUTH_TRUE},
    {"measure.q['1'].mean == 2.5", TRUTH_TRUE},
    {"ratio(fact.train.secs, arch, 'it''s', 'dense') within 1", TRUTH_TRUE},
    {"ratio(fact.train.secs, arch, 'it''s', 'dense') within 0.999", TRUTH_FALSE},
    {"ratio(fact.train.none, arch, 'it''s', 'dense') within 1", TRUTH_UNKNOWN},
    {"rank(measure.q, arch, 'it''s') == 1 and rank(measure.q, arch, 'dense') == 2", TRUTH_TRUE},
    {"rank(measure.q, lr, '0.002', arch, 'dense') == 1", TRUTH_TRUE},
    {"rank(measure.g, lr, '0.002', arch, 'dense') == 1", TRUTH_TRUE}, /* 0.305 and 0.325 */
    {"trend(measure.q, lr).slope == 2.5", TRUTH_TRUE},                /* 1 and 4 */
    {"1.499 < trend(measure.q, lr).se < 1.501 and trend(measure.q, lr).n == 2", TRUTH_TRUE},
    {"-16.6 < trend(measure.q, lr).ci_low < -16.5", TRUTH_TRUE},
    {"21.5 < trend(measure.q, lr).ci_high < 21.6", TRUTH_TRUE},
    {"trend(measure.q, lr, arch, 'dense').slope == 2", TRUTH_TRUE},
    {"trend(measure.q, lr, arch, 'dense').se >= 0", TRUTH_UNKNOWN}, /* no spread */
    {"trend(contrast.arch[q], lr).slope == 1", TRUTH_TRUE},         /* -2 and 4 */
    {"2.999 < trend(contrast.arch[q], lr).se < 3.001", TRUTH_TRUE},
    {"fact.train.secs == 1.5", TRUTH_TRUE},
    {"fact.train.none > 0 or 1 < 2", TRUTH_TRUE},
    {"fact.train.none > 0 and 2 < 1", TRUTH_FALSE},
    {"not fact.train.none > 0", TRUTH_UNKNOWN},
    {"1 / (counter.k - 0) > 1", TRUTH_UNKNOWN},
    {"0 < contrast.arch[q].bf10", TRUTH_TRUE},
    {"1 < 2 < 2", TRUTH_FALSE},
    {"max(1, 3, 2) == 3 and min(3, 1, 2) == 1 and abs(-2) == 2", TRUTH_TRUE},
    {"1 - 2 - 3 == -4 and 8 / 4 / 2 == 1", TRUTH_TRUE},
};

static void test_evaluation(void **state)
{
    static const double q[8] = {1, 2, 3, 4, 3, 2, 3, 8};
    static const double g[8] = {0.30, 0.31, 0.35, 0.30, 0.29, 0.33, 0.36, 0.40};
    static const double secs[8] = {1, 1, 1, 1, 2, 2, 2, 2};
    struct fixture f;
    (void)state;
    set_up(&f);
    struct evidence e;
    struct rules rules;
    evidence_init(&e, f.p);
    fixture_all_done(&e);
    fixture_rules(f.p, &rules);
    const struct cond *conds[ARRAY_LEN(EVALUATED)];
    for (size_t i = 0; i < ARRAY_LEN(EVALUATED); i++) {
        CHECK_ROW("%s", EVALUATED[i].text);
        struct cond_text t = {.text = EVALUATED[i].text};
        conds[i] = cond_parse(&t, f.p, COND_USE_VALIDITY, &rules.facts, &f.diag);
        assert_non_null(conds[i]);
    }
    for (size_t c = 0; c < 8; c++) {
        fixture_score(&e, c, "q", q[c], 0);
        fixture_score(&e, c, "g", g[c], 100);
        struct evidence_value v = {.state = VALUE_KNOWN, .value = secs[c]};
        evidence_add_fact(&e, c, 0, "secs", &v);
    }
    struct coverage coverage;
    struct table_reading reading;
    struct table_evaluation ev;
    coverage_init(&coverage, &e, &f.arena);
    reading_of_evidence(&reading, &e, &rules, &coverage, &f.arena);
    evaluation_run(&ev, &rules, &reading, &f.arena);
    for (size_t i = 0; i < ARRAY_LEN(EVALUATED); i++) {
        const char *why = NULL;
        enum truth got = evaluation_truth(&ev, conds[i], TRUTH_UNKNOWN, &why);
        if (got != EVALUATED[i].want || (got == TRUTH_UNKNOWN) != (why != NULL)) {
            fail_msg("%s: got %d (%s)", EVALUATED[i].text, got, why == NULL ? "-" : why);
        }
    }
    rules_release(&rules);
    evidence_release(&e);
    tear_down(&f);
}

/* Replicates that agree to seven digits: the factor is beyond double, and known to be great. */
static void test_strong_factor(void **state)
{
    static const double q[8] = {1, 2, 3, 4, 2, 3.000001, 4, 5};
    struct fixture f;
    struct evidence e;
    struct rules rules;
    struct coverage coverage;
    struct table_reading reading;
    struct table_evaluation ev;
    const char *why = NULL;
    (void)state;
    set_up(&f);
    evidence_init(&e, f.p);
    fixture_all_done(&e);
    fixture_rules(f.p, &rules);
    struct cond_text t = {.text = "contrast.arch[q].bf10 > 1e300"};
    const struct cond *cond = cond_parse(&t, f.p, COND_USE_VALIDITY, &rules.facts, &f.diag);
    assert_non_null(cond);
    for (size_t c = 0; c < 8; c++) {
        fixture_score(&e, c, "q", q[c], 0);
        fixture_score(&e, c, "g", 0.3, 100);
    }
    coverage_init(&coverage, &e, &f.arena);
    reading_of_evidence(&reading, &e, &rules, &coverage, &f.arena);
    evaluation_run(&ev, &rules, &reading, &f.arena);
    assert_int_equal(evaluation_truth(&ev, cond, TRUTH_UNKNOWN, &why), TRUTH_TRUE);
    rules_release(&rules);
    evidence_release(&e);
    tear_down(&f);
}

/* A replicate that lost a cell leaves a trend with all its levels; a rank is over the cells left.
 */
static void test_trend_without_a_cell(void **state)
{
    static const double q[8] = {1, 2, 3, 4, 3, 2, 3, 8};
    static const struct {
        const char *text;
        enum truth want;
    } cases[] = {
        {"trend(measure.q, lr).n == 1 and trend(measure.q, lr).slope == 1", TRUTH_TRUE},
        {"trend(measure.q, lr).ci_low < 9", TRUTH_UNKNOWN},
        {"trend(measure.q, lr, arch, 'it''s').n == 2", TRUTH_TRUE},
        {"trend(contrast.arch[q], lr).slope == -2", TRUTH_TRUE},
        {"rank(measure.q, arch, 'it''s') == 1", TRUTH_TRUE},
    };
    struct fixture f;
    struct evidence e;
    struct rules rules;
    struct table_evaluation ev;
    const struct cond *conds[ARRAY_LEN(cases)];
    (void)state;
    set_up(&f);
    evidence_init(&e, f.p);
    fixture_all_done(&e);
    fixture_rules(f.p, &rules);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cond_text t = {.text = cases[i].text};
        conds[i] = cond_parse(&t, f.p, COND_USE_VALIDITY, &rules.facts, &f.diag);
        assert_non_null(conds[i]);
    }
    for (size_t c = 0; c < 8; c++) {
        fixture_score(&e, c, "q", q[c], 0);
    }
    evidence_set_task(&e, 1, 0, TASK_END_BLOCKED, "oom");
    fixture_evaluate(&e, &rules, &ev);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        const char *why = NULL;
        assert_int_equal(evaluation_truth(&ev, conds[i], TRUTH_UNKNOWN, &why), cases[i].want);
    }
    rules_release(&rules);
    evidence_release(&e);
    tear_down(&f);
}

/* The same four scores in another order: their means differ in the last digit alone. */
static void test_ties_do_not_hang_on_rounding(void **state)
{
    static const double q[8] = {0.1, 0.2, 0.3, 0.7, 0.1, 0.3, 0.2, 0.7};
    static const char *const ranks[] = {"rank(measure.q, arch, 'it''s') == 1",
                                        "rank(measure.q, arch, 'dense') == 1"};
    struct fixture f;
    struct evidence e;
    struct rules rules;
    struct table_evaluation ev;
    (void)state;
    set_up(&f);
    evidence_init(&e, f.p);
    fixture_all_done(&e);
    fixture_rules(f.p, &rules);
    for (size_t c = 0; c < 8; c++) {
        fixture_score(&e, c, "q", q[c], 0);
    }
    fixture_evaluate(&e, &rules, &ev);
    assert_true(level_mean(&ev, 0, 0, 0).lo != level_mean(&ev, 0, 0, 1).lo);
    for (size_t i = 0; i < ARRAY_LEN(ranks); i++) {
        CHECK_ROW("%s", ranks[i]);
        const struct cond_text t = {.text = ranks[i]};
        const struct cond *c = cond_parse(&t, f.p, COND_USE_VALIDITY, &rules.facts, &f.diag);
        const char *why = NULL;
        assert_int_equal(evaluation_truth(&ev, c, TRUTH_UNKNOWN, &why), TRUTH_TRUE);
    }
    rules_release(&rules);
    evidence_release(&e);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_place_in_lines),
        cmocka_unit_test(test_uses),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_strong_factor),
        cmocka_unit_test(test_trend_without_a_cell),
        cmocka_unit_test(test_ties_do_not_hang_on_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
