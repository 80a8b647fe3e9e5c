/* The words, names and exit codes of the kinds of verdict, against docs/exit-codes.md. */

#include "base/xalloc.h"
#include "prereg/program/verdict_kind.h"
#include "tests/unit/check.h"

static const struct {
    enum verdict_kind kind;
    const char *outcome; /* in verdict.json */
    const char *answer;  /* what an answer says of it */
    const char *name;
    const char *word;
    int exit;
} CASES[] = {
    {VERDICT_BOUND, "O4", "{\"kind\":\"bound\",\"outcome\":\"O4\",\"exit_code\":0}", "bound", "?",
     0},
    {VERDICT_BOUND, "void", "{\"kind\":\"bound\",\"outcome\":\"void\",\"exit_code\":0}", "bound",
     "?", 0},
    {VERDICT_INDETERMINATE, "INDETERMINATE",
     "{\"kind\":\"indeterminate\",\"outcome\":null,\"exit_code\":4}", "indeterminate",
     "INDETERMINATE", 4},
    {VERDICT_VOID, "VOID", "{\"kind\":\"void\",\"outcome\":null,\"exit_code\":7}", "void", "VOID",
     7},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].outcome);
        const enum verdict_kind kind = verdict_kind_of(CASES[i].outcome);
        assert_int_equal(kind, CASES[i].kind);
        assert_string_equal(verdict_kind_name(kind), CASES[i].name);
        assert_string_equal(verdict_kind_word_of_name(CASES[i].name), CASES[i].word);
        assert_int_equal(verdict_kind_exit(kind), CASES[i].exit);
        if (kind == VERDICT_BOUND) {
            assert_null(verdict_kind_word(kind));
        } else {
            assert_string_equal(verdict_kind_word(kind), CASES[i].outcome);
        }
        cJSON *answer = json_object();
        verdict_kind_put(answer, CASES[i].outcome);
        char *text = cJSON_PrintUnformatted(answer);
        assert_string_equal(text, CASES[i].answer);
        cJSON_free(text);
        cJSON_Delete(answer);
    }
}

static void test_no_kind(void **state)
{
    (void)state;
    assert_string_equal(verdict_kind_word_of_name("VOID"), "?");
    assert_string_equal(verdict_kind_word_of_name(""), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_no_kind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
