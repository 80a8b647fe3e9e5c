/* When the first cells of a stage all fail the same way the program pauses instead of giving them
 * up; and what may be tried again while nothing was ever accepted. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

#define N_CELLS  5
#define N_STAGES 2
#define TRAIN(c) ((uint32_t)(c)*N_STAGES)
#define SCORE(c) (TRAIN(c) + 1)

static const uint32_t AFTER_FIRST[] = {0};
static const struct core_plan_stage STAGES[N_STAGES] = {
    {.name = "train", .counted = true, .threads = 1, .crashes = 1, .attempts = 5},
    {.name = "score",
     .after = AFTER_FIRST,
     .n_after = 1,
     .counted = true,
     .sealed = true,
     .threads = 1,
     .crashes = 1,
     .attempts = 5},
};

static void setup_cells(struct driver *d, uint32_t n_cells, uint32_t cores)
{
    const struct core_plan plan = {.n_cells = n_cells, .n_stages = N_STAGES, .stages = STAGES};
    driver_init(d, cores);
    driver_add(d, 1, &plan);
}

static unsigned paused(const struct driver *d)
{
    struct program_row status = {0};
    assert_true(core_program_status(d->core, 1, &status));
    return status.paused;
}

static uint32_t n_in(const struct driver *d, enum task_state state)
{
    struct core_counts counts;
    assert_true(core_counts_get(d->core, 1, &counts));
    return counts.by_state[state];
}

static size_t n_rows(const struct driver *d, enum row_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < d->out.n_rows; i++) {
        n += d->out.rows[i].kind == kind;
    }
    return n;
}

static const char *said_of(const struct driver *d, enum row_kind kind)
{
    const char *text = NULL;
    for (size_t i = 0; i < d->out.n_rows; i++) {
        text = d->out.rows[i].kind == kind ? d->out.rows[i].detail : text;
    }
    return text;
}

/* The newest attempt of a task ends; it must be at work. */
static void end_with(struct driver *d, uint32_t task, enum end_reason reason, int code)
{
    struct task_row row = driver_row(d, task);
    assert_int_equal(row.state, TASK_STARTING);
    struct core_event ev = {.kind = CORE_ATTEMPT_ENDED,
                            .program = 1,
                            .task = task,
                            .attempt_no = row.n_attempts,
                            .text = "No module named 'torch'"};
    ev.ended.reason = reason;
    ev.ended.code = reason == END_EXITED ? code : -1;
    ev.ended.signal = reason == END_SIGNALLED ? code : 0;
    driver_step(d, ev);
}

static void succeed(struct driver *d, uint32_t task)
{
    uint32_t no = driver_row(d, task).n_attempts;
    driver_exit(d, task, no, 0);
    driver_checked(d, task, no, RESULT_VALID);
    driver_at(d, CORE_LINKED, task, no);
    assert_int_equal(driver_row(d, task).state, TASK_DONE);
}

static void resume(struct driver *d, bool accept)
{
    struct core_event ev = {.kind = CORE_RESUME, .program = 1};
    ev.accept_failures = accept;
    driver_step(d, ev);
    assert_null(d->out.refusal);
}

static void test_pauses(void **state)
{
    (void)state;
    struct driver d;
    setup_cells(&d, N_CELLS, 1);
    for (uint32_t cell = 0; cell < 3; cell++) {
        assert_int_equal(paused(&d), 0);
        end_with(&d, TRAIN(cell), END_EXITED, 1);
        assert_int_equal(driver_row(&d, TRAIN(cell)).state, cell < 2 ? TASK_BLOCKED : TASK_READY);
    }
    assert_int_equal(paused(&d), PAUSE_FAILURES);
    assert_string_equal(said_of(&d, ROW_PAUSED), "every attempt of `train` fails the same way: "
                                                 "crash (exit code 1): No module named 'torch'");
    assert_int_equal(n_rows(&d, ROW_TASK_REVIVED), 5); /* and two that waited for them */
    assert_int_equal(n_in(&d, TASK_BLOCKED) + n_in(&d, TASK_NEVER_RUN), 0);
    assert_int_equal(driver_row(&d, TRAIN(0)).spent, 0);
    assert_false(driver_did(&d, ACT_START));
    resume(&d, false); /* a fresh count: it pauses again, and not before the third */
    for (uint32_t cell = 0; cell < 3; cell++) {
        assert_int_equal(paused(&d), 0);
        end_with(&d, TRAIN(cell), END_EXITED, 1);
    }
    assert_int_equal(paused(&d), PAUSE_FAILURES);
    resume(&d, false); /* mended: one cell that fails now fails alone */
    succeed(&d, TRAIN(0));
    succeed(&d, SCORE(0));
    for (uint32_t cell = 1; cell < N_CELLS; cell++) {
        end_with(&d, TRAIN(cell), END_EXITED, 1);
    }
    assert_int_equal(paused(&d), 0);
    assert_int_equal(n_in(&d, TASK_BLOCKED), N_CELLS - 1);
    driver_release(&d);
}

