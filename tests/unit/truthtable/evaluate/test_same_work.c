/* What a work under several names is in the verdict: a difference within it is 0 and has no error,
 * and the replicates of the others stay independent. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_contrast_within_one_work_has_no_error),
        cmocka_unit_test(test_equal_scores_alone_are_not_one_work),
        cmocka_unit_test(test_shared_models_leave_replicates_independent),
        cmocka_unit_test(test_a_difference_that_cancels),
        cmocka_unit_test(test_two_records_of_one_work_that_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
