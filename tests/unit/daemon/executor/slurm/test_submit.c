/* What a refusal of sbatch means while nodes are excluded, and nodes that do not have what is
 * pinned: rules 23 and 24. */
#include "tests/unit/daemon/executor/slurm/bench.h"

#define C "2d9d8cf8-5c5a-4d8a-9e2c-3b4a5f6e7d8c"
#define D "3e0e9d09-6d6b-4e9b-8f3d-4c5b6a7f8e9d"

/* Two attempts have failed on n1, which is excluded; a third is submitted, and refused for good. */
static void refuse_with_exclusion(struct bench *p)
{
    static const char *const ids[] = {A, B};
    begin(p);
    slurm_book_set_grace(p->book, 1000);
    for (uint32_t task = 0; task < 2; task++) {
        start(p, task, ids[task], false);
        if (task == 0) {
            tested(p, SLURM_SUBMIT_DONE);
        }
        submitted(p, SLURM_SUBMIT_DONE);
        for (int i = 0; i < 20 && act(p, SLURM_ACT_ENDED) == NULL; i++) {
            queue(p, row(p, "FAILED", "n1"));
            files(p, task, false);
        }
        assert_int_equal(reason(p), END_NEVER_LAUNCHED);
    }
    start(p, 2, C, false);
    assert_string_equal(wait_for(p, SLURM_ACT_SUBMIT)->exclude, "n1");
    submitted(p, SLURM_SUBMIT_NEVER);
    assert_null(act(p, SLURM_ACT_ENDED));
}

/* Rule 24: where no node is left, those that failed are tried again. */
static void test_all_nodes_are_bad(void **state)
{
    struct bench p;
    (void)state;
    refuse_with_exclusion(&p);
    tested(&p, SLURM_SUBMIT_DONE); /* without the exclusion it would perhaps be accepted */
    assert_null(wait_for(&p, SLURM_ACT_SUBMIT)->exclude);
    submitted(&p, SLURM_SUBMIT_DONE);
    assert_non_null(strstr(must(&p, SLURM_ACT_NOTE).text, "none is excluded any more"));
    start(&p, 3, D, false);
    assert_null(wait_for(&p, SLURM_ACT_SUBMIT)->exclude);
    finish(&p);
}

/* A refusal that has nothing to do with the exclusion, as the test or sbatch itself says: the bad
 * node stays excluded. */
static void test_a_refusal_forgives_no_node(void **state)
{
    (void)state;
    for (int by_sbatch = 0; by_sbatch < 2; by_sbatch++) {
        struct bench p;
        CHECK_ROW("%s", by_sbatch ? "sbatch" : "test");
        refuse_with_exclusion(&p);
        tested(&p, by_sbatch ? SLURM_SUBMIT_DONE : SLURM_SUBMIT_NEVER);
        if (by_sbatch) {
            assert_null(wait_for(&p, SLURM_ACT_SUBMIT)->exclude);
            submitted(&p, SLURM_SUBMIT_NEVER);
        }
        assert_int_equal(reason(&p), END_NEVER_LAUNCHED);
        assert_string_equal(detail(&p), by_sbatch ? "Slurm refuses the job: why"
                                                  : "Slurm refuses the job: too big");
        p.now_ms += 60001; /* then it is tested again */
        start(&p, 3, D, false);
        tested(&p, SLURM_SUBMIT_DONE);
        assert_string_equal(wait_for(&p, SLURM_ACT_SUBMIT)->exclude, "n1");
        finish(&p);
    }
}

/* Answers what is asked, with `text` and an empty folder, until an act of a kind comes. */
static void go_on_until(struct bench *p, enum slurm_act_kind kind, uint32_t task, const char *text)
{
    for (int i = 0; i < 300 && act(p, kind) == NULL; i++) {
        if (act(p, SLURM_ACT_QUEUE) != NULL || act(p, SLURM_ACT_NAMES) != NULL) {
            answer(p, text);
        } else if (act(p, SLURM_ACT_LOOK) != NULL) {
            files(p, task, false);
        } else {
            p->now_ms = slurm_book_next_ms(p->book);
            step(p, (struct slurm_event){.kind = SLURM_EVENT_TIMER});
        }
    }
    assert_non_null(act(p, kind));
}

/* A batch whose answer was unknown keeps its name: it is not submitted over and over while its
 * refusal is doubted, and ends with its shape. */
