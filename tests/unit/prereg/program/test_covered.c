/* Every value of a program but [run] is under the root: each leaf of the whole tree is changed in
 * turn. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define FIXTURES TEST_SOURCE_DIR "/tests/unit/prereg/fixtures/"

static struct digest digest_of(const struct plan_program *p)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    if (program_canonical(p, &text, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    struct digest d = digest_bytes(text.buf, text.len);
    strbuf_release(&text);
    return d;
}

struct walk {
    struct plan_program *p;
    struct digest root;
    size_t n_leaves;
};

static void check_leaf(struct walk *w, cJSON *v, bool covered)
{
    if (cJSON_IsNumber(v)) {
        double old = v->valuedouble;
        v->valuedouble = old + 1;
        struct digest now = digest_of(w->p);
        assert_int_equal(digest_equal(&now, &w->root), !covered);
        v->valuedouble = old;
    } else if (cJSON_IsString(v)) {
        char *old = v->valuestring;
        v->valuestring = xasprintf("%s ", old);
        struct digest now = digest_of(w->p);
        assert_int_equal(digest_equal(&now, &w->root), !covered);
        free(v->valuestring);
        v->valuestring = old;
    } else {
        assert_true(cJSON_IsBool(v));
        int old = v->type;
        v->type = cJSON_IsTrue(v) ? cJSON_False : cJSON_True;
        struct digest now = digest_of(w->p);
        assert_int_equal(digest_equal(&now, &w->root), !covered);
        v->type = old;
    }
    w->n_leaves++;
}

static void check_key(struct walk *w, cJSON *v, bool covered)
{
    char *old = v->string;
    v->string = xasprintf("%s2", old);
    struct digest now = digest_of(w->p);
    assert_int_equal(digest_equal(&now, &w->root), !covered);
    free(v->string);
    v->string = old;
}

static void check_tree(struct walk *w, cJSON *v, bool covered)
{
    for (cJSON *m = v->child; m != NULL; m = m->next) {
        bool below = covered && !(v == w->p->tree && strcmp(m->string, "run") == 0);
        if (m->string != NULL && v != w->p->tree) {
            check_key(w, m, below);
        }
        if (m->child != NULL) {
            check_tree(w, m, below);
        } else if (!cJSON_IsObject(m) && !cJSON_IsArray(m)) {
            check_leaf(w, m, below);
        }
    }
}

static void check_program(struct plan_program *p)
{
    struct walk w = {.p = p, .root = digest_of(p)};
    check_tree(&w, p->tree, true);
    struct digest after = digest_of(p);
    assert_true(digest_equal(&after, &w.root));
    assert_true(w.n_leaves > 30);
    program_free(p);
}

static void test_every_value(void **state)
{
    (void)state;
    static const char *const names[] = {"below_the_floor", "active_vs_total", "holding_fixed"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_ROW("%s", names[i]);
        char *path = xasprintf(FIXTURES "%s.toml", names[i]);
        char *text = scratch_read(path);
        check_program(program_of(text, NULL));
        free(text);
        free(path);
    }
    check_program(program_of(SMALL_PROGRAM, NULL));
}

/* A default that is written down is a value: it changes the root, as docs/program-format.md says.
 */
static void test_defaults_are_not_filled_in(void **state)
{
    (void)state;
    char *text = text_replace(SMALL_PROGRAM, "floor = 0.3", "floor = 0.3, counted = true");
    struct plan_program *a = program_of(SMALL_PROGRAM, NULL);
    struct plan_program *b = program_of(text, NULL);
    struct digest x = digest_of(a);
    struct digest y = digest_of(b);
    assert_false(digest_equal(&x, &y));
    program_free(b);
    program_free(a);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_value),
        cmocka_unit_test(test_defaults_are_not_filled_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
