/* The plain tree behind toml++: kinds, order, places, limits. Also the closed list of causes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/xalloc.h"
#include "prereg/cause.h"
#include "prereg/toml.h"

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
        cmocka_unit_test(test_causes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