static void test_a_doubted_batch_with_its_name(void **state)
{
    static const char *const ids[] = {A, B, C};
    struct bench p;
    (void)state;
    begin(&p);
    slurm_book_set_grace(p.book, 1000);
    for (uint32_t task = 0; task < 3; task++) {
        start(&p, task, ids[task], false);
        if (task == 0) {
            go_on_until(&p, SLURM_ACT_TEST, task, "");
            tested(&p, SLURM_SUBMIT_DONE);
        }
        go_on_until(&p, SLURM_ACT_SUBMIT, task, "");
        submitted(&p, task < 2 ? SLURM_SUBMIT_DONE : SLURM_SUBMIT_UNKNOWN);
        if (task < 2) {
            go_on_until(&p, SLURM_ACT_ENDED, task, row(&p, "FAILED", "n1"));
        }
    }
    go_on_until(&p, SLURM_ACT_SUBMIT, 2, "");
    assert_true(must(&p, SLURM_ACT_SUBMIT).again);
    assert_string_equal(must(&p, SLURM_ACT_SUBMIT).exclude, "n1");
    submitted(&p, SLURM_SUBMIT_NEVER);
    go_on_until(&p, SLURM_ACT_TEST, 2, "");
    tested(&p, SLURM_SUBMIT_NEVER);
    assert_int_equal(reason(&p), END_NEVER_LAUNCHED);
    assert_int_equal(slurm_book_count(p.book), 0);
    finish(&p);
}

static void unfit(struct bench *p, uint32_t task, const char *node, const char *has)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_FILES, .key = key(task)};
    ev.files.listed = true;
    ev.files.unfit_node = node;
    ev.files.unfit_has = has;
    p->now_ms++;
    step(p, ev);
}

/* A node without the pinned GPU: an end of its own, at once, although the queue has shown the
 * job running; the node is excluded for that program alone. Once none is left it is said what they
 * have, and they are tried again later. */
static void test_unfit_nodes(void **state)
{
    struct bench p;
    struct slurm_event other = {.kind = SLURM_EVENT_START, .key = key(9)};
    (void)state;
    hold_one(&p);
    queue(&p, row(&p, "RUNNING", "n1"));
    assert_non_null(act(&p, SLURM_ACT_BEGAN));
    unfit(&p, 0, "n1", "NVIDIA T4");
    assert_int_equal(reason(&p), END_NEVER_LAUNCHED);
    const struct attempt_end *end = must(&p, SLURM_ACT_ENDED).end;
    assert_true(end != NULL && end->unfit && end->excused);
    assert_string_equal(detail(&p), "n1 has NVIDIA T4");
    start(&p, 1, B, false);
    assert_string_equal(wait_for(&p, SLURM_ACT_SUBMIT)->exclude, "n1");
    submitted(&p, SLURM_SUBMIT_DONE);
    other.start.id = D; /* of another program */
    other.start.shape = 1;
    step(&p, other);
    (void)wait_for(&p, SLURM_ACT_TEST);
    step(&p,
         (struct slurm_event){.kind = SLURM_EVENT_TESTED, .shape = 1, .submit = SLURM_SUBMIT_DONE});
    assert_null(wait_for(&p, SLURM_ACT_SUBMIT)->exclude);
    step(&p, (struct slurm_event){
                 .kind = SLURM_EVENT_SUBMITTED, .name = D, .submit = SLURM_SUBMIT_DONE});
    queue(&p, row(&p, "RUNNING", "")); /* it has ended before the queue showed its node */
    unfit(&p, 1, "n2", "no GPU");
    assert_string_equal(detail(&p), "n1 has NVIDIA T4, n2 has no GPU");
    start(&p, 2, C, false);
    assert_string_equal(wait_for(&p, SLURM_ACT_SUBMIT)->exclude, "n1,n2");
    submitted(&p, SLURM_SUBMIT_NEVER);
    tested(&p, SLURM_SUBMIT_DONE);
    assert_int_equal(reason(&p), END_NEVER_LAUNCHED);
    assert_string_equal(detail(&p), "no node has the GPU that is pinned: n1 has NVIDIA T4, n2 has "
                                    "no GPU");
    p.now_ms += 60001;
    start(&p, 3, "4f1f0e10-7e7c-4fac-904e-5d6c7b809fae", false);
    tested(&p, SLURM_SUBMIT_DONE);
    assert_null(wait_for(&p, SLURM_ACT_SUBMIT)->exclude);
    finish(&p);
}

/* A node without a name cannot be excluded: it may refuse for ever, which has to cost something. */
static void test_unfit_without_a_name(void **state)
{
    struct bench p;
    (void)state;
    hold_one(&p);
    queue(&p, row(&p, "RUNNING", ""));
    unfit(&p, 0, "", "no GPU");
    const struct attempt_end *end = must(&p, SLURM_ACT_ENDED).end;
    assert_true(end != NULL && end->unfit && !end->excused);
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_nodes_are_bad),
        cmocka_unit_test(test_a_refusal_forgives_no_node),
        cmocka_unit_test(test_a_doubted_batch_with_its_name),
        cmocka_unit_test(test_unfit_nodes),
        cmocka_unit_test(test_unfit_without_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