/* Ends that are not the same, or not the work's own, leave it at that. */
static void test_does_not_pause(void **state)
{
    (void)state;
    static const struct {
        enum end_reason reason;
        int codes[N_CELLS];
    } CASES[] = {
        {END_EXITED, {1, 2, 1, 2, 3}},
        {END_EXITED, {69, 69, 69, 69, 69}}, /* not_measurable: an answer */
        {END_SIGNALLED, {9, 9, 9, 9, 9}},   /* by whom is not known */
        {END_LOST, {0}},                    /* likewise */
        {END_EXITED, {75, 75, 75, 75, 75}}, /* checkpointed */
        {END_SIGNALLED, {11, 6, 11, 6, 7}},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("CASES[%zu]", i);
        struct driver d;
        setup_cells(&d, N_CELLS, 1);
        for (uint32_t cell = 0; cell < N_CELLS; cell++) {
            end_with(&d, TRAIN(cell), CASES[i].reason, CASES[i].codes[cell]);
        }
        if (paused(&d) != 0 || n_in(&d, TASK_BLOCKED) != N_CELLS) {
            fail_msg("case %zu: paused %u, %u blocked", i, paused(&d), n_in(&d, TASK_BLOCKED));
        }
        driver_release(&d);
    }
}

/* Causes of their own; a signal; what else is blocked does not hide it, and is told. */
static void test_causes(void **state)
{
    (void)state;
    static const struct {
        enum end_reason reason;
        int code;
        const char *said;
    } CASES[] = {
        {END_EXITED, 64, "every attempt of `train` fails the same way: user_error (exit code 64)"},
        {END_EXITED, 65, "every attempt of `train` fails the same way: bad_input (exit code 65)"},
        {END_SIGNALLED, 11, "every attempt of `train` fails the same way: crash (signal 11)"},
        {END_MEMORY, 0, "every attempt of `train` fails the same way: oom: "},
        {END_SPAWN_FAILED, 0, "every attempt of `train` fails the same way: crash: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].said);
        struct driver d;
        setup_cells(&d, N_CELLS, 1);
        for (uint32_t cell = 0; cell < 3; cell++) {
            end_with(&d, TRAIN(cell), CASES[i].reason, CASES[i].code);
        }
        assert_int_equal(paused(&d), PAUSE_FAILURES);
        assert_memory_equal(said_of(&d, ROW_PAUSED), CASES[i].said, strlen(CASES[i].said));
        driver_release(&d);
    }
    struct driver d;
    setup_cells(&d, N_CELLS, 1);
    end_with(&d, TRAIN(0), END_EXITED, 2);
    for (uint32_t cell = 1; cell < 4; cell++) {
        end_with(&d, TRAIN(cell), END_EXITED, 1);
    }
    assert_int_equal(paused(&d), PAUSE_FAILURES);
    assert_non_null(strstr(said_of(&d, ROW_PAUSED),
                           "3 cells of `train` fail the same way, and none is done: crash"));
    assert_int_equal(driver_row(&d, TRAIN(0)).state, TASK_BLOCKED);
    assert_int_equal(n_in(&d, TASK_BLOCKED), 1);
    driver_release(&d);
}

/* Fewer than three cells, or fewer that can still end by themselves: all of them. */
static void test_few_cells(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 2; n++) {
        struct driver d;
        setup_cells(&d, n, 1);
        for (uint32_t cell = 0; cell < n; cell++) {
            assert_int_equal(paused(&d), 0);
            end_with(&d, TRAIN(cell), END_EXITED, 1);
        }
        assert_int_equal(paused(&d), PAUSE_FAILURES);
        assert_int_equal(n_in(&d, TASK_READY), n);
        driver_release(&d);
    }
    struct driver d;
    setup_cells(&d, 4, 1);
    driver_at(&d, CORE_CANCEL, TRAIN(2), 0);
    driver_at(&d, CORE_CANCEL, TRAIN(3), 0);
    end_with(&d, TRAIN(0), END_EXITED, 1);
    assert_int_equal(paused(&d), 0);
    end_with(&d, TRAIN(1), END_EXITED, 1);
    assert_int_equal(paused(&d), PAUSE_FAILURES);
    driver_release(&d);
}

