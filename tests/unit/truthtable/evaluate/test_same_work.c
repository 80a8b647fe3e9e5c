/* What a work under several names is in the verdict: a difference within it is 0 and has no error,
 * and the replicates of the others stay independent. */
#include <math.h>
#include <string.h>

#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/condition/equal_pairs.h"

/* 12 cells: arm x budget x seed. */
#define PLAN                                                                                       \
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"                                      \
    "[[factor]]\nname = \"arm\"\nlevels = [\"dense\", \"moe\"]\n"                                  \
    "[[factor]]\nname = \"budget\"\nlevels = [\"active\", \"total\"]\n"                            \
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"                          \
    "[stage.train]\ncommand = [\"w\"]\n"                                                           \
    "params = { a = \"$arm\", b = \"$budget\", s = \"$seed\" }\n"                                  \
    "[measure]\nloss = { metric = \"train.loss\", better = \"lower\" }\n"                          \
    "acc = { metric = \"train.acc\", items = 100, chance = 0.1, floor = 0.2 }\n"                   \
    "[contrast]\narm = { between = { arm = [\"moe\", \"dense\"] } }\n"                             \
    "budget = { between = { budget = [\"total\", \"active\"] } }\n"                                \
    "dense = { between = { budget = [\"total\", \"active\"] }, where = { arm = \"dense\" } }\n"    \
    "of_total = { between = { arm = [\"moe\", \"dense\"] }, where = { budget = \"total\" } }\n"    \
    "of_active = { between = { arm = [\"moe\", \"dense\"] }, where = { budget = \"active\" } }\n"  \
    "shift = { of = \"of_total\", minus = \"of_active\" }\n"                                       \
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.arm[loss].mean > 0\"], [\"b\", "        \
    "\"otherwise\"]]\n"                                                                            \
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"                         \
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"          \
    "[exclusion]\nbudget = 0.5\n"
#define SAME "[[same_work]]\nacross = \"budget\"\nwhere = { arm = \"dense\" }\n"

enum { ARM, BUDGET, DENSE, OF_TOTAL, OF_ACTIVE, SHIFT };
enum { LOSS, ACC, N_MEASURES };

struct scene {
    struct plan_program *p;
    struct rules rules;
    struct evidence e;
    struct table_evaluation ev;
};

/* loss of the cells: dense 3.1 3.2 3.4; moe active 2.9 2.8 2.6, total 2.5 2.2 2.4. */
static void open_scene(struct scene *s, const char *toml, double last_dense)
{
    static const double loss[12] = {3.1, 3.2, 3.4, 3.1, 3.2, 3.4, 2.9, 2.8, 2.6, 2.5, 2.2, 2.4};
    s->p = fixture_program(toml);
    fixture_rules(s->p, &s->rules);
    evidence_init(&s->e, s->p);
    fixture_all_done(&s->e);
    for (size_t c = 0; c < 12; c++) {
        fixture_score(&s->e, c, "loss", c == 5 ? last_dense : loss[c], 0);
        fixture_score(&s->e, c, "acc", (double)(40 + c % 3 + (c >= 6 ? 10 : 0)) / 100, 100);
    }
    fixture_evaluate(&s->e, &s->rules, &s->ev);
}

static void close_scene(struct scene *s)
{
    evidence_release(&s->e);
    rules_release(&s->rules);
    program_free(s->p);
}

static const struct number *field(const struct scene *s, size_t contrast, size_t measure,
                                  enum contrast_field f)
{
    return &s->ev.per_measure[contrast * N_MEASURES + measure].fields[f];
}

static void expect_point(const struct number *x, double value)
{
    assert_true(number_is_point(x));
    assert_float_equal(x->lo, value, 1e-12);
}

static void expect_equal_why(const struct number *x)
{
    assert_false(x->known);
    assert_string_equal(x->why, EQUAL_WHY);
}

static void test_a_contrast_within_one_work_has_no_error(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, PLAN SAME, 3.4);
    for (size_t m = 0; m < N_MEASURES; m++) {
        expect_point(field(&s, DENSE, m, FIELD_MEAN), 0);
        expect_point(field(&s, DENSE, m, FIELD_N), 0);
        for (size_t f = FIELD_SD; f <= FIELD_ITEM_HIGH; f++) {
            expect_equal_why(field(&s, DENSE, m, (enum contrast_field)f));
        }
    }
    struct condition_pair pair = evaluation_pair(&s.ev, LOSS, 0, 1);
    expect_point(&pair.mean, 0);
    expect_point(&pair.n, 0);
    expect_equal_why(&pair.se);
    close_scene(&s);
}

