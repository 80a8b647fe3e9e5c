/* The plain tree behind toml++: kinds, order, places, limits, and the string in or before a fault.
 * Also the closed list of causes. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "prereg/load/toml.h"
#include "prereg/load/toml_scan.h"
#include "prereg/task/task_cause.h"
#include "tests/unit/check.h"

static struct toml_node *parse(const char *text, struct arena *arena)
{
    struct toml_node *root = NULL;
    struct diag diag;
    diag_init(&diag, "t");
    if (toml_parse(text, strlen(text), arena, &root, &diag) != 0) {
        diag_print(&diag, stderr);
        fail_msg("not parsed");
    }
    diag_release(&diag);
    return root;
}

static void test_kinds_and_places(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const struct toml_node *root = parse("z = 1\n"
                                         "a = [true, 2.5, \"x\\u00e9\"]\n"
                                         "[t.u]\n"
                                         "d = 2020-01-01\n"
                                         "  i = { k = -3 }\n",
                                         &arena);
    assert_int_equal(root->n_items, 3);
    assert_string_equal(root->items[0]->key, "z"); /* the file's order, not the alphabet's */
    assert_string_equal(root->items[1]->key, "a");
    assert_string_equal(root->items[2]->key, "t");
    const struct toml_node *a = root->items[1];
    assert_int_equal(a->kind, TOML_ARRAY);
    assert_true(a->items[0]->kind == TOML_BOOLEAN && a->items[0]->boolean);
    assert_true(a->items[1]->kind == TOML_FLOAT && a->items[1]->real > 2.4);
    assert_string_equal(a->items[2]->string, "x\xC3\xA9");
    assert_int_equal(a->items[1]->line, 2);
    assert_int_equal(a->items[1]->column, 12);
    assert_ptr_equal(a->items[1]->parent, a);
    assert_int_equal(a->items[1]->index, 1);
    const struct toml_node *u = toml_member(root->items[2], "u");
    assert_int_equal(toml_member(u, "d")->kind, TOML_DATE);
    const struct toml_node *k = toml_member(toml_member(u, "i"), "k");
    assert_int_equal(k->integer, -3);
    assert_int_equal(k->key_line, 5);
    assert_int_equal(k->key_column, 9);
    assert_null(toml_member(u, "none"));
    assert_null(toml_member(NULL, "none"));
    assert_null(toml_member(a, "none"));
    arena_release(&arena);
}

/* Dots in numbers, strings and comments are no parts of keys. */
static void test_dots_elsewhere(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const struct toml_node *root =
        parse("a = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, "
              "1.6, 1.7]\n"
              "b = 'a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t'\n"
              "c = \"\\\"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t\"\n"
              "# a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t\n"
              "d = \"\"\"\n.a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t\n\"\"\"\n"
              "e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t = 1\n",
              &arena);
    assert_int_equal(root->n_items, 5);
    assert_int_equal(root->items[0]->n_items, 17);
    arena_release(&arena);
}

/* A multi-line string may end in four quotes: what follows them is outside of it. */
static void test_dots_after_four_quotes(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const struct toml_node *root =
        parse("t = { a = \"\"\"x\"\"\"\", b = \"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r\" }\n", &arena);
    assert_string_equal(toml_member(root->items[0], "a")->string, "x\"");
    arena_release(&arena);
}

static void test_long_key_after_four_quotes(void **state)
{
    (void)state;
    const char *const text = "\n\nt = { a = '''x'''', b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r = 1 }\n";
    struct toml_node *root = NULL;
    struct arena arena;
    arena_init(&arena);
    struct diag diag;
    diag_init(&diag, "t");
    assert_int_equal(toml_parse(text, strlen(text), &arena, &root, &diag), ERR_INVALID);
    assert_string_equal(diag.items[0].msg, "a key of more than 16 dotted parts");
    assert_int_equal(diag.items[0].line, 3);
    diag_release(&diag);
    arena_release(&arena);
}

