/* [reuse]: what is selected, and where its faults are. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

static struct plan_program *program_with(const char *cells)
{
    char *text = xasprintf("%s[reuse]\nreceipt = \"../old\"\ncells = %s\n", SMALL_PROGRAM, cells);
    struct plan_program *p = program_of(text, "/tmp/new");
    free(text);
    return p;
}

static void test_what_is_selected(void **state)
{
    (void)state;
    struct plan_program *p = program_with("\"matching\"");
    assert_string_equal(p->reuse.receipt, "/tmp/new/../old");
    assert_true(p->reuse.matching);
    program_free(p);
    p = program_with("[{ arch = \"moe\", seed = 2 }, \"arch=dense,seed=1\"]");
    assert_false(p->reuse.matching);
    assert_int_equal(p->reuse.n_cells, 2);
    assert_int_equal(p->reuse.cells[0].n_where, 2);
    assert_int_equal(p->reuse.cells[0].where[1].factor, 1);
    assert_int_equal(p->reuse.cells[0].where[1].level, 1);
    assert_string_equal(p->reuse.cells[1].name, "arch=dense,seed=1");
    struct strbuf covered = STRBUF_INIT;
    struct err err = {0};
    assert_int_equal(program_canonical(p, &covered, &err), 0);
    assert_non_null(strstr(covered.buf, "\"receipt\":\"../old\""));
    strbuf_release(&covered);
    program_free(p);
}

static const struct load_fault FAULTS[] = {
    {"cells = \"matching\"\n", "receipt"},
    {"receipt = \"r\"\n", "reuse: \"cells\" is missing"},
    {"receipt = \"r\"\ncells = \"all\"\n", "reuse.cells: expected \"matching\""},
    {"receipt = \"r\"\ncells = []\n", "expected 1 to 4096 entries, found 0"},
    {"receipt = \"r\"\ncells = [3]\n", "reuse.cells[0]"},
    {"receipt = \"r\"\ncells = [{}]\n", "expected a level of a factor or more"},
    {"receipt = \"r\"\ncells = [{ arhc = \"moe\" }]\n", "did you mean \"arch\"?"},
    {"receipt = \"r\"\ncells = [{ arch = \"meo\" }]\n", "unknown level \"meo\""},
    {"receipt = \"r\"\ncells = \"matching\"\nroot = \"x\"\n", "root"},
};

static void test_faults_have_a_place(void **state)
{
    (void)state;
    char *head = xasprintf("%s[reuse]\n", SMALL_PROGRAM);
    expect_faults(head, FAULTS, ARRAY_LEN(FAULTS));
    free(head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_selected),
        cmocka_unit_test(test_faults_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
