/* What a terminal gets of any text. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/terminal.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

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
    terminal_text(to, text, strlen(text), styles);
    assert_int_equal(fclose(to), 0);
    return out;
}

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].text);
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
    terminal_printf(to, "%s: %d\n", "a\033[1m", 7);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(out, "a?[1m: 7\n");
    free(out);
}

/* Data stay as they are for a program; a terminal, here a pseudo-terminal, is shown them. */
static void test_data(void **state)
{
    static const char data[] = "a\x1b]0;owned\x07 \xc2\x9b\x7f";
    static const char shown[] = "a?]0;owned? ??";
    char got[64] = "";
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    terminal_data(file, data, strlen(data));
    rewind(file);
    assert_int_equal(fread(got, 1, sizeof(got), file), strlen(data));
    assert_memory_equal(got, data, strlen(data));
    (void)fclose(file);
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        skip();
    }
    file = fopen(ptsname(master), "w");
    assert_non_null(file);
    terminal_data(file, data, strlen(data));
    assert_int_equal(fflush(file), 0);
    memset(got, 0, sizeof(got));
    assert_int_equal(read(master, got, sizeof(got) - 1), strlen(shown));
    assert_string_equal(got, shown);
    (void)fclose(file);
    (void)close(master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_data), cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_printf)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
