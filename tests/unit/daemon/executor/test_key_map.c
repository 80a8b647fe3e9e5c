/* The map of attempts against a plain table, over random puts and removals. */
#include <stdlib.h>

#include "base/rng.h"
#include "base/xalloc.h"
#include "daemon/executor/key_map.h"
#include "tests/unit/check.h"

#define PROGRAMS 3
#define TASKS    400
#define STEPS    200000

static void test_against_a_table(void **state)
{
    static bool there[PROGRAMS][TASKS];
    struct key_map m = {0};
    struct rng rng;
    size_t n = 0;
    (void)state;
    rng_seed(&rng, 7);
    for (int i = 0; i < STEPS; i++) {
        struct attempt_key key = {.program = (uint32_t)rng_below(&rng, PROGRAMS),
                                  .task = (uint32_t)rng_below(&rng, TASKS)};
        bool *is = &there[key.program][key.task];
        assert_int_equal(key_map_get(&m, &key) == is, *is);
        if (rng_below(&rng, 3) == 0) {
            key_map_remove(&m, &key);
            n -= *is;
            *is = false;
        } else if (!*is) {
            key_map_put(&m, &key, is);
            *is = true;
            n++;
        }
        assert_int_equal(m.n, n);
    }
    for (uint32_t p = 0; p < PROGRAMS; p++) {
        for (uint32_t t = 0; t < TASKS; t++) {
            const struct attempt_key key = {.program = p, .task = t};
            assert_int_equal(key_map_get(&m, &key) != NULL, there[p][t]);
        }
    }
    key_map_release(&m);
}

static void test_empty(void **state)
{
    const struct attempt_key key = {.program = 1, .task = 2, .no = 3};
    struct key_map m = {0};
    (void)state;
    assert_null(key_map_get(&m, &key));
    key_map_remove(&m, &key);
    key_map_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_a_table),
                                       cmocka_unit_test(test_empty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
