/* Which live attempts a lifted pause for failures has answered, as the journal tells the next
 * daemon. */

#include "base/xalloc.h"
#include "state/store/answered.h"
#include "tests/unit/check.h"
#include "tests/unit/state/fixture.h"

enum { N_STAGES = 2, TRAIN_0 = 0, SCORE_0 = 1, TRAIN_1 = 2, TRAIN_2 = 4 };

static void start(struct fixture *f, uint32_t task)
{
    struct state_row rows[2];
    rows[0] = walker_start(&f->w, task);
    rows[1] = walker_run(&f->w, task);
    fixture_commit(f, rows, 2);
}

static void pauses(struct fixture *f, enum row_kind kind, unsigned bits)
{
    struct state_row row = program_row_make(&f->w, kind, (struct program_row){.paused = bits});
    fixture_commit(f, &row, 1);
}

/* Of the first attempts of both tasks, after a restart. */
static void expect(struct fixture *f, uint32_t a, bool a_answered, uint32_t b, bool b_answered)
{
    struct err err = {0};
    struct store_answer answers[] = {{.task = a, .attempt_no = 1}, {.task = b, .attempt_no = 1}};
    fixture_reopen(f);
    if (store_answered(f->store, f->no, N_STAGES, answers, ARRAY_LEN(answers), &err) != 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(answers[0].answered, a_answered);
    assert_int_equal(answers[1].answered, b_answered);
}

static void test_at_work_or_later(void **state)
{
    struct fixture *f = *state;
    start(f, TRAIN_0);
    pauses(f, ROW_PAUSED, PAUSE_FAILURES | PAUSE_PERSON);
    expect(f, TRAIN_0, false, TRAIN_1, false);
    pauses(f, ROW_RESUMED, 0);
    start(f, TRAIN_1);
    expect(f, TRAIN_0, true, TRAIN_1, false);
}

static void test_other_pause(void **state)
{
    struct fixture *f = *state;
    start(f, TRAIN_0);
    pauses(f, ROW_PAUSED, PAUSE_PERSON);
    pauses(f, ROW_RESUMED, 0);
    expect(f, TRAIN_0, false, TRAIN_1, false);
}

/* Another attempt of the task was at work then. */
static void test_earlier_attempt(void **state)
{
    struct fixture *f = *state;
    start(f, TRAIN_0);
    pauses(f, ROW_PAUSED, PAUSE_FAILURES);
    pauses(f, ROW_RESUMED, 0);
    struct state_row end = walker_fail(&f->w, TRAIN_0, TASK_READY, CAUSE_CRASH);
    fixture_commit(f, &end, 1);
    start(f, TRAIN_0);
    struct err err = {0};
    struct store_answer second = {.task = TRAIN_0, .attempt_no = 2};
    assert_int_equal(store_answered(f->store, f->no, N_STAGES, &second, 1, &err), 0);
    assert_false(second.answered);
}

/* A result of the stage before it was lifted ends what the pause was about; one after it does not.
 */
static void test_done_before_and_after(void **state)
{
    struct fixture *f = *state;
    start(f, TRAIN_0);
    start(f, TRAIN_1);
    start(f, TRAIN_2);
    pauses(f, ROW_PAUSED, PAUSE_FAILURES);
    pauses(f, ROW_RESUMED, 0);
    struct state_row done = walker_done(&f->w, TRAIN_0, "first");
    fixture_commit(f, &done, 1);
    expect(f, TRAIN_1, true, TRAIN_2, true);
    struct state_row ready = walker_ready(&f->w, SCORE_0);
    fixture_commit(f, &ready, 1);
    start(f, SCORE_0);
    struct state_row gone = walker_fail(&f->w, TRAIN_1, TASK_READY, CAUSE_CRASH);
    fixture_commit(f, &gone, 1);
    start(f, TRAIN_1);
    pauses(f, ROW_PAUSED, PAUSE_FAILURES);
    pauses(f, ROW_RESUMED, 0);
    struct err err = {0};
    struct store_answer answers[] = {{.task = SCORE_0, .attempt_no = 1},
                                     {.task = TRAIN_1, .attempt_no = 2}};
    assert_int_equal(store_answered(f->store, f->no, N_STAGES, answers, 2, &err), 0);
    assert_true(answers[0].answered);
    assert_false(answers[1].answered);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_at_work_or_later), TEST(test_other_pause),
                                       TEST(test_earlier_attempt),
                                       TEST(test_done_before_and_after)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
