/* [scope]: what it holds after a load, and where its faults are. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define SCOPE                                                                                      \
    "\n[forecast]\nahead = { condition = \"1 > 0\", confidence = 0.5 }\n"                          \
    "[scope]\nclaims = [\"a\", \"b\"]\nnot_claimed = [\"c\"]\n"                                    \
    "confounds = [{ column = \"tokens\", text = \"d\" }, { text = \"e\" }]\n"                      \
    "mechanism = { text = \"f\", forecast = \"ahead\" }\nforward_work = [\"g\"]\n"

static char *small_with(const char *scope)
{
    return xasprintf("%s%s", SMALL_PROGRAM, scope);
}

static void test_the_scope_is_kept_as_written(void **state)
{
    (void)state;
    char *text = small_with(SCOPE);
    struct plan_program *p = program_of(text, NULL);
    const struct plan_scope *s = &p->scope;
    assert_true(s->declared);
    assert_int_equal(s->claims.n, 2);
    assert_string_equal(s->claims.items[1], "b");
    assert_int_equal(s->not_claimed.n, 1);
    assert_int_equal(s->n_confounds, 2);
    assert_string_equal(s->confounds[0].column, "tokens");
    assert_null(s->confounds[1].column);
    assert_string_equal(s->confounds[1].text, "e");
    assert_string_equal(s->mechanism, "f");
    assert_string_equal(p->forecasts[s->forecast].name, "ahead");
    assert_string_equal(s->forward_work.items[0], "g");
    program_free(p);
    free(text);
}

/* A lock of before is a lock of now: without the section nothing of it is covered. */
static void test_without_a_scope_nothing_is_covered(void **state)
{
    (void)state;
    struct plan_program *p = program_of(SMALL_PROGRAM, NULL);
    struct strbuf covered = STRBUF_INIT;
    struct err err = {0};
    assert_false(p->scope.declared);
    assert_int_equal(p->scope.forecast, INDEX_NONE);
    assert_int_equal(program_canonical(p, &covered, &err), 0);
    assert_null(strstr(covered.buf, "scope"));
    strbuf_release(&covered);
    program_free(p);
}

static const struct load_fault FAULTS[] = {
    {"\n[scope]\nclaim = [\"a\"]\n", "claim"},
    {"\n[scope]\nclaims = \"a\"\n", "scope.claims: expected"},
    {"\n[scope]\nclaims = [\"\"]\n", "scope.claims[0]: an empty text"},
    {"\n[scope]\nnot_claimed = [3]\n", "scope.not_claimed[0]: expected a string"},
    {"\n[scope]\nconfounds = [\"tokens\"]\n", "scope.confounds[0]: expected"},
    {"\n[scope]\nconfounds = [{ column = \"tokens\" }]\n", "text"},
    {"\n[scope]\nmechanism = { forecast = \"x\" }\n", "text"},
    {"\n[scope]\nmechanism = { text = \"x\", forecast = \"y\" }\n", "unknown forecast \"y\""},
};

static void test_faults_have_a_place(void **state)
{
    (void)state;
    expect_faults(SMALL_PROGRAM, FAULTS, ARRAY_LEN(FAULTS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_scope_is_kept_as_written),
        cmocka_unit_test(test_without_a_scope_nothing_is_covered),
        cmocka_unit_test(test_faults_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
