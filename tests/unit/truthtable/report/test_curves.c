/* Curves as they are read from events: joined over attempts, thinned while they are read, and of
 * the same steps whether a run was resumed or not. */
/* cmocka.h wants those four before it */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "truthtable/report/report_model.h"

#define POINTS_KEPT ((size_t)2049)

struct task {
    char *folder;
    struct arena arena;
    struct curve_set set;
};

static void task_begin(struct task *t)
{
    *t = (struct task){.folder = scratch_make()};
    arena_init(&t->arena);
}

static void task_end(struct task *t)
{
    curves_release(&t->set);
    arena_release(&t->arena);
    scratch_remove(t->folder);
}

static void add_attempt(const struct task *t, int no, const struct strbuf *events)
{
    struct err err = {0};
    char *folder = xasprintf("%s/attempt-%04d-00000000-0000-4000-8000-000000000000", t->folder, no);
    char *path = path_join(folder, "events.jsonl");
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    assert_int_equal(file_write_atomic(path, events->buf, events->len, 0600, &err), 0);
    free(path);
    free(folder);
}

static void add_points(struct strbuf *out, size_t from, size_t to, double step)
{
    for (size_t i = from; i < to; i++) {
        strbuf_addf(out, "{\"type\":\"point\",\"name\":\"loss\",\"step\":%.17g,\"value\":%zu}\n",
                    step * (double)i, i);
    }
}

static void read_task(struct task *t)
{
    curves_read_task(&t->set, &t->arena, t->folder, 3, 1);
}

/* Few points stay as they are; what is no point, too long or torn is passed over. */
static void test_few(void **state)
{
    struct task t;
    struct strbuf s = STRBUF_INIT;
    (void)state;
    task_begin(&t);
    add_points(&s, 1, 4, 10);
    strbuf_adds(&s,
                "{\"type\":\"progress\",\"name\":\"point\",\"step\":31,\"value\":1}\n\"point\"\n"
                "{\"type\":\"point\",\"name\":\"loss\",\"step\":32,\"value\":null}\n"
                "{\"type\":\"point\",\"name\":\"loss\",\"step\":33,\"value\":2}}\n");
    for (size_t i = 0; i < 300000; i++) {
        strbuf_adds(&s, "\"point\" ");
    }
    strbuf_addc(&s, '\n');
    add_points(&s, 4, 6, 10);
    strbuf_adds(&s, "{\"type\":\"point\",\"name\":\"loss\",\"step\":60,\"value\":6}");
    add_attempt(&t, 1, &s);
    read_task(&t);
    assert_int_equal(t.set.n, 1);
    assert_int_equal(t.set.n_unread, 0);
    const struct curve *c = &t.set.curves[0];
    assert_int_equal(c->n, 5);
    assert_int_equal(c->cell, 3);
    for (size_t i = 0; i < c->n; i++) {
        assert_true(c->xs[i] == 10 * (double)(i + 1) && c->ys[i] == (double)(i + 1));
    }
    strbuf_release(&s);
    task_end(&t);
}

/* Many points are thinned, the last one stays, and a resumed run has the steps that one without an
 * interruption has. */
static void test_many(void **state)
{
    struct task whole;
    struct task resumed;
    struct strbuf s = STRBUF_INIT;
    (void)state;
    task_begin(&whole);
    add_points(&s, 0, 100003, 5);
    add_attempt(&whole, 1, &s);
    read_task(&whole);
    task_begin(&resumed);
    strbuf_clear(&s);
    add_points(&s, 0, 70001, 5);
    add_attempt(&resumed, 1, &s);
    strbuf_clear(&s);
    add_points(&s, 33333, 100003, 5);
    add_attempt(&resumed, 2, &s);
    read_task(&resumed);
    const struct curve *a = &whole.set.curves[0];
    const struct curve *b = &resumed.set.curves[0];
    assert_in_range(a->n, 1000, POINTS_KEPT);
    assert_true(a->xs[a->n - 1] == 5 * 100002.0 && b->xs[b->n - 1] == 5 * 100002.0);
    size_t n_same = 0;
    for (size_t i = 0, k = 0; i < a->n; i++) {
        assert_true(i == 0 || a->xs[i] > a->xs[i - 1]);
        assert_true(a->ys[i] * 5 == a->xs[i]);
        while (k < b->n && b->xs[k] < a->xs[i]) {
            k++;
        }
        n_same += k < b->n && b->xs[k] <= a->xs[i] ? 1 : 0;
    }
    assert_true(n_same + 2 >= a->n);
    strbuf_release(&s);
    task_end(&resumed);
    task_end(&whole);
}

/* Steps so far apart, or so near, that no width between them is a number. */
static void test_odd_steps(void **state)
{
    static const double steps[] = {1e304, 5e-324, 1e-310};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        CHECK_ROW("steps[%zu]", i);
        struct task t;
        struct strbuf s = STRBUF_INIT;
        task_begin(&t);
        add_points(&s, 0, 10000, steps[i]);
        add_attempt(&t, 1, &s);
        read_task(&t);
        assert_int_equal(t.set.n, 1);
        assert_in_range(t.set.curves[0].n, 1, POINTS_KEPT);
        strbuf_release(&s);
        task_end(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_few), cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_odd_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