/* What is at work when it pauses, and fails then, is not given up either. */
static void test_at_work(void **state)
{
    (void)state;
    struct driver d;
    setup_cells(&d, N_CELLS, N_CELLS);
    for (uint32_t cell = 0; cell < N_CELLS; cell++) {
        end_with(&d, TRAIN(cell), END_EXITED, 1);
        assert_int_equal(paused(&d), cell < 2 ? 0 : PAUSE_FAILURES);
    }
    assert_int_equal(n_in(&d, TASK_READY), N_CELLS);
    assert_int_equal(n_rows(&d, ROW_PAUSED), 0); /* said once */
    assert_int_equal(n_rows(&d, ROW_TASK_REVIVED), 1);
    driver_release(&d);
}

/* What was at work when the program paused, and fails after it was resumed, counts to the pause
 * that was answered: it is tried again, and pauses nothing. */
static void test_at_work_after_resume(void **state)
{
    enum { N_WIDE = 7 };
    (void)state;
    struct driver d;
    setup_cells(&d, N_WIDE, N_WIDE);
    for (uint32_t cell = 0; cell < 3; cell++) {
        end_with(&d, TRAIN(cell), END_EXITED, 1);
    }
    assert_int_equal(paused(&d), PAUSE_FAILURES);
    resume(&d, false);
    end_with(&d, TRAIN(0), END_EXITED, 1); /* two of a fresh count */
    end_with(&d, TRAIN(1), END_EXITED, 1);
    for (uint32_t cell = 3; cell < N_WIDE; cell++) {
        assert_int_equal(driver_row(&d, TRAIN(cell)).n_attempts, 1);
        end_with(&d, TRAIN(cell), END_EXITED, 1);
        assert_int_equal(paused(&d), 0);
        assert_int_equal(n_rows(&d, ROW_TASK_REVIVED), 1);
        assert_int_equal(driver_row(&d, TRAIN(cell)).n_attempts, 2);
        assert_int_equal(driver_row(&d, TRAIN(cell)).crashes, 0);
    }
    assert_int_equal(n_in(&d, TASK_BLOCKED), 2);
    end_with(&d, TRAIN(3), END_EXITED, 1); /* its second attempt began after the resumption */
    assert_int_equal(paused(&d), PAUSE_FAILURES);
    assert_int_equal(n_in(&d, TASK_BLOCKED), 0);
    driver_release(&d);
}

/* Mended and resumed: that others are done by then does not give up what began before. */
static void test_at_work_others_done(void **state)
{
    (void)state;
    struct driver d;
    setup_cells(&d, N_CELLS, N_CELLS);
    for (uint32_t cell = 0; cell < 3; cell++) {
        end_with(&d, TRAIN(cell), END_EXITED, 1);
    }
    resume(&d, false);
    succeed(&d, TRAIN(0));
    end_with(&d, TRAIN(3), END_EXITED, 1);
    assert_int_equal(n_rows(&d, ROW_TASK_REVIVED), 1);
    end_with(&d, TRAIN(3), END_EXITED, 1); /* begun after it: it fails alone */
    assert_int_equal(driver_row(&d, TRAIN(3)).state, TASK_BLOCKED);
    succeed(&d, TRAIN(1)); /* a stage with something done is not what the pause was about */
    end_with(&d, SCORE(0), END_EXITED, 1);
    assert_int_equal(driver_row(&d, SCORE(0)).state, TASK_BLOCKED);
    assert_int_equal(paused(&d), 0);
    driver_release(&d);
}