/* Without the section the same numbers are differences that happen to be equal. */
static void test_equal_scores_alone_are_not_one_work(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, PLAN, 3.4);
    expect_point(field(&s, DENSE, LOSS, FIELD_N), 3);
    expect_point(field(&s, DENSE, LOSS, FIELD_SD), 0);
    assert_string_equal(field(&s, DENSE, LOSS, FIELD_SE)->why,
                        "no spread seen: the replicates' differences are equal");
    assert_true(field(&s, DENSE, ACC, FIELD_ITEM_SE)->known);
    close_scene(&s);
}

/* The arms' contrast has the same dense models in both settings: it is averaged over settings for
 * each seed before the seeds' spread is taken, so n is the seeds and not the pairs. */
static void test_shared_models_leave_replicates_independent(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, PLAN SAME, 3.4);
    /* by seed: (2.9 + 2.5)/2 - 3.1, (2.8 + 2.2)/2 - 3.2, (2.6 + 2.4)/2 - 3.4 */
    const double d[] = {-0.4, -0.7, -0.9};
    expect_point(field(&s, ARM, LOSS, FIELD_MEAN), (d[0] + d[1] + d[2]) / 3);
    expect_point(field(&s, ARM, LOSS, FIELD_N), 3);
    expect_point(field(&s, ARM, LOSS, FIELD_SD), 0.25166114784235832);
    /* budget: a half of what it does to the mixtures, -0.4 -0.6 -0.2 */
    expect_point(field(&s, BUDGET, LOSS, FIELD_MEAN), -0.2);
    expect_point(field(&s, BUDGET, LOSS, FIELD_N), 3);
    expect_point(field(&s, BUDGET, LOSS, FIELD_SD), 0.1);
    /* of the shift the dense models cancel */
    expect_point(field(&s, SHIFT, LOSS, FIELD_MEAN), -0.4);
    expect_point(field(&s, SHIFT, LOSS, FIELD_SD), 0.2);
    close_scene(&s);
}

/* What is left of a difference when one arm is one work is that of the other arms. Shares of 0.41
 * and 0.51 of 100 items. */
static void test_items_of_a_shared_arm(void **state)
{
    const double dense = 0.41 * 0.59 / 100;
    const double moe = 0.51 * 0.49 / 100;
    struct scene s;
    (void)state;
    open_scene(&s, PLAN, 3.4);
    expect_point(field(&s, SHIFT, ACC, FIELD_ITEM_SE), sqrt(2 * dense + 2 * moe));
    close_scene(&s);
    open_scene(&s, PLAN SAME, 3.4);
    expect_point(field(&s, SHIFT, ACC, FIELD_ITEM_SE), sqrt(2 * moe));
    expect_point(field(&s, ARM, ACC, FIELD_ITEM_SE), sqrt(dense + moe));
    /* one of its two settings is 0 by construction, the other's difference counts half */
    expect_point(field(&s, BUDGET, ACC, FIELD_ITEM_SE), sqrt(0.25 * (moe + moe)));
    close_scene(&s);
}

/* A difference of contrasts whose cells cancel in twos, either way. */
static void test_a_difference_that_cancels(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, PLAN SAME "[[same_work]]\nacross = \"budget\"\nwhere = { arm = \"moe\" }\n",
               3.4);
    assert_true(contrast_is_equal(s.p, &s.rules.layout, SHIFT, LOSS));
    assert_true(contrast_is_equal(s.p, &s.rules.layout, BUDGET, LOSS));
    assert_false(contrast_is_equal(s.p, &s.rules.layout, ARM, LOSS));
    /* the moe records of the scene differ, so nothing of them is known */
    assert_false(field(&s, SHIFT, LOSS, FIELD_MEAN)->known);
    expect_point(field(&s, SHIFT, ACC, FIELD_MEAN), 0);
    expect_equal_why(field(&s, SHIFT, ACC, FIELD_SE));
    close_scene(&s);
}

