/* What check says of [[same_work]]: shown, refused, not shown; what could be declared; conditions
 * that can never be known. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/prove/check.h"

static struct plan_program *program_of(const char *train, const char *condition, const char *same)
{
    char *text = xasprintf(
        "[program]\nname = \"t\"\nschema = 1\n"
        "[[factor]]\nname = \"arm\"\nlevels = [\"dense\", \"moe\"]\n"
        "[[factor]]\nname = \"budget\"\nlevels = [\"active\", \"total\"]\n"
        "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
        "[stage.train]\ncommand = [\"w\"]\n%s"
        "[measure]\nq = { metric = \"train.q\", items = 10, chance = 0.1 }\n"
        "[contrast]\narm = { between = { arm = [\"moe\", \"dense\"] } }\n"
        "budget = { between = { budget = [\"total\", \"active\"] } }\n"
        "dense = { between = { budget = [\"total\", \"active\"] }, where = { arm = \"dense\" } }\n"
        "total = { between = { arm = [\"moe\", \"dense\"] }, where = { budget = \"total\" } }\n"
        "active = { between = { arm = [\"moe\", \"dense\"] }, where = { budget = \"active\" } }\n"
        "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"%s\"], [\"b\", \"otherwise\"]]\n"
        "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"
        "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n%s",
        train, condition, same);
    struct plan_program *p = fixture_program(text);
    free(text);
    return p;
}

#define SAME  "[[same_work]]\nacross = \"budget\"\nwhere = { arm = \"dense\" }\n"
#define PARTS "params = { a = \"$arm\", s = \"$seed\", h = { per = \"$budget\" } }\n"
#define EQUAL                                                                                      \
    "params = { a = \"$arm\", s = \"$seed\" }\n[stage.train.when.arm]\ndense = { h = 1 }\n"        \
    "moe = { h = \"$budget\" }\n"
/* the first replicate hides what the second shows */
#define HIDDEN                                                                                     \
    "params = { a = \"$arm\", s = \"$seed\", h = { per = \"$budget\" } }\n"                        \
    "[stage.train.when.seed]\n1 = { h = 1 }\n2 = {}\n"

#define SAYS(dense_total)                                                                          \
    "{\"arm=dense,budget=active\":{\"train\":{\"resolves\":{\"h\":4}}},"                           \
    "\"arm=dense,budget=total\":{\"train\":{\"resolves\":{\"h\":" dense_total "}}},"               \
    "\"arm=moe,budget=active\":{\"train\":{\"resolves\":{\"h\":4}}},"                              \
    "\"arm=moe,budget=total\":{\"train\":{\"resolves\":{\"h\":12}}}}"
#define QUIET                                                                                      \
    "{\"arm=dense,budget=active\":{\"train\":{}},\"arm=dense,budget=total\":{\"train\":{}},"       \
    "\"arm=moe,budget=active\":{\"train\":{}},\"arm=moe,budget=total\":{\"train\":{}}}"

static const struct {
    const char *train;
    const char *condition;
    const char *same;
    const char *describe; /* NULL: no worker was asked */
    enum diag_level level;
    const char *says; /* NULL: nothing */
} CASES[] = {
    {EQUAL, "contrast.arm[q].mean > 0", SAME, NULL, DIAG_NOTE, NULL},
    {EQUAL, "contrast.arm[q].ci_low > 0", SAME, QUIET, DIAG_NOTE, NULL},
    {PARTS, "contrast.arm[q].mean > 0", SAME, SAYS("4"), DIAG_NOTE, NULL},
    {PARTS, "contrast.arm[q].mean > 0", SAME, SAYS("5"), DIAG_ERROR,
     "same_work: stage train is not the same work in arm=dense,budget=total,seed=1 as in "
     "arm=dense,budget=active,seed=1: `h` differs"},
    {PARTS, "contrast.arm[q].mean > 0", SAME, QUIET, DIAG_ERROR, "`h` differs, and the worker"},
    {PARTS, "contrast.arm[q].mean > 0", SAME, NULL, DIAG_WARNING, "which was not asked"},
    /* an answer is about the first replicate, and what is written otherwise in another is not */
    {HIDDEN, "contrast.arm[q].mean > 0", SAME, SAYS("4"), DIAG_ERROR,
     "arm=dense,budget=total,seed=2"},
    /* what could be declared */
    {PARTS, "contrast.arm[q].mean > 0", "", SAYS("4"), DIAG_NOTE,
     "factor.budget: arm=dense,budget=total resolves to the same work as arm=dense,budget=active"},
    {PARTS, "contrast.arm[q].mean > 0", "", SAYS("5"), DIAG_NOTE, NULL},
    {PARTS, "contrast.arm[q].mean > 0", "", NULL, DIAG_NOTE, NULL},
    /* conditions */
    {EQUAL, "contrast.dense[q].ci_low > 0", SAME, NULL, DIAG_ERROR,
     "input i: contrast.dense[q].ci_low is never known: its cells are one work"},
    {EQUAL, "contrast.dense[q].item_high < 0", SAME, NULL, DIAG_ERROR, "item_high is never known"},
    {EQUAL, "contrast.dense[q].mean > 0", SAME, NULL, DIAG_WARNING,
     "contrast.dense[q].mean is 0 by construction"},
    {EQUAL, "contrast.budget[q].ci_low > 0", SAME, NULL, DIAG_NOTE, NULL},
    {EQUAL, "contrast.dense.max_abs > 0", SAME, NULL, DIAG_WARNING,
     "input i: contrast.dense.max_abs is 0 by construction"},
    {EQUAL, "contrast.budget.max_abs > 0", SAME, NULL, DIAG_NOTE, NULL},
    {EQUAL, "trend(measure.q, budget, arm, 'dense').ci_low > 0", SAME, NULL, DIAG_ERROR,
     "input i: trend(measure.q, budget, arm, 'dense').ci_low is never known"},
    {EQUAL, "trend(measure.q, budget, arm, 'dense').slope > 0", SAME, NULL, DIAG_WARNING,
     "slope is 0 by construction"},
    {EQUAL, "trend(measure.q, budget).ci_low > 0", SAME, NULL, DIAG_NOTE, NULL},
    {EQUAL, "rank(measure.q, budget, 'total', arm, 'dense') == 1", SAME, NULL, DIAG_WARNING,
     "is 1 by construction, whatever comes out"},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%zu: %s %s", i, CASES[i].train, CASES[i].condition);
        struct diag diag;
        struct plan_program *p = program_of(CASES[i].train, CASES[i].condition, CASES[i].same);
        cJSON *describe = CASES[i].describe == NULL ? NULL : cJSON_Parse(CASES[i].describe);
        diag_init(&diag, "grid.toml");
        check_same_work(p, describe, &diag);
        if (CASES[i].says == NULL && diag.n_items > 0) {
            fail_msg("expected nothing, found \"%s\"", diag.items[0].msg);
        }
        if (CASES[i].says != NULL) {
            assert_int_equal(diag.n_items, 1);
            assert_int_equal(diag.items[0].level, CASES[i].level);
            if (strstr(diag.items[0].msg, CASES[i].says) == NULL) {
                fail_msg("expected \"%s\", found \"%s\"", CASES[i].says, diag.items[0].msg);
            }
        }
        diag_release(&diag);
        cJSON_Delete(describe);
        program_free(p);
    }
}