/* The next daemon hears of it. Without an answer both count, and the program pauses. */
static void test_at_work_after_restart(void **state)
{
    (void)state;
    for (int answered = 0; answered < 2; answered++) {
        struct driver d;
        struct task_row rows[2 * N_STAGES];
        struct core_live live[2];
        const struct program_row none = {0};
        struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
        driver_init(&d, 2);
        for (uint32_t i = 0; i < 2 * N_STAGES; i++) {
            task_row_init(&rows[i], i % N_STAGES == 0 ? TASK_STARTING : TASK_WAITING);
            rows[i].n_attempts = i % N_STAGES == 0;
        }
        for (uint32_t i = 0; i < 2; i++) {
            live[i] = (struct core_live){.task = TRAIN(i), .answered = answered != 0};
            attempt_row_init(&live[i].attempt);
            live[i].attempt.no = 1;
        }
        ev.added.plan = (struct core_plan){.n_cells = 2, .n_stages = N_STAGES, .stages = STAGES};
        ev.added.tasks = rows;
        ev.added.live = live;
        ev.added.n_live = 2;
        ev.added.status = &none;
        driver_step(&d, ev);
        end_with(&d, TRAIN(0), END_EXITED, 1);
        assert_int_equal(driver_row(&d, TRAIN(0)).state, answered ? TASK_STARTING : TASK_BLOCKED);
        end_with(&d, TRAIN(1), END_EXITED, 1);
        assert_int_equal(paused(&d), answered ? 0 : PAUSE_FAILURES);
        driver_release(&d);
    }
}

/* With --accept-failures nothing is kept, whenever it began. */
static void test_at_work_accepted(void **state)
{
    (void)state;
    struct driver d;
    setup_cells(&d, N_CELLS, N_CELLS);
    for (uint32_t cell = 0; cell < 3; cell++) {
        end_with(&d, TRAIN(cell), END_EXITED, 1);
    }
    resume(&d, true);
    end_with(&d, TRAIN(3), END_EXITED, 1);
    end_with(&d, TRAIN(4), END_EXITED, 1);
    assert_int_equal(n_in(&d, TASK_BLOCKED), 2);
    assert_int_equal(paused(&d), 0);
    driver_release(&d);
}

/* A person says that they may fail: then they do, and the program comes to its verdict. Nothing is
 * unsealed before that, for there is nothing to see, and what failed may be tried again. */
static void test_accepted(void **state)
{
    (void)state;
    struct driver d;
    struct program_row status;
    setup_cells(&d, 3, 1);
    for (uint32_t cell = 0; cell < 3; cell++) {
        end_with(&d, TRAIN(cell), END_EXITED, 1);
    }
    resume(&d, true);
    for (uint32_t cell = 0; cell < 3; cell++) {
        end_with(&d, TRAIN(cell), END_EXITED, 1);
    }
    assert_int_equal(n_in(&d, TASK_BLOCKED), 3);
    assert_true(driver_did(&d, ACT_VERDICT));
    driver_step(&d, (struct core_event){.kind = CORE_VERDICT_FAILED, .program = 1});
    assert_true(core_program_status(d.core, 1, &status));
    assert_false(status.unsealed);
    assert_true(status.failures_accepted);
    driver_at(&d, CORE_RETRY, TRAIN(0), 0);
    assert_null(d.out.refusal);
    assert_int_equal(n_in(&d, TASK_WAITING), 1);
    end_with(&d, TRAIN(0), END_EXITED, 1);
    assert_true(driver_did(&d, ACT_VERDICT));
    struct core_event ev = {.kind = CORE_VERDICT_COMPUTED, .program = 1};
    (void)snprintf(ev.verdict.outcome, sizeof(ev.verdict.outcome), "VOID");
    driver_step(&d, ev);
    assert_int_equal(n_rows(&d, ROW_UNSEALED), 1);
    assert_int_equal(n_rows(&d, ROW_VERDICT), 1);
    driver_at(&d, CORE_RETRY, TRAIN(0), 0);
    assert_non_null(d.out.refusal);
    assert_non_null(strstr(d.out.refusal, "`[program] supersedes`")); /* what to do instead */
    driver_release(&d);
}

