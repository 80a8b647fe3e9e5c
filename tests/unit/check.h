/*
 * cmocka, with the headers that it needs before it. A loop over the rows of a table begins with
 * CHECK_ROW("%s", rows[i].name): an assertion that fails in the loop's body, or in what that calls,
 * then prints the row first. Rows of nested loops are printed together.
 */
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

/* The rows that the test is at, one for the whole executable: "a, b". */
__attribute__((weak)) char check_row_path[512];

/* Adds a row; returns the length before it, for check_row_leave(). */
__attribute__((format(printf, 1, 2))) static inline size_t check_row_enter(const char *fmt, ...)
{
    const size_t before = strlen(check_row_path);
    const char *comma = before == 0 ? "" : ", ";
    va_list args;
    va_start(args, fmt);
    (void)snprintf(check_row_path + before, sizeof(check_row_path) - before, "%s", comma);
    const size_t at = strlen(check_row_path);
    (void)vsnprintf(check_row_path + at, sizeof(check_row_path) - at, fmt, args);
    va_end(args);
    return before;
}

static inline void check_row_leave(const size_t *before)
{
    check_row_path[*before] = '\0';
}

#define CHECK_JOIN(a, b) a##b
#define CHECK_NAME(line) CHECK_JOIN(check_row_of_line_, line)
#define CHECK_ROW(...)                                                                             \
    const size_t CHECK_NAME(__LINE__) __attribute__((cleanup(check_row_leave), unused)) =          \
        check_row_enter(__VA_ARGS__)

/* Before a failure: it leaves by longjmp(), past every check_row_leave(). */
static inline void check_failing(void)
{
    if (check_row_path[0] != '\0') {
        print_error("at the row %s:\n", check_row_path);
        check_row_path[0] = '\0';
    }
}

static inline void check_true(bool holds, const char *text, const char *file, int line)
{
    if (!holds) {
        check_failing();
    }
    _assert_true(holds, text, file, line);
}

static inline void check_int(LargestIntegralType a, LargestIntegralType b, const char *file,
                             int line)
{
    if (a != b) {
        check_failing();
    }
    _assert_int_equal(a, b, file, line);
}

static inline void check_other_int(LargestIntegralType a, LargestIntegralType b, const char *file,
                                   int line)
{
    if (a == b) {
        check_failing();
    }
    _assert_int_not_equal(a, b, file, line);
}

static inline void check_string(const char *a, const char *b, const char *file, int line)
{
    if (strcmp(a, b) != 0) {
        check_failing();
    }
    _assert_string_equal(a, b, file, line);
}

static inline void check_memory(const void *a, const void *b, size_t size, const char *file,
                                int line)
{
    /* Nothing equals nothing, and an empty list may have no memory at all. */
    if (size == 0) {
        return;
    }
    if (memcmp(a, b, size) != 0) {
        check_failing();
    }
    _assert_memory_equal(a, b, size, file, line);
}

#undef assert_true
#undef assert_false
#undef assert_null
#undef assert_non_null
#undef assert_int_equal
#undef assert_int_not_equal
#undef assert_ptr_equal
#undef assert_string_equal
#undef assert_memory_equal
#undef fail
#define assert_true(c)     check_true(!!(c), #c, __FILE__, __LINE__)
#define assert_false(c)    check_true(!(c), "not: " #c, __FILE__, __LINE__)
#define assert_null(c)     check_true((c) == NULL, "null: " #c, __FILE__, __LINE__)
#define assert_non_null(c) check_true((c) != NULL, #c, __FILE__, __LINE__)
#define assert_int_equal(a, b)                                                                     \
    check_int(cast_to_largest_integral_type(a), cast_to_largest_integral_type(b), __FILE__,        \
              __LINE__)
#define assert_int_not_equal(a, b)                                                                 \
    check_other_int(cast_to_largest_integral_type(a), cast_to_largest_integral_type(b), __FILE__,  \
                    __LINE__)
#define assert_ptr_equal(a, b)                                                                     \
    check_int(cast_ptr_to_largest_integral_type(a), cast_ptr_to_largest_integral_type(b),          \
              __FILE__, __LINE__)
#define assert_string_equal(a, b)       check_string((a), (b), __FILE__, __LINE__)
#define assert_memory_equal(a, b, size) check_memory((a), (b), (size), __FILE__, __LINE__)
#define fail()                          (check_failing(), _fail(__FILE__, __LINE__))

#endif