/* `n_quotes` 0: there is no string before `end`. */
static const struct {
    const char *name;
    const char *text;
    struct place end;
    struct toml_string want;
} strings[] = {
    {"none", "a = 1 1\n", {1, 7}, {.n_quotes = 0}},
    {"closed", "a = \"x\" y\n", {1, 9}, {{1, 5}, '"', 1, true}},
    {"not closed on its line", "a = \"x\nb = 'y'\n", {2, 1}, {{1, 5}, '"', 1, false}},
    {"at the error itself", "a = \"x\" \"y\"\n", {1, 9}, {{1, 5}, '"', 1, true}},
    {"just before the error", "a = \"x\" \"y\"\n", {1, 10}, {{1, 9}, '"', 1, true}},
    {"after the error", "a = 1 1, \"y\"\n", {1, 7}, {.n_quotes = 0}},
    {"columns are characters", "a = \"\xC3\xA9\" 'y' z\n", {1, 13}, {{1, 9}, '\'', 1, true}},
    {"four quotes", "a = \"\"\"say \"x\"\"\"\"\nb = 'y' z\n", {2, 9}, {{2, 5}, '\'', 1, true}},
    {"five quotes", "a = \"\"\"x\"\"\"\"\"\nb = 1 1\n", {2, 7}, {{1, 5}, '"', 3, true}},
    {"a sixth quote opens", "a = \"\"\"x\"\"\"\"\"\"\n", {2, 1}, {{1, 14}, '"', 1, false}},
    {"two quotes alone", "a = \"\"\"\"\"\"\"\"\nb = 1 1\n", {2, 7}, {{1, 5}, '"', 3, true}},
    {"four single quotes", "a = '''x''''\nb = 1 1\n", {2, 7}, {{1, 5}, '\'', 3, true}},
    {"the other quote is not swallowed", "a = ['''x'''\"y\"]\n", {1, 16}, {{1, 13}, '"', 1, true}},
    {"escaped last quote", "a = \"C:\\data\\\"\nb = 1\n", {1, 9}, {{1, 5}, '"', 1, false}},
    {"escaped last quote, end of the file", "a = \"x\\\"", {1, 9}, {{1, 5}, '"', 1, false}},
    {"escaped last quote, CRLF", "a = \"x\\\"\r\nb = 1\r\n", {2, 1}, {{1, 5}, '"', 1, false}},
    {"backslash before CRLF", "a = \"x\\\r\nb = \"y\"\r\n", {2, 1}, {{1, 5}, '"', 1, false}},
    {"no escapes in single quotes", "a = 'C:\\' 1\n", {1, 11}, {{1, 5}, '\'', 1, true}},
    {"escape within three", "a = \"\"\"\\\"\"\" x\"\"\" 1\n", {1, 18}, {{1, 5}, '"', 3, true}},
    {"one quote alone", "a = \"", {1, 6}, {{1, 5}, '"', 1, false}},
    {"three quotes alone", "a = \"\"\"", {1, 8}, {{1, 5}, '"', 3, false}},
    {"five quotes alone", "a = \"\"\"\"\"", {1, 10}, {{1, 5}, '"', 3, false}},
    {"three, one at the end", "a = \"\"\"x\"", {1, 10}, {{1, 5}, '"', 3, false}},
    {"three, one at the end, longer", "a = \"\"\"say x\"", {1, 14}, {{1, 5}, '"', 3, false}},
    {"three, two at the end", "a = \"\"\"x\"\"", {1, 11}, {{1, 5}, '"', 3, false}},
    {"three, escaped last quote", "a = \"\"\"x\"\"\\\"", {1, 13}, {{1, 5}, '"', 3, false}},
    {"three single", "a = '''C:\\'''\nb = 'x\n", {3, 1}, {{2, 5}, '\'', 1, false}},
    {"after lines of a string",
     "a = \"\"\"\n\xC3\xA9\"\"\" \"x\" z\n",
     {2, 10},
     {{2, 6}, '"', 1, true}},
    {"CRLF", "a = 1\r\nb = \"x\"\r\nc = 'y\r\n", {4, 1}, {{3, 5}, '\'', 1, false}},
    {"comment", "# it's \"odd\r\na = \"x\" # \"z\n\"k\" 1\n", {3, 5}, {{3, 1}, '"', 1, true}},
    {"comment without a line end", "a = 'x' # \"z", {1, 13}, {{1, 5}, '\'', 1, true}},
};

static void test_string_before(void **state)
{
    (void)state;
    int failed = 0;
    for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
        const struct toml_string *want = &strings[i].want;
        struct toml_string s = {.n_quotes = 0};
        const bool found =
            toml_string_before(strings[i].text, strlen(strings[i].text), strings[i].end, &s);
        if (found != (want->n_quotes != 0) || s.place.line != want->place.line ||
            s.place.column != want->place.column || s.quote != want->quote ||
            s.n_quotes != want->n_quotes || s.closed != want->closed) {
            print_error("%s: found %zu quotes at %u:%u, %s\n", strings[i].name, s.n_quotes,
                        s.place.line, s.place.column, s.closed ? "closed" : "not closed");
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

/* Counting each column from the start of the line takes minutes here: the test then runs out of
 * its time. */
static void test_many_strings_on_a_line(void **state)
{
    (void)state;
    const unsigned n = (1U << 20) / 3;
    char *text = xmalloc(3 * (size_t)n);
    for (size_t i = 0; i < n; i++) {
        memcpy(text + 3 * i, "\"\",", 3);
    }
    struct toml_string s = {.n_quotes = 0};
    assert_true(toml_string_before(text, 3 * (size_t)n, (struct place){2, 1}, &s));
    assert_int_equal(s.place.line, 1);
    assert_int_equal(s.place.column, 3 * (n - 1) + 1);
    assert_true(s.closed);
    free(text);
}

static void test_causes(void **state)
{
    (void)state;
    for (enum cause c = CAUSE_CRASH; c < CAUSE_NR; c++) {
        assert_true(cause_name(c)[0] != '\0');
        assert_int_equal(cause_from_name(cause_name(c)), c);
    }
    assert_int_equal(cause_from_name(""), CAUSE_NONE);
    assert_int_equal(cause_from_name("Crash"), CAUSE_NR);
    assert_true(cause_is_mechanical(CAUSE_OOM));
    assert_false(cause_is_mechanical(CAUSE_BAD_RESULT));
    assert_false(cause_is_mechanical(CAUSE_CANCELLED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_and_places),
        cmocka_unit_test(test_dots_elsewhere),
        cmocka_unit_test(test_dots_after_four_quotes),
        cmocka_unit_test(test_long_key_after_four_quotes),
        cmocka_unit_test(test_string_before),
        cmocka_unit_test(test_many_strings_on_a_line),
        cmocka_unit_test(test_causes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
