#include <string.h>

#include "base/xalloc.h"
#include "ctl/ctl.h"
#include "tests/unit/check.h"

#define WORDS_MAX 8

static int parse(const char *const *words, struct ctl_options *o, struct err *err)
{
    static char copies[WORDS_MAX][32]; /* getopt wants words it may touch; o points into them */
    static char *argv[WORDS_MAX + 1];
    int argc = 0;
    for (; words[argc] != NULL; argc++) {
        (void)snprintf(copies[argc], sizeof(copies[argc]), "%s", words[argc]);
        argv[argc] = copies[argc];
    }
    argv[argc] = NULL;
    const struct ctl_command *c = ctl_find_command(words[0]);
    assert_non_null(c);
    return ctl_options_parse(c, argc, argv, o, err);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *words[WORDS_MAX];
        const char *message;
    } rows[] = {
        {{"status", "--jsn"}, "did you mean --json?"},
        {{"status", "--follow"}, "status takes no --follow"},
        {{"status", "a", "b"}, "usage: preregctl status"},
        {{"explain"}, "usage: preregctl explain TASK; TASK is CELL/STAGE: `preregctl cells` lists"},
        {{"logs"}, "usage: preregctl logs TASK; TASK is CELL/STAGE: `preregctl cells` lists"},
        {{"rerun"}, "usage: preregctl rerun CELL; `preregctl cells` lists the cells"},
        {{"logs", "a/b", "--lines"}, "--lines needs a value"},
        {{"logs", "a/b", "--lines", "0"}, "--lines"},
        {{"logs", "a/b", "--lines", "many"}, "\"many\""},
        {{"status", "--interval", "1ms"}, "--interval"},
        {{"stop", "now"}, "usage: preregctl stop"},
        {{"verdict", "-w"}, "verdict takes no -w"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].words[0]);
        struct ctl_options o;
        struct err err = {0};
        assert_int_equal(parse(rows[i].words, &o, &err), ERR_USAGE);
        if (strstr(err.msg, rows[i].message) == NULL) {
            fail_msg("\"%s\" does not hold \"%s\"", err.msg, rows[i].message);
        }
    }
}

static void test_taken(void **state)
{
    (void)state;
    struct ctl_options o;
    struct err err = {0};
    const char *const logs[] = {"logs", "-f", "a/train", "-n", "7", "--attempt", "3", NULL};
    assert_int_equal(parse(logs, &o, &err), 0);
    assert_true(o.follow);
    assert_int_equal(o.lines, 7);
    assert_int_equal(o.attempt, 3);
    assert_int_equal(o.n_args, 1);
    assert_string_equal(o.args[0], "a/train");

    const char *const status[] = {"status", "--watch", "--interval=2s", "--state", "/s", "p", NULL};
    assert_int_equal(parse(status, &o, &err), 0);
    assert_true(o.watch && !o.json);
    assert_int_equal(o.interval_ms, 2000);
    assert_string_equal(o.state, "/s");
    assert_string_equal(o.args[0], "p");

    const char *const help[] = {"explain", "--help", NULL};
    assert_int_equal(parse(help, &o, &err), 0);
    assert_true(o.help);
}

/* A negative level ("x=-1") is an argument once -- has been said. */
static void test_dashes_end_options(void **state)
{
    (void)state;
    struct ctl_options o;
    struct err err = {0};
    const char *const words[] = {"explain", "--json", "--", "-1/train", NULL};
    assert_int_equal(parse(words, &o, &err), 0);
    assert_string_equal(o.args[0], "-1/train");
}

static void test_table_of_commands(void **state)
{
    (void)state;
    for (size_t i = 0; i < ctl_n_commands; i++) {
        const struct ctl_command *c = &ctl_commands[i];
        assert_ptr_equal(ctl_find_command(c->name), c);
        assert_non_null(c->run);
        assert_true(c->min_args <= c->max_args);
        assert_true(strlen(c->summary) < 70);
        assert_true((c->max_args > 0) == (c->args[0] != '\0'));
    }
    assert_null(ctl_find_command("serve"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_dashes_end_options),
        cmocka_unit_test(test_table_of_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
