/* Against the numbers of SipHash's paper and of its authors' program. */
#include "base/keyed_hash.h"

#include "tests/unit/check.h"

/* Key and text count from 0 upwards. */
static void test_published(void **state)
{
    static const struct {
        size_t n;
        uint64_t hash;
    } rows[] = {{0, 0x726fdb47dd0e0e31ULL},  {1, 0x74f839c593dc67fdULL},
                {7, 0xab0200f58b01d137ULL},  {8, 0x93f5f5799a932462ULL},
                {15, 0xa129ca6149be45e5ULL}, {63, 0x958a324ceb064572ULL}};
    const struct hash_key key = {{0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL}};
    unsigned char text[64];
    (void)state;
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (unsigned char)i;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%zu bytes", rows[i].n);
        assert_true(keyed_hash(&key, text, rows[i].n) == rows[i].hash);
    }
}

static void test_keys_differ(void **state)
{
    const struct hash_key a = hash_key_draw();
    const struct hash_key b = hash_key_draw();
    (void)state;
    assert_true(a.k[0] != b.k[0] && a.k[1] != b.k[1]);
    assert_true(keyed_hash(&a, "x", 1) != keyed_hash(&b, "x", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_keys_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
