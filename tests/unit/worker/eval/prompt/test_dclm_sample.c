/* Draws and their order, compared with what CPython 3.11 makes of llm-foundry's
 * get_fewshot_sample_idxs (tests/oracle/core_reference.py: draw). */
#include "base/files/digest.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/eval/prompt/dclm_sample.h"

#define SEED 1234

struct draw_case {
    uint32_t n, k;
    const char *digest; /* of the chosen indices, as uint32, of records 0 .. n - 1 */
};

/* Sets of 8, 32 and 128 slots; samples from a pool and by redrawing; jeopardy's smallest category,
 * the largest file; as many examples as there are records; the place of the removed one taken
 * again by one that would have come to stand behind others (70 of 18). */
static const struct draw_case cases[] = {
    {5, 3, "73e049d9280f669d9773427667f79121f7225da8feeccfff6c1058a26352ce6f"},
    {230, 3, "1be998d9c59b4cfa9a7d8c6edb704f4f233272a01533b621068f1bacf8b5b157"},
    {32, 10, "3656286f5cc3c37a055373db6396f4e4994a6bb91b255dcb659f8d71d5f1089a"},
    {210, 10, "85f2aac7c8ce6460b7caaed934704e513527a5c71b5da89bc479971c4ad6e8e1"},
    {365, 10, "f836a4b2bb605fb16a20d95f8c1f451b46fb3d70cdddcced2025f9b39456c2b2"},
    {20321, 10, "5cc78b15e85c121fba1ff20aea70d4f9de42b1c791da85be69f43ed6f34daaff"},
    {11, 10, "44b07c5ca411c05a768c36d94ed1a38f954c599f81df6672be5b5742b8544d2e"},
    {12, 64, "076fb342ab79f33424e900907cc6a3f9a474d0ad72fbc29880e79b53e5c3dba3"},
    {70, 18, "d2d37bda4a02e933eeaf0b6c21e10ddd55e55acd5717ce39d3565453ad2717c1"},
    {100, 4, "b61853f615b29451d7fa9f7d74e35958511b78d3cf5bf5476b1505c0e681e631"},
    {1000, 64, "988e811a33da0618ee47746e1a57ba959df7f5a07388b092cabe7b6311b62d85"},
};

static void test_digests(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        CHECK_ROW("%s", cases[c].digest);
        uint32_t chosen[64];
        char hex[DIGEST_HEX_SIZE];
        struct pyrandom r;
        struct digest_stream s;
        pyrandom_seed(&r, SEED);
        digest_start(&s);
        for (uint32_t own = 0; own < cases[c].n; own++) {
            dclm_sample(&r, cases[c].n, cases[c].k, own, chosen);
            digest_add(&s, chosen, dclm_sample_size(cases[c].n, cases[c].k) * sizeof(*chosen));
        }
        const struct digest d = digest_finish(&s);
        digest_hex(&d, hex);
        assert_string_equal(hex, cases[c].digest);
    }
}

/* The first records of repeat_copy_logic's 32: in the set's order, which is not that of the draws
 * and, past its 32 slots, not that of the numbers. */
static void test_order(void **state)
{
    (void)state;
    static const uint32_t few[4][3] = {{2, 3, 4}, {0, 2, 3}, {1, 3, 4}, {0, 1, 2}};
    static const uint32_t many[10] = {1, 2, 3, 6, 18, 21, 22, 25, 28, 31};
    uint32_t chosen[10];
    struct pyrandom r;
    pyrandom_seed(&r, SEED);
    for (uint32_t own = 0; own < 4; own++) {
        dclm_sample(&r, 5, 3, own, chosen);
        assert_memory_equal(chosen, few[own], sizeof(few[own]));
    }
    pyrandom_seed(&r, SEED);
    dclm_sample(&r, 32, 10, 0, chosen);
    assert_memory_equal(chosen, many, sizeof(many));
}

static void test_nothing_to_draw(void **state)
{
    (void)state;
    uint32_t chosen[1] = {77};
    struct pyrandom r;
    pyrandom_seed(&r, SEED);
    assert_int_equal(dclm_sample_size(1, 10), 0);
    assert_int_equal(dclm_sample_size(0, 10), 0);
    assert_int_equal(dclm_sample_size(10, 10), 9);
    dclm_sample(&r, 1, 10, 0, chosen);
    dclm_sample(&r, 50, 0, 7, chosen);
    assert_int_equal(chosen[0], 77);
    assert_int_equal(pyrandom_u32(&r), 4150886329u); /* the stream has not moved */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_nothing_to_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