static void test_two_records_of_one_work_that_differ(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, PLAN SAME, 3.5);
    assert_false(field(&s, DENSE, LOSS, FIELD_MEAN)->known);
    assert_false(field(&s, OF_ACTIVE, LOSS, FIELD_MEAN)->known); /* the other name's, too */
    const struct score *scores = s.ev.reading->scores;
    assert_string_equal(scores[2].value.why, scores[5].value.why);
    assert_non_null(strstr(scores[5].value.why, "arm=dense,budget=active,seed=3 is one work with"));
    assert_true(scores[4].value.known);
    close_scene(&s);
}

/* Evaluates again what was changed since. */
static void evaluate_again(struct scene *s)
{
    fixture_evaluate(&s->e, &s->rules, &s->ev);
}

/* Three names of one work, which reports a loss and its tokens. */
#define THREE_NAMES                                                                                \
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"                                      \
    "[[factor]]\nname = \"way\"\nlevels = [\"x\", \"y\", \"z\"]\n"                                 \
    "[stage.train]\ncommand = [\"w\"]\n[[same_work]]\nacross = \"way\"\n"                          \
    "[measure]\nloss = { metric = \"train.loss\", better = \"lower\" }\n"                          \
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"fact.train.tokens > 1\"], [\"b\", "              \
    "\"otherwise\"]]\n"                                                                            \
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"                         \
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"

/* The work itself has no record, and its other names disagree, in the score and in the fact. */
static void test_names_that_differ_without_the_work(void **state)
{
    (void)state;
    struct scene s = {.p = fixture_program(THREE_NAMES)};
    fixture_rules(s.p, &s.rules);
    evidence_init(&s.e, s.p);
    fixture_all_done(&s.e);
    for (size_t c = 1; c < 3; c++) {
        const struct evidence_value tokens = {.state = VALUE_KNOWN, .value = (double)(100 * c)};
        fixture_score(&s.e, c, "loss", 3 + 0.1 * (double)c, 0);
        evidence_add_fact(&s.e, c, 0, "tokens", &tokens);
    }
    evaluate_again(&s);
    for (size_t c = 1; c < 3; c++) {
        const struct number *const both[] = {&s.ev.reading->scores[c].value,
                                             &s.ev.reading->facts[c]};
        for (size_t i = 0; i < 2; i++) {
            assert_false(both[i]->known);
            assert_non_null(strstr(both[i]->why, "way=x is one work with other cells"));
        }
    }
    assert_string_equal(s.ev.reading->facts[0].why, "the record is missing");
    close_scene(&s);
}

static void end_work(struct scene *s, const char *cause)
{
    evidence_set_task(&s->e, 2, 0, TASK_END_BLOCKED, cause);
    evidence_set_task(&s->e, 5, 0, TASK_END_NEVER_RUN, "dependency");
    evaluate_again(s);
}

/* Seed 3 of the dense model, lost by chance, is left out of both budgets; cancelled, of none. */
static void test_a_lost_work_is_lost_under_all_names(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, PLAN SAME, 3.4);
    end_work(&s, "crash");
    const struct score *scores = s.ev.reading->scores;
    assert_true(scores[2].excluded);
    assert_true(scores[5].excluded);
    assert_string_equal(scores[5].value.why, "excluded: crash");
    expect_point(field(&s, ARM, LOSS, FIELD_N), 2);
    expect_point(field(&s, ARM, LOSS, FIELD_MEAN), (-0.4 - 0.7) / 2);
    end_work(&s, "cancelled");
    scores = s.ev.reading->scores;
    assert_false(scores[2].excluded);
    assert_false(scores[5].excluded);
    assert_string_equal(scores[5].value.why, "never run: dependency (cancelled)");
    assert_false(field(&s, ARM, LOSS, FIELD_MEAN)->known);
    evidence_set_task(&s.e, 2, 0, TASK_END_BLOCKED, "hang");
    evidence_set_narrower(&s.e, 2, 0, "section_s 5, others 10");
    evaluate_again(&s);
    assert_false(s.ev.reading->scores[5].excluded);
    assert_non_null(strstr(s.ev.reading->scores[5].value.why, "section_s 5, others 10"));
    close_scene(&s);
}

