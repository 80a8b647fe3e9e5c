/* The table of answers has a function for every method. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_method_has_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
