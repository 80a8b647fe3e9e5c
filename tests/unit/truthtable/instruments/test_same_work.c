/* A work under two names in the instruments: it is one observation, and a comparison of the names
 * is none. */
#include <stdlib.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/instruments/sample.h"
#include "truthtable/condition/equal_pairs.h"

#define INSTRUMENTS                                                                                \
    "[instrument.mixed]\nresponse = [\"acc\"]\nfixed = [\"arch\"]\nrandom = \"seed\"\n"            \
    "[instrument.bayes]\ncontrast = \"arch\"\nmeasures = [\"acc\"]\npriors = { one = 1 }\n"        \
    "[instrument.items]\ncontrast = \"arch\"\nmeasures = [\"acc\"]\n"

static void compute(struct sample_program *t, const char *toml, cJSON **computed)
{
    sample_open(t, toml);
    sample_cells(t, "acc", (const double[6]){0.31, 0.32, 0.35, 0.31, 0.32, 0.35});
    *computed = sample_compute(t);
}

static void test_one_work_is_one_observation(void **state)
{
    (void)state;
    struct sample_program t;
    cJSON *computed = NULL;
    compute(&t, TOLD_PROGRAM INSTRUMENTS "[[same_work]]\nacross = \"arch\"\n", &computed);
    sample_expect(computed, "instruments.mixed.fits.0.n", 3, 0);
    sample_expect_text(computed, "instruments.mixed.fits.0.dropped.0.cell", "arch=moe,seed=1");
    sample_expect_text(computed, "instruments.mixed.fits.0.dropped.0.why",
                       "one work with arch=dense,seed=1");
    sample_expect(computed, "instruments.dispersion.measures.0.whole.n_cells", 3, 0);
    sample_expect(computed, "instruments.dispersion.measures.0.conditions.1.n_cells", 3, 0);
    sample_expect_null(computed, "instruments.bayes.measures.0.cells.0.bf10");
    sample_expect_text(computed, "instruments.bayes.measures.0.why", EQUAL_WHY);
    sample_expect_text(computed, "instruments.items.measures.0.why", EQUAL_WHY);
    cJSON_Delete(computed);
    sample_close(&t);
}

/* The first name has no record in seed 1, and the second one is the row. */
static void test_a_work_is_the_first_name_with_a_score(void **state)
{
    (void)state;
    static const char *const cells[] = {"arch=moe,seed=1", "arch=dense,seed=2",
                                        "arch=dense,seed=3"};
    struct sample_program t;
    sample_open(&t, TOLD_PROGRAM INSTRUMENTS "[[same_work]]\nacross = \"arch\"\n");
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        sample_metric(&t, cells[i], "acc", 0.31 + 0.02 * (double)i);
    }
    cJSON *computed = sample_compute(&t);
    sample_expect(computed, "instruments.mixed.fits.0.n", 3, 0);
    sample_expect_text(computed, "instruments.mixed.fits.0.dropped.0.cell", "arch=dense,seed=1");
    sample_expect_text(computed, "instruments.mixed.fits.0.dropped.0.why",
                       "acc: the record is missing");
    sample_expect_text(computed, "instruments.mixed.fits.0.dropped.1.cell", "arch=moe,seed=2");
    sample_expect(computed, "instruments.dispersion.measures.0.whole.n_cells", 3, 0);
    cJSON_Delete(computed);
    sample_close(&t);
}