/* What rests on a result that was given up since is not revived: it would wait for ever. */
static void test_lost_below(void **state)
{
    (void)state;
    struct driver d;
    setup_cells(&d, N_CELLS, N_CELLS);
    for (uint32_t cell = 0; cell < N_CELLS; cell++) {
        succeed(&d, TRAIN(cell));
    }
    end_with(&d, SCORE(0), END_EXITED, 1);
    end_with(&d, SCORE(1), END_EXITED, 1);
    driver_at(&d, CORE_LOST, TRAIN(0), 0);
    assert_null(d.out.refusal);
    end_with(&d, SCORE(2), END_EXITED, 1);
    assert_int_equal(paused(&d), 0); /* two that could be tried again */
    end_with(&d, SCORE(3), END_EXITED, 1);
    assert_int_equal(paused(&d), PAUSE_FAILURES);
    assert_int_equal(driver_row(&d, SCORE(0)).state, TASK_BLOCKED);
    assert_int_equal(n_in(&d, TASK_WAITING), 0);
    driver_release(&d);
}

/* An unblinding shows nothing while nothing was accepted. */
static void test_retry_after_unblinding(void **state)
{
    (void)state;
    struct driver d;
    setup_cells(&d, 3, 1);
    end_with(&d, TRAIN(0), END_EXITED, 1);
    driver_at(&d, CORE_UNBLIND, 0, 0);
    driver_at(&d, CORE_RETRY, TRAIN(0), 0);
    assert_null(d.out.refusal);
    assert_int_equal(driver_row(&d, TRAIN(0)).state, TASK_READY);
    end_with(&d, TRAIN(1), END_EXITED, 1);
    succeed(&d, TRAIN(0));
    driver_at(&d, CORE_RETRY, TRAIN(1), 0);
    assert_non_null(strstr(d.out.refusal, "scores"));
    end_with(&d, SCORE(0), END_EXITED, 1); /* nor is that revived: it counts, and was seen */
    driver_release(&d);
}

/* After a restart the ends come from the store: two cells that failed before it count. */
static void test_restart(void **state)
{
    (void)state;
    for (int code = 1; code <= 2; code++) {
        struct driver d;
        struct task_row rows[3 * N_STAGES];
        const struct core_end ends[] = {{TRAIN(0), code, 0}, {TRAIN(1), 1, 0}};
        const struct program_row status = {0};
        struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
        for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
            task_row_init(&rows[i], i % N_STAGES == 0 ? TASK_BLOCKED : TASK_NEVER_RUN);
            rows[i].cause = i % N_STAGES == 0 ? CAUSE_CRASH : CAUSE_DEPENDENCY;
            rows[i].n_attempts = i % N_STAGES == 0;
        }
        task_row_init(&rows[TRAIN(2)], TASK_READY);
        task_row_init(&rows[SCORE(2)], TASK_WAITING);
        ev.added.plan = (struct core_plan){.n_cells = 3, .n_stages = N_STAGES, .stages = STAGES};
        ev.added.tasks = rows;
        ev.added.status = &status;
        ev.added.ends = ends;
        ev.added.n_ends = ARRAY_LEN(ends);
        driver_init(&d, 1);
        driver_step(&d, ev);
        end_with(&d, TRAIN(2), END_EXITED, 1);
        assert_int_equal(paused(&d), code == 1 ? PAUSE_FAILURES : 0);
        assert_int_equal(n_in(&d, TASK_BLOCKED), code == 1 ? 0 : 3);
        driver_release(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_does_not_pause),
        cmocka_unit_test(test_causes),
        cmocka_unit_test(test_few_cells),
        cmocka_unit_test(test_at_work),
        cmocka_unit_test(test_at_work_after_resume),
        cmocka_unit_test(test_at_work_others_done),
        cmocka_unit_test(test_at_work_after_restart),
        cmocka_unit_test(test_at_work_accepted),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_retry_after_unblinding),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_lost_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