/* check_factors() warns of what is written the same, unless it is declared. */
static void test_a_declared_work_is_no_warning(void **state)
{
    (void)state;
    for (int declared = 0; declared < 2; declared++) {
        struct diag diag;
        struct plan_program *p =
            program_of(EQUAL, "contrast.arm[q].mean > 0", declared == 1 ? SAME : "");
        diag_init(&diag, "grid.toml");
        check_factors(p, &diag);
        assert_int_equal(diag.n_items, 1 - declared);
        if (declared == 0) {
            assert_non_null(strstr(diag.items[0].msg, "[[same_work]] runs them once"));
        }
        diag_release(&diag);
        program_free(p);
    }
}

/* A dense model without a seed makes copies. They take the interval of what compares it, and none
 * of what compares its two names. */
static void test_copies_of_one_work_leave_other_intervals(void **state)
{
    (void)state;
    static const struct {
        const char *condition;
        const char *same;
        bool refused;
    } cases[] = {{"contrast.budget[q].ci_low > 0", SAME, false},
                 {"contrast.budget[q].ci_low > 0", "", true},
                 {"contrast.arm[q].ci_low > 0", SAME, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s %s", cases[i].condition, cases[i].same);
        struct diag diag;
        bool refused = false;
        struct plan_program *p = program_of("params = { a = \"$arm\" }\n[stage.train.when.arm]\n"
                                            "dense = { h = 1 }\n"
                                            "moe = { h = \"$budget\", s = \"$seed\" }\n",
                                            cases[i].condition, cases[i].same);
        diag_init(&diag, "grid.toml");
        check_factors(p, &diag);
        for (size_t d = 0; d < diag.n_items; d++) {
            refused = refused || strstr(diag.items[d].msg, "ci_low is never known") != NULL;
        }
        assert_int_equal(refused, cases[i].refused);
        diag_release(&diag);
        program_free(p);
    }
}

/* Made-up scores of one work are one: what would need a difference within it is not witnessed. */
static void test_no_witness_rests_on_a_difference_within_one_work(void **state)
{
    (void)state;
    for (int declared = 0; declared < 2; declared++) {
        struct diag diag;
        struct check_report r;
        struct err err;
        struct plan_program *p =
            program_of(EQUAL, "contrast.total[q].mean > contrast.active[q].mean",
                       declared == 1 ? "[[same_work]]\nacross = \"budget\"\n" : "");
        diag_init(&diag, "grid.toml");
        assert_int_equal(check_run(p, NULL, &r, &diag, &err), 0);
        assert_int_equal(r.rows[0].reach == REACH_WITNESSED, declared == 0);
        assert_int_equal(r.rows[1].reach, REACH_WITNESSED);
        assert_int_equal(r.plan.n_other_names, declared == 1 ? 4 : 0);
        check_release(&r);
        diag_release(&diag);
        program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_a_declared_work_is_no_warning),
        cmocka_unit_test(test_copies_of_one_work_leave_other_intervals),
        cmocka_unit_test(test_no_witness_rests_on_a_difference_within_one_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
