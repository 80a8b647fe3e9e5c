/* [[same_work]]: which tasks become one work, and where its faults are. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "prereg/program/same_work.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

/* SMALL_PROGRAM with a third factor: arch x lr x seed, stages train and score. */
static char *grid_with(const char *entries)
{
    char *with_lr = text_replace(SMALL_PROGRAM, "[[factor]]\nname = \"seed\"",
                                 "[[factor]]\nname = \"lr\"\nlevels = [1e-3, 2e-3, 4e-3]\n"
                                 "[[factor]]\nname = \"seed\"");
    char *takes_lr = text_replace(with_lr, "lr = 1e-3", "lr = \"$lr\"");
    char *text = xasprintf("%s%s", takes_lr, entries);
    free(with_lr);
    free(takes_lr);
    return text;
}

enum { TRAIN, SCORE, N_STAGES };

/* arch, lr, seed as indices of their levels. */
static size_t task_of(size_t arch, size_t lr, size_t seed, size_t stage)
{
    return ((arch * 3 + lr) * 2 + seed) * N_STAGES + stage;
}

static void test_each_task_does_its_own_work_without_it(void **state)
{
    (void)state;
    struct plan_program *p = program_of(SMALL_PROGRAM, NULL);
    struct strbuf covered = STRBUF_INIT;
    struct err err = {0};
    assert_null(p->workers);
    assert_int_equal(program_worker_of(p, 3), 3);
    assert_int_equal(program_n_other_names(p), 0);
    assert_false(program_task_waits(p, 0));
    assert_true(program_task_waits(p, 1)); /* its training */
    /* a lock of before is a lock of now */
    assert_int_equal(program_canonical(p, &covered, &err), 0);
    assert_null(strstr(covered.buf, "same_work"));
    strbuf_release(&covered);
    program_free(p);
}

static void test_levels_are_one_work_where_it_says_so(void **state)
{
    (void)state;
    char *text = grid_with("[[same_work]]\nacross = \"lr\"\nwhere = { arch = \"dense\" }\n");
    struct plan_program *p = program_of(text, NULL);
    for (size_t seed = 0; seed < 2; seed++) {
        for (size_t lr = 0; lr < 3; lr++) {
            for (size_t s = 0; s < N_STAGES; s++) {
                assert_int_equal(program_worker_of(p, task_of(0, lr, seed, s)),
                                 task_of(0, 0, seed, s));
                assert_int_equal(program_worker_of(p, task_of(1, lr, seed, s)),
                                 task_of(1, lr, seed, s));
            }
        }
    }
    assert_int_equal(program_n_other_names(p), 2 * 2 * N_STAGES);
    assert_true(program_task_waits(p, task_of(0, 1, 0, TRAIN)));
    assert_false(program_task_waits(p, task_of(0, 0, 0, TRAIN)));
    struct strbuf covered = STRBUF_INIT;
    struct err err = {0};
    assert_int_equal(program_canonical(p, &covered, &err), 0);
    assert_non_null(strstr(covered.buf, "\"same_work\":[{\"across\":\"lr\""));
    strbuf_release(&covered);
    program_free(p);
    free(text);
}

static void test_levels_and_stages_can_be_picked(void **state)
{
    (void)state;
    char *text = grid_with("[[same_work]]\nacross = \"lr\"\nlevels = [0.004, 2e-3]\n"
                           "stages = [\"train\"]\n");
    struct plan_program *p = program_of(text, NULL);
    assert_int_equal(program_worker_of(p, task_of(0, 2, 1, TRAIN)), task_of(0, 1, 1, TRAIN));
    assert_int_equal(program_worker_of(p, task_of(0, 2, 1, SCORE)), task_of(0, 2, 1, SCORE));
    assert_int_equal(program_worker_of(p, task_of(0, 0, 1, TRAIN)), task_of(0, 0, 1, TRAIN));
    assert_int_equal(program_worker_of(p, task_of(1, 2, 0, TRAIN)), task_of(1, 1, 0, TRAIN));
    program_free(p);
    free(text);
}

/* 0-1 and 1-2 make 0-1-2, in whatever order they are declared. */
static void test_entries_that_overlap_join(void **state)
{
    (void)state;
    char *text = grid_with("[[same_work]]\nacross = \"lr\"\nlevels = [2e-3, 4e-3]\n"
                           "[[same_work]]\nacross = \"lr\"\nlevels = [1e-3, 2e-3]\n"
                           "[[same_work]]\nacross = \"arch\"\nwhere = { lr = 4e-3 }\n");
    struct plan_program *p = program_of(text, NULL);
    for (size_t arch = 0; arch < 2; arch++) {
        for (size_t lr = 0; lr < 3; lr++) {
            assert_int_equal(program_worker_of(p, task_of(arch, lr, 1, SCORE)),
                             task_of(0, 0, 1, SCORE));
        }
    }
    program_free(p);
    free(text);
}

static const struct load_fault FAULTS[] = {
    {"across = \"lrr\"\n", "same_work[0].across: unknown factor \"lrr\"; did you mean \"lr\"?"},
    {"across = \"seed\"\n", "\"seed\" is a replicate factor"},
    {"where = { arch = \"dense\" }\n", "across"},
    {"across = \"lr\"\nlevels = [1e-3]\n", "same_work[0].levels: expected two levels or more"},
    {"across = \"lr\"\nlevels = [1e-3, 0.001]\n", "level \"0.001\" is duplicated"},
    {"across = \"lr\"\nlevels = [1e-3, 5e-3]\n", "unknown level \"0.005\""},
    {"across = \"lr\"\nwhere = { lr = 1e-3 }\n", "this is the factor that is compared"},
    {"across = \"lr\"\nwhere = { seed = 1 }\n", "a replicate is not a thing to compare"},
    {"across = \"lr\"\nwhere = { arch = \"desne\" }\n", "unknown level \"desne\""},
    {"across = \"lr\"\nstages = []\n", "expected one stage or more"},
    {"across = \"lr\"\nstages = [\"score\"]\n",
     "\"score\" comes after \"train\", which is not listed"},
    {"across = \"lr\"\nstages = [\"train\", \"scor\"]\n", "unknown stage \"scor\""},
    {"across = \"lr\"\nover = \"all\"\n", "over"},
};

static void test_faults_have_a_place(void **state)
{
    (void)state;
    char *head = grid_with("[[same_work]]\n");
    expect_faults(head, FAULTS, ARRAY_LEN(FAULTS));
    free(head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_task_does_its_own_work_without_it),
        cmocka_unit_test(test_levels_are_one_work_where_it_says_so),
        cmocka_unit_test(test_levels_and_stages_can_be_picked),
        cmocka_unit_test(test_entries_that_overlap_join),
        cmocka_unit_test(test_faults_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
