/* Centred accuracies and their mean, against numbers worked out by hand and a published table. */
#include <math.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/eval/score/core_score.h"

/* GPT-2 as nanochat reports it (eval_bundle/openai-community-gpt2.csv), which centres with the
 * first version of the baselines; six digits each. */
static const struct {
    double acc, baseline, centred;
} gpt2[CORE_MEMBERS] = {
    {0.308504, 25.0, 0.078006},  /* hellaswag_zeroshot */
    {0.001889, 0.0, 0.001889},   /* jeopardy */
    {0.282663, 0.0, 0.282663},   /* bigbench_qa_wikidata */
    {0.412458, 25.0, 0.216611},  /* arc_easy */
    {0.221843, 25.0, -0.037543}, /* arc_challenge */
    {0.600000, 50.0, 0.200000},  /* copa */
    {0.224406, 20.0, 0.030508},  /* commonsense_qa */
    {0.622960, 50.0, 0.245919},  /* piqa */
    {0.278000, 25.0, 0.037333},  /* openbook_qa */
    {0.322919, 0.0, 0.322919},   /* lambada_openai */
    {0.307907, 25.0, 0.077209},  /* hellaswag */
    {0.578755, 50.0, 0.157509},  /* winograd */
    {0.486188, 50.0, -0.027624}, /* winogrande */
    {0.155000, 0.0, 0.155000},   /* bigbench_dyck_languages */
    {0.226087, 20.0, 0.032609},  /* agi_eval_lsat_ar */
    {0.419697, 0.0, 0.419697},   /* bigbench_cs_algorithms */
    {0.085714, 0.0, 0.085714},   /* bigbench_operators */
    {0.031250, 0.0, 0.031250},   /* bigbench_repeat_copy_logic */
    {0.058278, 0.0, 0.058278},   /* squad */
    {0.133659, 0.0, 0.133659},   /* coqa */
    {0.552294, 62.0, -0.178175}, /* boolq */
    {0.256600, 9.1, 0.182178},   /* bigbench_language_identification */
};

#define GPT2_CORE 0.113891

static void near(double a, double b, double most)
{
    if (!(fabs(a - b) <= most))
        fail_msg("%.17g is not %.17g", a, b);
}

static void test_published(void **state)
{
    (void)state;
    struct metric_score centred[CORE_MEMBERS];
    for (size_t i = 0; i < CORE_MEMBERS; i++) {
        const struct metric_score acc = {.n = 100, .value = gpt2[i].acc, .se = 0.01};
        centred[i] = core_centred(&acc, gpt2[i].baseline);
        near(centred[i].value, gpt2[i].centred, 2e-6);
        near(centred[i].se, 0.01 / (1.0 - 0.01 * gpt2[i].baseline), 1e-15);
    }
    const struct metric_score core = core_mean(centred, CORE_MEMBERS);
    near(core.value, GPT2_CORE, 2e-6);
    assert_int_equal(core.n, 100 * CORE_MEMBERS);
}

/* One part is itself; a baseline of 0 changes nothing. */
static void test_one_part(void **state)
{
    (void)state;
    const struct metric_score part = {10, 0.3, 0.15275252316519466};
    const struct metric_score acc = core_accuracy(&part, 1);
    near(acc.value, part.value, 0.0);
    near(acc.se, part.se, 1e-17);
    const struct metric_score centred = core_centred(&acc, 25);
    near(centred.value, 0.05 / 0.75, 1e-15);
    near(centred.se, 0.15275252316519466 / 0.75, 1e-15);
    const struct metric_score same = core_centred(&acc, 0);
    near(same.value, acc.value, 0.0);
}

/* Categories count the same whatever their size: not 13 of 110. */
static void test_parts(void **state)
{
    (void)state;
    const struct metric_score parts[] = {
        {10, 0.3, 0.4}, {0, (double)NAN, (double)NAN}, {100, 0.1, 0.3}};
    const struct metric_score acc = core_accuracy(parts, ARRAY_LEN(parts));
    near(acc.value, 0.2, 1e-15);
    near(acc.se, 0.25, 1e-15);
    assert_int_equal(acc.n, 110);
}

static void test_nothing(void **state)
{
    (void)state;
    const struct metric_score none = {0, (double)NAN, (double)NAN}, one = {1, 1.0, (double)NAN};
    struct metric_score v = core_accuracy(&none, 1);
    assert_true(isnan(v.value) && isnan(v.se));
    assert_int_equal(v.n, 0);
    const struct metric_score members[] = {{10, 0.5, 0.1}, v};
    assert_true(isnan(core_mean(members, 2).value));
    assert_true(isnan(core_mean(members, 0).value));
    v = core_accuracy(&one, 1); /* a mean, but no spread */
    near(v.value, 1.0, 0.0);
    assert_true(isnan(v.se));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_one_part),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
