/* Names, numbers and units from text, UTF-8, strings that grow, errors and diagnostics. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

static void test_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n; /* 0: malformed */
        uint32_t cp;
    } cases[] = {
        {"a", 1, 'a'},
        {"\xC3\xA9", 2, 0xE9},
        {"\xE2\x82\xAC", 3, 0x20AC},
        {"\xF0\x9F\x98\x80", 4, 0x1F600},
        {"\xF4\x8F\xBF\xBF", 4, 0x10FFFF},
        {"\x80", 0, 0},
        {"\xC1\xBF", 0, 0},         /* over-long */
        {"\xE0\x9F\xBF", 0, 0},     /* over-long */
        {"\xED\xA0\x80", 0, 0},     /* surrogate */
        {"\xF4\x90\x80\x80", 0, 0}, /* beyond U+10FFFF */
        {"\xE2\x82", 0, 0},         /* cut */
        {"\xFF", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].bytes);
        uint32_t cp = 0;
        assert_int_equal(text_utf8_next(cases[i].bytes, strlen(cases[i].bytes), &cp), cases[i].n);
        if (cases[i].n > 0) {
            assert_int_equal(cp, cases[i].cp);
        }
        assert_int_equal(text_is_utf8(cases[i].bytes, strlen(cases[i].bytes)), cases[i].n > 0);
    }
    assert_int_equal(text_utf8_next("", 0, NULL), 0);
    assert_int_equal(text_columns("a\xC3\xA9\xE4\xB8\xAD"
                                  "e\xCC\x81"),
                     5);
}

/* Whatever is put into a message and wherever it is cut, journals and sockets take it. */
static void test_made_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *out;
        size_t whole;
    } cases[] = {
        {"", "", 0},
        {"abc", "abc", 3},
        {"a\xC3\xA9", "a\xC3\xA9", 3},
        {"a\xC3", "a?", 1},
        {"a\xE2\x82", "a??", 1},
        {"a\xF0\x9F\x98", "a???", 1},
        {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80", 4},
        {"\x80\x80\x80\x80", "????", 4},
        {"a\xFFz", "a?z", 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].in);
        char text[16];
        assert_int_equal(text_whole_chars(cases[i].in, strlen(cases[i].in)), cases[i].whole);
        memcpy(text, cases[i].in, strlen(cases[i].in) + 1);
        text_make_utf8(text);
        assert_string_equal(text, cases[i].out);
    }
    for (int cut = 1; cut < 8; cut++) {
        struct err err;
        (void)err_set(&err, ERR_OTHER, "it is called \"%.*s\" here", cut,
                      "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98");
        assert_true(text_is_utf8(err.msg, strlen(err.msg)));
    }
}

/* What a stranger's file says in a message is shown, never obeyed. */
static void test_made_line(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
        {"", ""},
        {"a b~", "a b~"},
        {"a\nb\tc\r", "a b c "},
        {"\x1B]0;title\x07", "?]0;title?"},
        {"\x7F\x01", "??"},
        {"\xC2\x9B"
         "31m",
         "??31m"}, /* CSI of eight bits */
        {"\xC2\xA0\xC3\xA9\xFF", "\xC2\xA0\xC3\xA9?"},
        {"a\xE2\x80\xAE"
         "b\xE2\x81\xA6",
         "a???b???"}, /* what turns the direction */
        {"a\xE2\x80\xA8z", "a???z"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].in);
        char text[16];
        struct err err;
        memcpy(text, cases[i].in, strlen(cases[i].in) + 1);
        text_make_line(text);
        assert_string_equal(text, cases[i].out);
        assert_true(text_is_plain(text));
        (void)err_set(&err, ERR_OTHER, "%s", cases[i].in);
        assert_string_equal(err.msg, cases[i].out);
    }
}