/* Arms dense and moe, each at three budgets, of which the dense one knows none. */
#define BUDGETS(order)                                                                             \
    "[program]\nname = \"computed\"\nschema = 1\n"                                                 \
    "[[factor]]\nname = \"arm\"\nlevels = [\"dense\", \"moe\"]\n"                                  \
    "[[factor]]\nname = \"budget\"\nlevels = [" order "]\n"                                        \
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"                          \
    "[stage.train]\ncommand = [\"./w\"]\n[[same_work]]\nacross = \"budget\"\nwhere = { arm = "     \
    "\"dense\" }\n"                                                                                \
    "[measure]\nloss = { metric = \"train.loss\", better = \"lower\" }\n"                          \
    "[contrast]\narm = { between = { arm = [\"moe\", \"dense\"] } }\n"                             \
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.arm[loss].mean > 0\"], [\"b\", "        \
    "\"otherwise\"]]\n"                                                                            \
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"                         \
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"

static cJSON *of_budgets(const char *toml)
{
    static const char *const budgets[] = {"x", "y", "z"};
    struct sample_program t;
    sample_open(&t, toml);
    for (int b = 0; b < 3; b++) {
        for (int seed = 1; seed < 4; seed++) {
            char cell[80];
            (void)snprintf(cell, sizeof(cell), "arm=dense,budget=%s,seed=%d", budgets[b], seed);
            sample_metric(&t, cell, "loss", 3 + 0.01 * seed);
            (void)snprintf(cell, sizeof(cell), "arm=moe,budget=%s,seed=%d", budgets[b], seed);
            sample_metric(&t, cell, "loss", 2 + 0.02 * seed * (1 + b) + 0.1 * b);
        }
    }
    cJSON *computed = sample_compute(&t);
    sample_close(&t);
    return computed;
}

/* What the arm does cannot depend on which of the budgets the plan happens to name first. */
static void test_no_name_speaks_for_the_work(void **state)
{
    (void)state;
    static const char model[] =
        "[instrument.mixed]\nresponse = [\"loss\"]\nfixed = [\"arm\", \"budget\"]\n";
    char *first = xasprintf("%s%srandom = \"seed\"\n", BUDGETS("\"x\", \"y\", \"z\""), model);
    char *last = xasprintf("%s%srandom = \"seed\"\n", BUDGETS("\"z\", \"y\", \"x\""), model);
    cJSON *a = of_budgets(first);
    cJSON *b = of_budgets(last);
    const double beta = sample_at(a, "instruments.mixed.fits.0.terms.arm[moe].beta")->valuedouble;
    sample_expect(a, "instruments.mixed.fits.0.n", 12, 0);
    sample_expect(b, "instruments.mixed.fits.0.terms.arm[moe].beta", beta, 1e-9);
    /* over the budgets the mixture has 2.18, and the dense model 3.02 */
    sample_expect(a, "instruments.mixed.fits.0.terms.arm[moe].beta", 2.18 - 3.02, 1e-6);
    cJSON_Delete(a);
    cJSON_Delete(b);
    free(first);
    free(last);
    /* of a random budget the dense model has none */
    char *random = xasprintf("%s[instrument.mixed]\nresponse = [\"loss\"]\nfixed = [\"arm\"]\n"
                             "random = \"budget\"\n",
                             BUDGETS("\"x\", \"y\", \"z\""));
    cJSON *none = of_budgets(random);
    sample_expect(none, "instruments.mixed.fits.0.n", 9, 0);
    sample_expect_text(none, "instruments.mixed.fits.0.dropped.0.why",
                       "one work under several levels of budget, which groups the rows");
    cJSON_Delete(none);
    free(random);
}

static void test_equal_scores_of_two_works_are_six(void **state)
{
    (void)state;
    struct sample_program t;
    cJSON *computed = NULL;
    compute(&t, TOLD_PROGRAM INSTRUMENTS, &computed);
    sample_expect(computed, "instruments.mixed.fits.0.n", 6, 0);
    sample_expect(computed, "instruments.dispersion.measures.0.whole.n_cells", 6, 0);
    cJSON_Delete(computed);
    sample_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_work_is_one_observation),
        cmocka_unit_test(test_equal_scores_of_two_works_are_six),
        cmocka_unit_test(test_a_work_is_the_first_name_with_a_score),
        cmocka_unit_test(test_no_name_speaks_for_the_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
