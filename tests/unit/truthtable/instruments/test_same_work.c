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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