static void test_names(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "abc_9", "x1"};
    static const char *const bad[] = {"", "A", "9a", "_a", "a-b", "a b", "a\xC3\xA9"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK_ROW("%s", good[i]);
        assert_true(text_is_name(good[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ROW("%s", bad[i]);
        assert_false(text_is_name(bad[i]));
    }
    char name[66];
    memset(name, 'a', 65);
    name[65] = '\0';
    assert_false(text_is_name(name));
    name[64] = '\0';
    assert_true(text_is_name(name));
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const known[] = {"name", "levels", "replicate"};
    static const char *const cases[][2] = {
        {"nmae", "name"},     {"level", "levels"}, {"replicated", "replicate"},
        {"levels", "levels"}, {"zzz", NULL},       {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        const char *found = text_nearest(cases[i][0], known, ARRAY_LEN(known));
        if (cases[i][1] == NULL) {
            assert_null(found);
        } else {
            assert_string_equal(found, cases[i][1]);
        }
    }
    assert_null(text_nearest("name", NULL, 0));
}

static void test_numbers(void **state)
{
    (void)state;
    struct err err = {0};
    int64_t i = 0;
    double d = 0;
    assert_int_equal(text_to_int("-9223372036854775808", INT64_MIN, INT64_MAX, &i, &err), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(text_to_int("9223372036854775808", INT64_MIN, INT64_MAX, &i, &err), ERR_RANGE);
    assert_int_equal(text_to_int("5", 6, 7, &i, &err), ERR_RANGE);
    static const char *const no_ints[] = {"", " 1", "1 ", "+1", "0x1", "1.0", "-", "1e3"};
    for (size_t k = 0; k < ARRAY_LEN(no_ints); k++) {
        CHECK_ROW("%s", no_ints[k]);
        assert_int_equal(text_to_int(no_ints[k], INT64_MIN, INT64_MAX, &i, &err), ERR_SYNTAX);
    }
    assert_int_equal(text_to_double("-1.5e3", &d, &err), 0);
    assert_true(d < -1499 && d > -1501);
    static const char *const no_doubles[] = {"", "nan", "inf", "0x1p3", "1e", "1,5", " 1", "1 "};
    for (size_t k = 0; k < ARRAY_LEN(no_doubles); k++) {
        CHECK_ROW("%s", no_doubles[k]);
        assert_int_equal(text_to_double(no_doubles[k], &d, &err), ERR_SYNTAX);
    }
    assert_int_equal(text_to_double("1e999", &d, &err), ERR_RANGE);
}

static void test_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool bytes;
        int code;
        int64_t value;
    } cases[] = {
        {"8GiB", true, 0, INT64_C(8) << 30},
        {"512 MiB", true, 0, INT64_C(512) << 20},
        {"1.5kB", true, 0, 1500},
        {"1024", true, 0, 1024},
        {"0", true, ERR_RANGE, 0},
        {"9999999TiB", true, ERR_RANGE, 0},
        {"8 gigs", true, ERR_SYNTAX, 0},
        {"GiB", true, ERR_SYNTAX, 0},
        {"-1GiB", true, ERR_SYNTAX, 0},
        {"300s", false, 0, 300000},
        {"5min", false, 0, 300000},
        {"2h", false, 0, 7200000},
        {"1500ms", false, 0, 1500},
        {"1d", false, 0, 86400000},
        {"300", false, ERR_SYNTAX, 0},
        {"1..5s", false, ERR_SYNTAX, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct err err = {0};
        int64_t v = 0;
        int rc = cases[i].bytes ? text_to_bytes(cases[i].text, &v, &err)
                                : text_to_ms(cases[i].text, &v, &err);
        assert_int_equal(rc, cases[i].code);
        assert_int_equal(v, cases[i].value);
    }
}

static void test_strbuf(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    assert_string_equal(sb.buf, "");
    strbuf_clear(&sb);
    strbuf_add(&sb, "", 0);
    assert_string_equal(sb.buf, "");
    for (int i = 0; i < 1000; i++) {
        strbuf_addf(&sb, "%d,", i);
        assert_int_equal(sb.buf[sb.len], '\0');
    }
    assert_int_equal(sb.len, 10 * 2 + 90 * 3 + 900 * 4);
    char *long_text = xcalloc(5001, 1);
    memset(long_text, 'x', 5000);
    strbuf_clear(&sb);
    strbuf_addf(&sb, "<%s>", long_text);
    assert_int_equal(sb.len, 5002);
    assert_int_equal(sb.buf[5001], '>');
    free(long_text);
    char *out = strbuf_detach(&sb);
    assert_int_equal(strlen(out), 5002);
    free(out);
    out = strbuf_detach(&sb);
    assert_string_equal(out, "");
    free(out);
    strbuf_release(&sb);
    strbuf_release(&sb);
}

static void test_errors(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(err_set(&err, ERR_RANGE, "line %d\nhas two", 3), ERR_RANGE);
    assert_string_equal(err.msg, "line 3 has two");
    assert_int_equal(err_wrap(&err, "load %s", "x"), ERR_RANGE);
    assert_string_equal(err.msg, "load x: line 3 has two");
    assert_int_equal(err_set_errno(&err, ENOSPC, "write %s", "f"), ERR_NO_SPACE);
    assert_int_equal(err_exit_code(ERR_LOCK), EXIT_LOCK);
    assert_int_equal(err_exit_code(ERR_INVALID), EXIT_INVALID);
    /* cut at the edge of a character */
    struct strbuf sb = STRBUF_INIT;
    strbuf_adds(&sb, "a");
    for (int i = 0; i < 200; i++) {
        strbuf_adds(&sb, "\xC3\xA9");
    }
    (void)err_set(&err, ERR_OTHER, "%s", sb.buf);
    assert_true(strlen(err.msg) >= 253);
    assert_true(text_is_utf8(err.msg, strlen(err.msg)));
    strbuf_release(&sb);
}

static void test_diagnostics(void **state)
{
    (void)state;
    struct diag d;
    struct err err = {0};
    char *out = NULL;
    size_t size = 0;
    diag_init(&d, "f");
    assert_int_equal(diag_result(&d, &err), 0);
    diag_add(&d, DIAG_WARNING, 1, 1, "w");
    assert_int_equal(diag_result(&d, &err), 0);
    diag_add(&d, DIAG_ERROR, 9, 2, "later");
    diag_add(&d, DIAG_ERROR, 9, 1, "earlier");
    diag_add(&d, DIAG_NOTE, 0, 0, "no place");
    assert_int_equal(diag_result(&d, &err), ERR_INVALID);
    assert_string_equal(err.msg, "f:9:1: earlier (and 1 more error)");
    for (int i = 0; i < 300; i++) {
        diag_add(&d, DIAG_ERROR, 10, 1, "again");
    }
    assert_int_equal(d.n_errors, 302);
    FILE *stream = open_memstream(&out, &size);
    diag_print(&d, stream);
    assert_int_equal(fclose(stream), 0);
    static const char *const begins =
        "f: note: no place\nf:1:1: warning: w\nf:9:1: error: earlier\nf:9:2: error: later\n";
    assert_memory_equal(out, begins, strlen(begins));
    assert_non_null(strstr(out, "... and 104 more\n"));
    free(out);
    diag_release(&d);
}

static void test_plain(void **state)
{
    static const char *const plain[] = {"", "two words", "\xC3\xA9\xE2\x82\xAC",
                                        "\xF0\x9F\x98\x80"};
    static const char *const others[] = {"a\nb",     "a\tb",         "\x1B[31m",     "\x7F",
                                         "\xC2\x9B", "\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x80\xA8",
                                         "\xE2\x82", "\xFF"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        CHECK_ROW("%s", plain[i]);
        assert_true(text_is_plain(plain[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        CHECK_ROW("%s", others[i]);
        assert_false(text_is_plain(others[i]));
    }
}

static void test_counts(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    for (int64_t n = 0; n < 3; n++) {
        strbuf_adds(&sb, n > 0 ? ", " : "");
        strbuf_add_count(&sb, n, "clash", "clashes");
    }
    assert_string_equal(sb.buf, "0 clashes, 1 clash, 2 clashes");
    assert_string_equal(text_plural(1, "it", "them"), "it");
    strbuf_release(&sb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),    cmocka_unit_test(test_plain),
        cmocka_unit_test(test_utf8),      cmocka_unit_test(test_made_utf8),
        cmocka_unit_test(test_made_line), cmocka_unit_test(test_names),
        cmocka_unit_test(test_nearest),   cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_units),     cmocka_unit_test(test_strbuf),
        cmocka_unit_test(test_errors),    cmocka_unit_test(test_diagnostics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
