/* The table of answers has a function for every method; a request about a program that is not
 * loaded is answered with the reason. */
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "tests/unit/check.h"

static void test_every_method_has_an_answer(void **state)
{
    (void)state;
    for (int m = 0; m < RPC_METHOD_NR; m++) {
        CHECK_ROW("%s", rpc_method_name((enum rpc_method)m));
        assert_true(answer_to((enum rpc_method)m) != NULL);
    }
}

/* With a name and without one: "no program has been submitted" would be wrong. */
static void test_a_program_that_is_not_loaded_is_named(void **state)
{
    (void)state;
    struct unloaded one = {.id = xstrdup("p-12345678"), .name = xstrdup("p")};
    struct shell sh = {.unloaded = &one, .n_unloaded = 1};
    static const char *const params[] = {"{}", "{\"program\":\"p\"}",
                                         "{\"program\":\"p-12345678\"}"};
    (void)err_set(&one.why, ERR_CORRUPT, "its lock is missing");
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        CHECK_ROW("%s", params[i]);
        struct hosted *h = NULL;
        struct err err;
        cJSON *p = cJSON_Parse(params[i]);
        assert_int_equal(answer_find_program(&sh, p, &h, &err), ERR_CORRUPT);
        assert_string_equal(err.msg, "p-12345678 is not loaded: its lock is missing");
        cJSON_Delete(p);
    }
    free(one.id);
    free(one.name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_method_has_an_answer),
        cmocka_unit_test(test_a_program_that_is_not_loaded_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