/* Of seed 1 only the dense pair is left, and its 0 was not measured. */
static void test_a_replicate_of_zeros_is_not_measured(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, PLAN SAME, 3.4);
    evidence_set_task(&s.e, 6, 0, TASK_END_BLOCKED, "crash");
    evaluate_again(&s);
    expect_point(field(&s, BUDGET, LOSS, FIELD_N), 2);
    expect_point(field(&s, BUDGET, LOSS, FIELD_MEAN), (0 + (-0.6 - 0.2) / 2) / 2);
    expect_point(field(&s, BUDGET, LOSS, FIELD_SD), 0.14142135623730951); /* of -0.3 and -0.1 */
    /* The dense models are copies of one another: they say nothing of the budget. */
    for (size_t c = 0; c < 6; c++) {
        s.e.tasks[c].print = 7;
    }
    evaluate_again(&s);
    assert_non_null(s.ev.reading->scores[1].copy);
    expect_point(field(&s, BUDGET, LOSS, FIELD_N), 2);
    expect_point(field(&s, ARM, LOSS, FIELD_N), 1);
    evidence_set_task(&s.e, 7, 0, TASK_END_BLOCKED, "crash");
    evidence_set_task(&s.e, 8, 0, TASK_END_BLOCKED, "crash");
    evaluate_again(&s);
    expect_point(field(&s, BUDGET, LOSS, FIELD_N), 0);
    close_scene(&s);
}

/* Pooled figures count the pairs that were compared. */
static void test_pooled_figures_count_what_was_compared(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, PLAN SAME, 3.4);
    expect_point(&s.ev.pooled[DENSE].fields[FIELD_MEAN], 0);
    expect_point(&s.ev.pooled[DENSE].fields[FIELD_N], 0);
    expect_point(&s.ev.pooled[DENSE].fields[FIELD_MAX_ABS], 0);
    expect_point(&s.ev.pooled[BUDGET].fields[FIELD_N], 2); /* of 2 settings x 2 measures */
    expect_point(&s.ev.pooled[BUDGET].fields[FIELD_MIN], -0.4);
    close_scene(&s);
    open_scene(&s, PLAN, 3.4);
    expect_point(&s.ev.pooled[DENSE].fields[FIELD_N], 2);
    expect_point(&s.ev.pooled[DENSE].fields[FIELD_MAX_ABS], 0);
    close_scene(&s);
}

/* What the program's rules make of a condition, against the scene as it is. */
static void expect_truth(struct scene *s, const char *text, enum truth want, const char *says)
{
    CHECK_ROW("%s", text);
    struct diag diag;
    const char *why = NULL;
    const struct cond_text t = {.text = text};
    diag_init(&diag, "grid.toml");
    const struct cond *c = cond_parse(&t, s->p, COND_USE_VALIDITY, &s->rules.facts, &diag);
    assert_non_null(c);
    assert_int_equal(evaluation_truth(&s->ev, c, TRUTH_UNKNOWN, &why), want);
    if (want == TRUTH_UNKNOWN) {
        assert_string_equal(why, says);
    }
    diag_release(&diag);
}

/* Over the budgets the dense model has no trend to measure, and neither has what compares its two
 * names over the arms. */
