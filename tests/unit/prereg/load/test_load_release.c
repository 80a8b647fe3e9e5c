/* [release]: the roles that it requires, and where its faults are. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

static struct plan_program *small_with(const char *release)
{
    char *text = xasprintf("%s%s", SMALL_PROGRAM, release);
    struct plan_program *p = program_of(text, NULL);
    free(text);
    return p;
}

static void test_roles(void **state)
{
    (void)state;
    struct plan_program *p =
        small_with("\n[release]\nrequires = [\"adversarial\", \"scientific\"]\n");
    assert_true(p->release.required[ROLE_SCIENTIFIC]);
    assert_false(p->release.required[ROLE_STATISTICAL]);
    assert_true(p->release.required[ROLE_ADVERSARIAL]);
    assert_true(release_requires_some(&p->release));
    program_free(p);
}

/* A lock of before is a lock of now: without the section nothing of it is covered. */
static void test_without_it(void **state)
{
    (void)state;
    struct strbuf covered = STRBUF_INIT;
    struct err err = {0};
    struct plan_program *p = small_with("");
    assert_false(release_requires_some(&p->release));
    assert_int_equal(program_canonical(p, &covered, &err), 0);
    assert_null(strstr(covered.buf, "release"));
    strbuf_release(&covered);
    program_free(p);
}

/* Each role has a namespace of its own, which no signature without a role holds in. */
static void test_namespaces(void **state)
{
    (void)state;
    for (enum release_role a = ROLE_SCIENTIFIC; a <= ROLE_NR; a++) {
        assert_int_equal(release_role_find(release_roles[a] != NULL ? release_roles[a] : "x"), a);
        for (enum release_role b = ROLE_SCIENTIFIC; b < a; b++) {
            assert_string_not_equal(release_namespace(a), release_namespace(b));
        }
    }
}

static const struct load_fault FAULTS[] = {
    {"\n[release]\nrequire = [\"scientific\"]\n", "did you mean \"requires\""},
    {"\n[release]\n", "requires"},
    {"\n[release]\nrequires = \"scientific\"\n", "release.requires: expected"},
    {"\n[release]\nrequires = []\n", "no role; expected some of"},
    {"\n[release]\nrequires = [3]\n", "release.requires[0]: expected a string"},
    {"\n[release]\nrequires = [\"statistic\"]\n", "unknown role \"statistic\""},
    {"\n[release]\nrequires = [\"scientific\", \"scientific\"]\n",
     "release.requires[1]: \"scientific\" is duplicated"},
};

static void test_faults(void **state)
{
    (void)state;
    expect_faults(SMALL_PROGRAM, FAULTS, ARRAY_LEN(FAULTS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_without_it),
        cmocka_unit_test(test_namespaces),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
