/* Names of attempts' folders: both forms that were ever written, what is neither, and their order
 * in a task's folder. */
#include <stdlib.h>
#include <string.h>

#include "base/files/temp_folder.h"
#include "base/layout/attempt_name.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

#define A "00000000-0000-4000-8000-00000000000a"
#define B "00000000-0000-4000-8000-00000000000b"

static void test_names(void **state)
{
    static const struct {
        const char *name;
        uint32_t no;
        bool older; /* as earlier versions wrote it */
    } rows[] = {
        {"attempt-01-" A, 1, false},
        {"attempt-99-" A, 99, false},
        {"attempt-100-" A, 100, false},
        {"attempt-10000-" A, 10000, false},
        {"attempt-0001-" A, 1, true},
        {"attempt-0999-" A, 999, true},
        {"attempt-4294967294-" A, 4294967294U, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].name);
        struct attempt_name name;
        if (!attempt_name_parse(rows[i].name, &name)) {
            fail_msg("%s", rows[i].name);
        }
        assert_true(name.no == rows[i].no);
        assert_string_equal(name.id, A);
        char *made = attempt_name_format(name.no, name.id);
        assert_int_equal(strcmp(made, rows[i].name) == 0, !rows[i].older);
        free(made);
    }
}

static void test_not_names(void **state)
{
    static const char *const rows[] = {"",
                                       "attempt-",
                                       "attempt-01",
                                       "attempt-01-",
                                       "attempt-01-x",
                                       "attempt-1-" A,
                                       "attempt-001-" A,
                                       "attempt-00001-" A,
                                       "attempt-00-" A,
                                       "attempt-0000-" A,
                                       "attempt--1-" A,
                                       "attempt-+1-" A,
                                       "attempt- 1-" A,
                                       "attempt-4294967295-" A,
                                       "attempt-99999999999999999999-" A,
                                       "attempt-01-" A "x",
                                       "attempt-01-" A "/",
                                       "Attempt-01-" A,
                                       "old-attempt-01-" A};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct attempt_name name;
        if (attempt_name_parse(rows[i], &name)) {
            fail_msg("\"%s\"", rows[i]);
        }
    }
}

static void make(const char *folder, const char *name)
{
    struct err err;
    char *path = path_join(folder, name);
    assert_int_equal(dir_make(path, 0700, &err), 0);
    free(path);
}

/* A task whose first attempts an earlier version made; the hundredth comes after the 99th. */
static void test_list(void **state)
{
    static const char *const wanted[] = {"attempt-0002-" A, "attempt-0003-" B, "attempt-04-" A,
                                         "attempt-10-" A,   "attempt-99-" A,   "attempt-100-" B};
    static const size_t order[] = {5, 4, 1, 0, 3, 2};
    struct name_list list;
    struct err err = {0};
    struct temp_folder temp;
    (void)state;
    assert_int_equal(temp_folder_make("attempt-name", &temp, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        CHECK_ROW("order[%zu]", i);
        make(temp.path, wanted[order[i]]);
    }
    make(temp.path, "attempt-x");
    make(temp.path, "result.json");
    assert_int_equal(attempt_list(temp.path, &list, &err), 0);
    assert_int_equal(list.n, ARRAY_LEN(wanted));
    for (size_t i = 0; i < list.n; i++) {
        assert_string_equal(list.names[i], wanted[i]);
    }
    name_list_release(&list);
    assert_int_equal(attempt_list("/nowhere", &list, &err), 0);
    assert_int_equal(list.n, 0);
    name_list_release(&list);
    assert_int_equal(temp_folder_remove(&temp, &err), 0);
}

static void expect_path(const char *folder, uint32_t no, const char *id, const char *wanted)
{
    char *path = attempt_path(folder, no, id);
    assert_string_equal(path_name(path), wanted);
    free(path);
}

static void test_path(void **state)
{
    struct err err = {0};
    struct temp_folder temp;
    (void)state;
    assert_int_equal(temp_folder_make("attempt-name", &temp, &err), 0);
    expect_path(temp.path, 1, A, "attempt-01-" A);
    make(temp.path, "attempt-0001-" A);
    expect_path(temp.path, 1, A, "attempt-0001-" A);
    expect_path(temp.path, 1, B, "attempt-01-" B);
    make(temp.path, "attempt-01-" A);
    expect_path(temp.path, 1, A, "attempt-01-" A);
    assert_int_equal(temp_folder_remove(&temp, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_not_names),
                                       cmocka_unit_test(test_list), cmocka_unit_test(test_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