static void test_trends_and_ranks_within_one_work(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, PLAN SAME, 3.4);
    expect_truth(&s, "trend(measure.loss, budget, arm, 'dense').slope == 0", TRUTH_TRUE, NULL);
    expect_truth(&s, "trend(measure.loss, budget, arm, 'dense').n == 0", TRUTH_TRUE, NULL);
    expect_truth(&s, "trend(measure.loss, budget, arm, 'dense').se > 0", TRUTH_UNKNOWN, EQUAL_WHY);
    expect_truth(&s, "trend(measure.loss, budget).n == 3", TRUTH_TRUE, NULL);
    expect_truth(&s, "trend(contrast.budget[loss], arm).n == 3", TRUTH_TRUE, NULL);
    close_scene(&s);
    open_scene(&s, PLAN, 3.4);
    expect_truth(&s, "trend(measure.loss, budget, arm, 'dense').n == 3", TRUTH_TRUE, NULL);
    close_scene(&s);
}

/* A score of one work that is known only as a bound: it cancels within the work. */
static void test_bounds_cancel_within_one_work(void **state)
{
    (void)state;
    struct scene s = {.p = fixture_program(PLAN SAME)};
    fixture_rules(s.p, &s.rules);
    evidence_init(&s.e, s.p);
    fixture_all_done(&s.e);
    for (size_t c = 0; c < 12; c++) {
        const struct evidence_value bound = {
            .state = VALUE_CENSORED, .bound = 3.3, .bound_above = true};
        if (c < 6) {
            evidence_add_metric(&s.e, c, 0, "loss", &bound);
        } else {
            fixture_score(&s.e, c, "loss", c < 9 ? 3 : 2.5 - 0.1 * (double)(c % 3), 0);
        }
    }
    evaluate_again(&s);
    expect_truth(&s, "-0.61 < trend(contrast.budget[loss], arm).slope < -0.59", TRUTH_TRUE, NULL);
    expect_truth(&s, "trend(contrast.budget[loss], arm).se > 0", TRUTH_TRUE, NULL);
    expect_truth(&s, "trend(measure.loss, budget, arm, 'dense').slope == 0", TRUTH_TRUE, NULL);
    expect_truth(&s, "rank(measure.loss, budget, 'total', arm, 'dense') == 1", TRUTH_TRUE, NULL);
    expect_truth(&s, "rank(measure.loss, budget, 'active', arm, 'dense') == 1", TRUTH_TRUE, NULL);
    close_scene(&s);
}

/* Seed 1 is lost, so seed 2, which is a copy of it, is a replicate of its own; seed 3 is another
 * copy, and is not. */
static void test_copies_of_a_lost_replicate(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, PLAN, 3.4);
    s.e.tasks[6].print = s.e.tasks[7].print = 7;
    evidence_set_task(&s.e, 9, 0, TASK_END_BLOCKED, "crash");
    evaluate_again(&s);
    assert_non_null(s.ev.reading->scores[7].copy);
    expect_truth(&s, "trend(measure.loss, budget, arm, 'moe').n == 2", TRUTH_TRUE, NULL);
    expect_truth(&s, "trend(measure.loss, budget, arm, 'moe').se > 0", TRUTH_TRUE, NULL);
    s.e.tasks[8].print = 7;
    evaluate_again(&s);
    expect_truth(&s, "trend(measure.loss, budget, arm, 'moe').se > 0", TRUTH_UNKNOWN,
                 s.ev.reading->scores[8].copy);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_contrast_within_one_work_has_no_error),
        cmocka_unit_test(test_equal_scores_alone_are_not_one_work),
        cmocka_unit_test(test_shared_models_leave_replicates_independent),
        cmocka_unit_test(test_items_of_a_shared_arm),
        cmocka_unit_test(test_a_difference_that_cancels),
        cmocka_unit_test(test_two_records_of_one_work_that_differ),
        cmocka_unit_test(test_names_that_differ_without_the_work),
        cmocka_unit_test(test_a_lost_work_is_lost_under_all_names),
        cmocka_unit_test(test_a_replicate_of_zeros_is_not_measured),
        cmocka_unit_test(test_pooled_figures_count_what_was_compared),
        cmocka_unit_test(test_trends_and_ranks_within_one_work),
        cmocka_unit_test(test_bounds_cancel_within_one_work),
        cmocka_unit_test(test_copies_of_a_lost_replicate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
