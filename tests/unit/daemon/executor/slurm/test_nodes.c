/* Rule 24: a node is excluded after its second failure, and not for ever. */
#include "daemon/executor/slurm/nodes.h"

#include "tests/unit/check.h"

static void excluded(const struct node_table *n, int64_t now_ms, const char *want)
{
    struct strbuf text = STRBUF_INIT;
    nodes_add_excluded(n, now_ms, &text);
    assert_string_equal(text.buf, want);
    strbuf_release(&text);
}

static void test_second_failure(void **state)
{
    struct node_table n;
    (void)state;
    nodes_init(&n);
    uint16_t a = nodes_number(&n, "n1");
    uint16_t b = nodes_number(&n, "n2");
    assert_int_equal(nodes_number(&n, "n1"), a);
    assert_int_equal(nodes_number(&n, ""), 0);
    assert_false(nodes_count_failure(&n, 0, 0, 10, true));
    assert_false(nodes_count_failure(&n, a, 0, 1000000, false));
    excluded(&n, 0, "");
    /* What one death takes with it is one failure. */
    assert_false(nodes_count_failure(&n, a, NODES_ONE_FAIL_MS - 1, 1000000, false));
    assert_true(nodes_count_failure(&n, a, NODES_ONE_FAIL_MS, 1000000, false));
    assert_false(nodes_count_failure(&n, a, NODES_ONE_FAIL_MS + 1, 1000000, true));
    assert_false(nodes_count_failure(&n, b, 5, 1000000, true));
    assert_true(nodes_count_failure(&n, b, 6, 2000000, true));
    excluded(&n, 100000, "n2,n1");
    excluded(&n, 1000000, "n2");
    excluded(&n, 2000000, "");
    /* It begins again afterwards. */
    assert_false(nodes_count_failure(&n, a, 3000000, 4000000, true));
    assert_true(nodes_count_failure(&n, a, 3000001, 4000000, true));
    nodes_release(&n);
}

static void test_many_words(void **state)
{
    struct intern t;
    char word[20];
    (void)state;
    intern_init(&t);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 1; i <= INTERN_MAX + 10; i++) {
            (void)snprintf(word, sizeof(word), "w%u", i);
            uint16_t at = intern_add(&t, word);
            assert_int_equal(at, i < INTERN_MAX ? i : 0);
            assert_string_equal(intern_word(&t, at), i < INTERN_MAX ? word : "");
        }
    }
    intern_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_failure),
        cmocka_unit_test(test_many_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
