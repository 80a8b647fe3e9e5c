/* Draws compared with what CPython 3.11 prints for random.Random(seed). */
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/eval/prompt/pyrandom.h"

static void test_u32(void **state)
{
    (void)state;
    static const uint32_t expected[] = {4150886329u, 3342196574u, 1892932127u, 501869158u};
    struct pyrandom r;
    pyrandom_seed(&r, 1234);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        CHECK_ROW("expected[%zu]", i);
        assert_int_equal(pyrandom_u32(&r), expected[i]);
    }
}

struct sample_case {
    uint64_t seed;
    uint32_t n, k;
    uint32_t expected[25];
};

static const struct sample_case cases[] = {
    {1234, 20, 5, {14, 3, 0, 2, 1}},
    {1234, 39905, 11, {28883, 7657, 490, 5940, 38156, 2288, 5500, 6450, 23241, 15519, 1142}},
    {1234, 40398, 6, {28883, 7657, 490, 5940, 38156, 2288}},
    {1234, 2251, 25, {1805, 478,  30,  371, 143, 343, 403, 1452, 969,  71,   126, 64,  1417,
                      1983, 1898, 608, 373, 749, 468, 59,  2060, 1993, 1023, 264, 2216}},
    {1234, 100, 21, {99, 56, 14, 0, 11, 74, 4,  85, 88, 10, 12,
                     98, 45, 30, 2, 3,  44, 82, 79, 61, 78}},
    {5000000000u, 1000, 5, {88, 977, 621, 885, 15}}, /* a seed of two words */
    {0, 1000, 5, {864, 394, 776, 911, 430}},
};

static void test_sample(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        CHECK_ROW("cases[%zu]", c);
        uint32_t got[25];
        struct pyrandom r;
        pyrandom_seed(&r, cases[c].seed);
        pyrandom_sample(&r, cases[c].n, cases[c].k, got);
        for (uint32_t i = 0; i < cases[c].k; i++)
            assert_int_equal(got[i], cases[c].expected[i]);
    }
}

/* GSM8K's five examples of its first three documents: one stream. */
static void test_stream(void **state)
{
    (void)state;
    static const uint32_t expected[3][5] = {
        {6374, 3610, 957, 61, 742}, {7462, 6610, 4769, 286, 5501}, {5677, 687, 806, 6279, 2905}};
    struct pyrandom r;
    pyrandom_seed(&r, 1234);
    for (int d = 0; d < 3; d++) {
        uint32_t got[5];
        pyrandom_sample(&r, 7473, 5, got);
        for (int i = 0; i < 5; i++)
            assert_int_equal(got[i], expected[d][i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u32),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
