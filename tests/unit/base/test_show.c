/* What a terminal gets of any text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/show.h"
#include "base/xalloc.h"

static const struct {
    const char *text;
    bool styles;
    const char *shown;
} CASES[] = {
    {"plain, 80 %\n\ttab\n", false, "plain, 80 %\n\ttab\n"},
    {"caf\xc3\xa9 \xe2\x96\xb6 \xf0\x9f\x98\x80", false,
     "caf\xc3\xa9 \xe2\x96\xb6 \xf0\x9f\x98\x80"},
    {"\033[31mred\033[0m", false, "?[31mred?[0m"},
    {"\033[31mred\033[0m", true, "\033[31mred\033[0m"},
    {"\033]0;title\007", true, "?]0;title?"},                 /* a window's title */
    {"\033[30;40mhidden\033[8m", true, "?[30;40mhidden?[8m"}, /* no style of ours */
    {"\033[2Jgone", true, "?[2Jgone"},
    {"\033[H\033[Jscreen", true, "\033[H\033[Jscreen"},
    {"not first: \033[H\033[J", true, "not first: ?[H?[J"},
    {"\033[H\033[J", false, "?[H?[J"},
    {"50 %\r100 %\r\nend", false, "50 %\n100 %\nend"},
    {"over\b\b\bwritten\177", false, "over???written?"},
    {"\xc2\x9b"
     "31m",
     true, "?31m"}, /* CSI as one character */
    {"abc\xe2\x80\xae"
     "fed",
     false, "abc?fed"}, /* right to left */
    {"\xff\xfe half \xe2\x96", false, "?? half ??"},
};

static char *shown(const char *text, bool styles)
{
    char *out = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&out, &n);
    assert_non_null(to);
    show_text(to, text, strlen(text), styles);
    assert_int_equal(fclose(to), 0);
    return out;
}

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char *out = shown(CASES[i].text, CASES[i].styles);
        assert_string_equal(out, CASES[i].shown);
        free(out);
    }
}

static void test_printf(void **state)
{
    char *out = NULL;
    size_t n = 0;
    (void)state;
    FILE *to = open_memstream(&out, &n);
    assert_non_null(to);
    show_printf(to, "%s: %d\n", "a\033[1m", 7);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(out, "a?[1m: 7\n");
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_printf)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
