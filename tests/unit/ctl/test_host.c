#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "ctl/host.h"
#include "tests/unit/check.h"

#define WORDS_MAX 8

static void test_take(void **state)
{
    (void)state;
    static const struct {
        const char *words[WORDS_MAX];
        const char *host; /* NULL: none */
        const char *left; /* NULL: refused */
    } rows[] = {
        {{"ctl", "status"}, NULL, "ctl status"},
        {{"ctl", "--host", "h", "status", "x"}, "h", "ctl status x"},
        {{"ctl", "status", "--host=h", "x"}, "h", "ctl status x"},
        {{"ctl", "status", "x", "--host", "-y"}, "-y", "ctl status x"},
        {{"ctl", "status", "--", "--host", "h"}, NULL, "ctl status -- --host h"},
        {{"ctl", "status", "--host="}, "", "ctl status"},
        {{"ctl", "status", "--hosts", "h"}, NULL, "ctl status --hosts h"},
        {{"ctl", "status", "--host"}, NULL, NULL},
        {{"ctl", "--host", "a", "--host=b"}, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%zu", i);
        char *argv[WORDS_MAX + 1];
        struct strbuf left = STRBUF_INIT;
        struct err err = {0};
        const char *host = NULL;
        int argc = 0;
        for (; rows[i].words[argc] != NULL; argc++) {
            argv[argc] = (char *)(uintptr_t)rows[i].words[argc]; /* the words are only moved */
        }
        argv[argc] = NULL;
        const int rc = host_take(&argc, argv, &host, &err);
        assert_int_equal(rc, rows[i].left == NULL ? ERR_USAGE : 0);
        for (int k = 0; rc == 0 && k < argc; k++) {
            strbuf_addf(&left, "%s%s", k > 0 ? " " : "", argv[k]);
        }
        if (rc == 0) {
            assert_null(argv[argc]);
            assert_string_equal(left.buf, rows[i].left);
            assert_true((host == NULL) == (rows[i].host == NULL));
            assert_true(host == NULL || strcmp(host, rows[i].host) == 0);
        }
        strbuf_release(&left);
    }
}

static void test_choose(void **state)
{
    (void)state;
    static const struct {
        const char *command;
        const char *given;
        const char *variable;
        int rc;
        const char *host;
    } rows[] = {
        {"status", NULL, NULL, 0, NULL},
        {"status", NULL, "", 0, NULL},
        {"status", NULL, "v", 0, "v"},
        {"status", "g", "v", 0, "g"},
        {"lock", NULL, "v", 0, NULL},
        {"lock", "g", NULL, ERR_USAGE, NULL},
        {"export", NULL, "v", ERR_USAGE, NULL},
        {"export", "g", NULL, ERR_USAGE, NULL},
        {"status", "", NULL, ERR_USAGE, NULL},
        {"status", "-o", NULL, ERR_USAGE, NULL},
        {"status", "a\nb", NULL, ERR_USAGE, NULL},
        {"submit", NULL, "v", ERR_USAGE, NULL},
        {"submit", NULL, NULL, 0, NULL},
        {"version", NULL, "v", 0, NULL},
        {"version", "g", NULL, 0, "g"},
        {"status", NULL, "a b", ERR_USAGE, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s %s", rows[i].command, rows[i].given);
        struct err err = {0};
        const char *host = "unset";
        if (rows[i].variable == NULL) {
            assert_int_equal(unsetenv("PREREGD_HOST"), 0);
        } else {
            assert_int_equal(setenv("PREREGD_HOST", rows[i].variable, 1), 0);
        }
        const struct ctl_command *c = ctl_find_command(rows[i].command);
        assert_int_equal(host_choose(c, rows[i].given, &host, &err), rows[i].rc);
        assert_true((host == NULL) == (rows[i].host == NULL));
        assert_true(host == NULL || strcmp(host, rows[i].host) == 0);
    }
    assert_int_equal(unsetenv("PREREGD_HOST"), 0);
}

static void test_quote(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        const char *quoted;
    } rows[] = {
        {"", "''"},
        {"a b", "'a b'"},
        {"it's", "'it'\\''s'"},
        {"'", "''\\'''"},
        {"$(x) `y` \\ \"\n*~!", "'$(x) `y` \\ \"\n*~!'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].word);
        struct strbuf out = STRBUF_INIT;
        strbuf_add_quoted(&out, rows[i].word);
        assert_string_equal(out.buf, rows[i].quoted);
        strbuf_release(&out);
    }
}

static void test_script(void **state)
{
    (void)state;
    char *argv[] = {xstrdup("pause"), xstrdup("-r"), xstrdup("a 'b'"), NULL};
    struct strbuf out = STRBUF_INIT;
    host_script(&out, argv, "1.2.3", true, false);
    static const char tail[] = " sh 'preregctl 1.2.3' C.UTF-8 '' 'pause' '-r' 'a '\\''b'\\'''";
    assert_true(out.len > sizeof(tail));
    assert_string_equal(out.buf + out.len - (sizeof(tail) - 1), tail);
    assert_int_equal(strncmp(out.buf, "exec sh -c '", 12), 0);
    strbuf_release(&out);
    for (size_t i = 0; argv[i] != NULL; i++) {
        free(argv[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
