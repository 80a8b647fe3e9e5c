/* Names that are listed, names that are not, and names that are listed and cannot be opened: a link
 * to nothing is to stat(2) and open(2) what a stale handle is. */
#include <unistd.h>

#include "base/files/shared_dir.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static void test_only_what_is_listed_is_there(void **state)
{
    static const struct {
        const char *path;
        bool there;
        enum file_kind kind;
    } rows[] = {{"a", true, FILE_REGULAR},      {"d", true, FILE_FOLDER},
                {"d/b", true, FILE_REGULAR},    {"c", false, FILE_ABSENT},
                {"none/c", false, FILE_ABSENT}, {"a/c", false, FILE_ABSENT}};
    struct err err;
    (void)state;
    scratch_put(".", "a", "text");
    scratch_put("d", "b", "more");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].path);
        bool there = !rows[i].there;
        enum file_kind kind = FILE_OTHER;
        assert_int_equal(shared_find(rows[i].path, &there, &err), 0);
        assert_int_equal(there, rows[i].there);
        assert_int_equal(shared_look(rows[i].path, &kind, &err), 0);
        assert_int_equal(kind, rows[i].kind);
    }
}

static void test_a_stale_name_is_not_absent(void **state)
{
    enum file_kind kind;
    struct strbuf text = STRBUF_INIT;
    struct err err;
    (void)state;
    assert_int_equal(symlink("nowhere", "stale"), 0);
    assert_int_equal(shared_look("stale", &kind, &err), ERR_IO);
    assert_int_equal(shared_read("stale", 10, &text, &err), ERR_IO);
    assert_int_equal(shared_read("not-listed", 10, &text, &err), ERR_NOT_FOUND);
    assert_int_equal(text.len, 0);
    strbuf_release(&text);
}

static void test_a_file_is_read_whole_or_refused(void **state)
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    (void)state;
    scratch_put(".", "f", "0123456789");
    strbuf_adds(&text, "before ");
    assert_int_equal(shared_read("f", 10, &text, &err), 0);
    assert_string_equal(text.buf, "before 0123456789");
    assert_int_equal(shared_read("f", 9, &text, &err), ERR_RANGE);
    strbuf_release(&text);
}

static void test_a_network_is_named(void **state)
{
    struct err err;
    (void)state;
    assert_null(shared_network_name("/proc", &err));
    assert_int_equal(err.code, 0);
    assert_null(shared_network_name("/nowhere/at/all", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_what_is_listed_is_there, scratch_enter,
                                        scratch_leave),
        cmocka_unit_test_setup_teardown(test_a_stale_name_is_not_absent, scratch_enter,
                                        scratch_leave),
        cmocka_unit_test_setup_teardown(test_a_file_is_read_whole_or_refused, scratch_enter,
                                        scratch_leave),
        cmocka_unit_test(test_a_network_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
