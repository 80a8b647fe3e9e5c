#include <signal.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

static const uint32_t AFTER_FIRST[] = {0};
static const struct core_plan_stage STAGES[] = {
    {.counted = true, .threads = 1, .crashes = 2, .attempts = 5},
    {.after = AFTER_FIRST,
     .n_after = 1,
     .counted = true,
     .sealed = true,
     .threads = 1,
     .crashes = 2,
     .attempts = 5},
};
static const struct core_plan PLAN = {.n_cells = 2, .n_stages = 2, .stages = STAGES};

static void setup_one(struct driver *d)
{
    driver_init(d, 1);
    driver_add(d, 1, &PLAN);
    driver_at(d, CORE_ATTEMPT_UP, 0, 1);
}

/* Every way an attempt can end, once, from a fresh task. */
static void test_ends(void **state)
{
    (void)state;
    static const struct {
        enum end_reason reason;
        int code; /* or the signal */
        bool progress;
        enum task_state to;
        enum cause cause;
        uint32_t crashes;
        uint32_t spent;
        uint32_t idle;
    } CASES[] = {
        {END_EXITED, 1, false, TASK_READY, CAUSE_CRASH, 1, 1, 1},
        {END_EXITED, 1, true, TASK_READY, CAUSE_CRASH, 1, 1, 0},
        {END_EXITED, 75, true, TASK_READY, CAUSE_PREEMPTED, 0, 1, 0},
        {END_EXITED, 75, false, TASK_READY, CAUSE_PREEMPTED, 1, 1, 1},
        {END_EXITED, 64, true, TASK_BLOCKED, CAUSE_USER_ERROR, 0, 0, 0},
        {END_EXITED, 65, true, TASK_BLOCKED, CAUSE_BAD_INPUT, 0, 0, 0},
        {END_EXITED, 69, true, TASK_BLOCKED, CAUSE_NOT_MEASURABLE, 0, 0, 0},
        {END_SIGNALLED, SIGKILL, false, TASK_READY, CAUSE_CRASH, 1, 1, 1},
        {END_SIGNALLED, SIGKILL, true, TASK_READY, CAUSE_CRASH, 0, 1, 0},
        {END_SIGNALLED, SIGSEGV, true, TASK_READY, CAUSE_CRASH, 1, 1, 0},
        {END_SPAWN_FAILED, 0, false, TASK_READY, CAUSE_CRASH, 1, 1, 0},
        {END_DEADLINE, 0, false, TASK_READY, CAUSE_TIMEOUT, 1, 1, 1},
        {END_MEMORY, 0, false, TASK_READY, CAUSE_OOM, 1, 1, 1},
        {END_DISK, 0, false, TASK_READY, CAUSE_NO_SPACE, 0, 0, 0},
        {END_LOST, 0, false, TASK_READY, CAUSE_SILENT_DEATH, 1, 1, 1},
        {END_LOST, 0, true, TASK_READY, CAUSE_SILENT_DEATH, 0, 1, 0},
        {END_HOST_LOST, 0, false, TASK_READY, CAUSE_HOST_LOST, 0, 1, 1},
        {END_PREEMPTED, 0, false, TASK_READY, CAUSE_PREEMPTED, 0, 1, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("CASES[%zu]", i);
        struct driver d;
        setup_one(&d);
        if (CASES[i].progress) {
            driver_said(&d, 0, 1, 0, 5);
        }
        struct core_event ev = {
            .kind = CORE_ATTEMPT_ENDED, .program = 1, .task = 0, .attempt_no = 1};
        ev.ended.reason = CASES[i].reason;
        ev.ended.code = CASES[i].code;
        ev.ended.signal = CASES[i].reason == END_SIGNALLED ? CASES[i].code : 0;
        driver_step(&d, ev);
        struct task_row row = driver_row(&d, 0);
        const struct state_row *ended = NULL;
        for (size_t r = 0; r < d.out.n_rows; r++) {
            ended = d.out.rows[r].kind == ROW_ATTEMPT_ENDED ? &d.out.rows[r] : ended;
        }
        assert_non_null(ended);
        if (row.state != CASES[i].to || ended->attempt.cause != CASES[i].cause ||
            row.crashes != CASES[i].crashes || row.spent != CASES[i].spent ||
            row.idle != CASES[i].idle) {
            fail_msg("case %zu: %s %s crashes %u spent %u idle %u", i, task_state_name(row.state),
                     cause_name(ended->attempt.cause), row.crashes, row.spent, row.idle);
        }
        driver_release(&d);
    }
}

static void run_again(struct driver *d, uint32_t no)
{
    d->now_ms += 1000000;
    driver_step(d, (struct core_event){.kind = CORE_TIMER});
    driver_at(d, CORE_ATTEMPT_UP, 0, no);
}

/* That a task ran which nobody saw running is told with its result: until then nothing is there to
 * be committed. */
static void test_short_task(void **state)
{
    (void)state;
    struct driver d;
    driver_init(&d, 1);
    driver_add(&d, 1, &PLAN);
    driver_exit(&d, 0, 1, 0);
    assert_true(driver_did(&d, ACT_VERIFY));
    assert_int_equal(d.out.n_rows, 0);
    assert_int_equal(driver_row(&d, 0).state, TASK_STARTING);
    driver_checked(&d, 0, 1, RESULT_VALID);
    assert_true(d.out.n_rows >= 2);
    assert_int_equal(d.out.rows[0].kind, ROW_ATTEMPT_RUNNING);
    assert_int_equal(d.out.rows[1].kind, ROW_ATTEMPT_ENDED);
    assert_int_equal(driver_row(&d, 0).state, TASK_DONE);
    driver_release(&d);
}

/* Three ends in a row without progress block a task, though no crash budget is touched. */
static void test_idle_blocks(void **state)
{
    (void)state;
    struct driver d;
    setup_one(&d);
    for (uint32_t no = 1; no <= 3; no++) {
        assert_int_equal(driver_row(&d, 0).state, TASK_RUNNING);
        driver_end(&d, 0, no, END_HOST_LOST);
        if (no < 3) {
            assert_int_equal(driver_row(&d, 0).state, TASK_READY);
            driver_step(&d, (struct core_event){.kind = CORE_CANCEL,
                                                .program = 1,
                                                .task = 2}); /* lets 0 have the core */
            driver_end(&d, 2, 1, END_SIGNALLED);
            run_again(&d, no + 1);
        }
    }
    assert_int_equal(driver_row(&d, 0).state, TASK_BLOCKED);
    assert_int_equal(driver_row(&d, 0).cause, CAUSE_HOST_LOST);
    assert_int_equal(driver_row(&d, 1).state, TASK_NEVER_RUN);
    assert_int_equal(driver_row(&d, 1).cause, CAUSE_DEPENDENCY);
    driver_release(&d);
}

static void test_disk(void **state)
{
    (void)state;
    struct driver d;
    struct program_row status;
    setup_one(&d);
    driver_end(&d, 0, 1, END_DISK);
    assert_true(driver_did(&d, ACT_WATCH_DISK));
    assert_false(driver_did(&d, ACT_START));
    assert_true(core_program_status(d.core, 1, &status));
    assert_int_equal(status.paused, PAUSE_DISK);
    struct core_explanation e;
    struct strbuf text = STRBUF_INIT;
    assert_true(core_explain(d.core, 1, 0, &e));
    core_explanation_text(d.core, &e, (struct mono_time){0}, &text);
    assert_string_equal(text.buf, "its program is paused: no room on the disk");
    strbuf_release(&text);
    driver_step(&d, (struct core_event){.kind = CORE_CANCEL, .program = 1, .task = 2});
    for (uint32_t no = 2; no < 40; no++) { /* a quota, say: it is never the task's fault */
        driver_step(&d, (struct core_event){.kind = CORE_DISK, .program = 1, .disk_full = false});
        assert_false(driver_did(&d, ACT_START)); /* not in a loop */
        run_again(&d, no);
        assert_int_equal(driver_row(&d, 0).state, TASK_RUNNING);
        driver_end(&d, 0, no, END_DISK);
    }
    assert_int_equal(driver_row(&d, 0).state, TASK_READY);
    assert_int_equal(driver_row(&d, 0).spent, 0);
    driver_release(&d);
}

/* Item 31: "tried again in 23 h 59 min", and nothing helped. A clock that was a day ahead, or is
 * now a day behind: what is left of a backoff is a duration, at most what the task's ends so far
 * come to, and what is said of it is what will happen. */
static void test_backoff_and_wall_clock(void **state)
{
    (void)state;
    enum { DAY_MS = 24 * 3600 * 1000, MAX_MS = 8000 };
    static const int64_t ahead_ms[] = {DAY_MS, DAY_MS, DAY_MS, 3000, 0, -DAY_MS};
    static const uint32_t spent[] = {0, 2, 9, 9, 9, 9};
    static const int64_t due_ms[] = {1000, 2000, MAX_MS, 3000, 0, 0};
    for (size_t i = 0; i < ARRAY_LEN(ahead_ms); i++) {
        CHECK_ROW("ahead_ms[%zu]", i);
        struct driver d;
        struct task_row rows[4];
        struct core_explanation e;
        const struct program_row paused = {.paused = PAUSE_PERSON};
        struct strbuf text = STRBUF_INIT;
        driver_init(&d, 2);
        d.now_ms = 1000;
        for (uint32_t t = 0; t < 4; t++) {
            task_row_init(&rows[t], t % 2 == 0 ? TASK_READY : TASK_WAITING);
        }
        rows[0].n_attempts = 10;
        rows[0].spent = spent[i];
        rows[0].not_before.ms = 1763694202000 + d.now_ms + ahead_ms[i];
        struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
        ev.added.plan = PLAN;
        ev.added.tasks = rows;
        ev.added.status = &paused;
        driver_step(&d, ev);
        int64_t due = core_backoff_due_ms(d.core, 1, 0);
        assert_int_equal(due == 0 ? 0 : due - d.now_ms, due_ms[i]);
        assert_true(core_explain(d.core, 1, 0, &e));
        assert_int_equal(e.wait_due_ms, due);
        e.why = WHY_BACKOFF;
        core_explanation_text(d.core, &e, (struct mono_time){due - 2500}, &text);
        assert_string_equal(text.buf, "is tried again in 2.5 s");
        strbuf_release(&text);
        d.now_ms += due_ms[i];
        driver_step(&d, (struct core_event){.kind = CORE_RESUME, .program = 1});
        driver_step(&d, (struct core_event){.kind = CORE_TIMER});
        assert_int_equal(driver_row(&d, 0).state, TASK_STARTING);
        driver_release(&d);
    }
}

/* A shim that never gets as far as its worker: tried again with growing delays, a few times over
 * the whole program, which is then paused, and no task has lost anything. */
static void test_unlaunched(void **state)
{
    (void)state;
    struct driver d;
    struct program_row status = {0};
    driver_init(&d, 1);
    driver_add(&d, 1, &PLAN);
    unsigned n = 0;
    while (status.paused == 0 && n < 100) {
        for (uint32_t task = 0; task < 4; task += 2) {
            struct task_row row = driver_row(&d, task);
            if (row.state == TASK_STARTING) {
                driver_end(&d, task, row.n_attempts, END_NEVER_LAUNCHED);
                n++;
                assert_int_equal(driver_row(&d, task).state, TASK_READY);
                assert_true(driver_row(&d, task).not_before.ms > 0);
            }
        }
        assert_true(core_program_status(d.core, 1, &status));
        d.now_ms += 10000;
        driver_step(&d, (struct core_event){.kind = CORE_TIMER});
    }
    assert_int_equal(status.paused, PAUSE_HOST);
    assert_int_equal(n, 6);
    for (uint32_t task = 0; task < 4; task++) {
        assert_int_equal(driver_row(&d, task).spent, 0);
    }
    driver_step(&d, (struct core_event){.kind = CORE_MENDED, .program = 1});
    assert_true(driver_did(&d, ACT_START)); /* one try, and one is enough to know */
    uint32_t task = driver_row(&d, 0).state == TASK_STARTING ? 0 : 2;
    driver_end(&d, task, driver_row(&d, task).n_attempts, END_NEVER_LAUNCHED);
    assert_true(core_program_status(d.core, 1, &status));
    assert_int_equal(status.paused, PAUSE_HOST);
    driver_step(&d, (struct core_event){.kind = CORE_RESUME, .program = 1});
    d.now_ms += 10000;
    driver_step(&d, (struct core_event){.kind = CORE_TIMER});
    task = driver_row(&d, 0).state == TASK_STARTING ? 0 : 2;
    driver_at(&d, CORE_ATTEMPT_UP, task, driver_row(&d, task).n_attempts);
    assert_int_equal(driver_row(&d, task).state, TASK_RUNNING);
    driver_release(&d);
}

/* An amendment that came between explains a few starts, at once again; not starts without end. */
static void test_outdated(void **state)
{
    (void)state;
    struct driver d;
    struct program_row status = {0};
    uint32_t n = 0;
    uint32_t n_at_once = 0;
    driver_init(&d, 2);
    driver_add(&d, 1, &PLAN);
    for (uint32_t turn = 0; status.paused == 0 && turn < 100; turn++) {
        struct task_row row = driver_row(&d, 0);
        if (row.state == TASK_STARTING) {
            struct core_event ev = {.kind = CORE_START_FAILED,
                                    .program = 1,
                                    .attempt_no = row.n_attempts,
                                    .text = "it was amended"};
            ev.start_failure = START_FAILED_OUTDATED;
            driver_step(&d, ev);
            n++;
            n_at_once += driver_row(&d, 0).state == TASK_STARTING;
        }
        d.now_ms += 60000;
        driver_step(&d, (struct core_event){.kind = CORE_TIMER});
        assert_true(core_program_status(d.core, 1, &status));
    }
    assert_int_equal(status.paused, PAUSE_HOST);
    assert_int_equal(n_at_once, 3);
    assert_int_equal(n, 3 + 6);
    driver_release(&d);
}

/* It was seen at work, and nothing is left of it, not even that it began: its files were taken
 * away, which no budget for crashes pays for. */
static void test_vanished(void **state)
{
    (void)state;
    struct driver d;
    setup_one(&d);
    driver_end(&d, 0, 1, END_NEVER_LAUNCHED);
    assert_int_equal(driver_row(&d, 0).state, TASK_READY);
    assert_int_equal(driver_row(&d, 0).crashes, 0);
    assert_int_equal(driver_row(&d, 0).spent, 1);
    driver_release(&d);
}

/* What a daemon that died had begun is not the machine's fault: at once again, however many. */
static void test_unlaunched_by_a_dead_daemon(void **state)
{
    (void)state;
    struct driver d;
    struct core_live live[2];
    struct task_row rows[4];
    const struct program_row none = {0};
    struct program_row status;
    driver_init(&d, 2);
    for (uint32_t i = 0; i < 4; i++) {
        task_row_init(&rows[i], i % 2 == 0 ? TASK_STARTING : TASK_WAITING);
        rows[i].n_attempts = i % 2 == 0;
    }
    for (uint32_t i = 0; i < 2; i++) {
        live[i] = (struct core_live){.task = 2 * i};
        attempt_row_init(&live[i].attempt);
        live[i].attempt.no = 1;
    }
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
    ev.added.plan = PLAN;
    ev.added.tasks = rows;
    ev.added.live = live;
    ev.added.n_live = 2;
    ev.added.status = &none;
    driver_step(&d, ev);
    for (uint32_t i = 0; i < 2; i++) {
        driver_end(&d, 2 * i, 1, END_NEVER_LAUNCHED);
        assert_int_equal(driver_row(&d, 2 * i).state, TASK_STARTING);
    }
    assert_true(core_program_status(d.core, 1, &status));
    assert_int_equal(status.paused, 0);
    driver_release(&d);
}

static void test_requests(void **state)
{
    (void)state;
    struct driver d;
    setup_one(&d);
    driver_at(&d, CORE_RETRY, 0, 0);
    assert_non_null(d.out.refusal);
    driver_at(&d, CORE_CANCEL, 0, 0);
    assert_null(d.out.refusal);
    assert_true(driver_did(&d, ACT_TERMINATE));
    driver_exit(&d, 0, 1, 75);
    assert_int_equal(driver_row(&d, 0).state, TASK_BLOCKED); /* it has had an attempt */
    assert_int_equal(driver_row(&d, 0).cause, CAUSE_CANCELLED);
    driver_at(&d, CORE_CANCEL, 0, 0);
    assert_non_null(d.out.refusal);
    driver_at(&d, CORE_RETRY, 1, 0); /* its dependency first */
    assert_non_null(d.out.refusal);
    driver_at(&d, CORE_RETRY, 0, 0);
    assert_null(d.out.refusal);
    assert_int_equal(driver_row(&d, 0).state, TASK_READY);
    assert_int_equal(driver_row(&d, 1).state, TASK_WAITING);
    driver_at(&d, CORE_CANCEL, 0, 0); /* cancelled while the other one runs: blocked again */
    driver_exit(&d, 2, 1, 0);
    driver_checked(&d, 2, 1, RESULT_VALID); /* something that can be seen */
    driver_at(&d, CORE_UNBLIND, 0, 0);
    assert_null(d.out.refusal);
    driver_at(&d, CORE_RETRY, 0, 0);
    assert_non_null(d.out.refusal);
    assert_non_null(strstr(d.out.refusal, "scores"));
    driver_release(&d);
}

/* A task whose accepted result is lost: its measures are, too, and what waits for it never runs. */
static void test_lost(void **state)
{
    (void)state;
    struct driver d;
    setup_one(&d); /* task 1 comes after task 0 */
    driver_at(&d, CORE_LOST, 0, 0);
    assert_non_null(strstr(d.out.refusal, "done"));
    driver_at(&d, CORE_PAUSE, 0, 0);
    driver_exit(&d, 0, 1, 0);
    driver_checked(&d, 0, 1, RESULT_VALID);
    assert_int_equal(driver_row(&d, 0).state, TASK_DONE);
    assert_int_equal(driver_row(&d, 1).state, TASK_READY);
    driver_at(&d, CORE_LOST, 0, 0);
    assert_null(d.out.refusal);
    assert_int_equal(driver_row(&d, 0).state, TASK_BLOCKED);
    assert_int_equal(driver_row(&d, 0).cause, CAUSE_LOST);
    assert_false(driver_row(&d, 0).linked);
    assert_int_equal(driver_row(&d, 1).state, TASK_NEVER_RUN);
    assert_int_equal(driver_row(&d, 1).cause, CAUSE_DEPENDENCY);
    driver_at(&d, CORE_LOST, 0, 0);
    assert_non_null(d.out.refusal);
    driver_at(&d, CORE_RETRY, 0, 0);
    assert_non_null(strstr(d.out.refusal, "lost"));
    driver_at(&d, CORE_RESUME, 0, 0);
    assert_false(driver_did(&d, ACT_LINK));
    driver_release(&d);
}

/* Twenty programs on one core: whoever was served longest ago comes next. */
static void test_fair(void **state)
{
    (void)state;
    struct driver d;
    static const struct core_plan_stage one = {.threads = 1, .crashes = 3, .attempts = 9};
    const struct core_plan plan = {.n_cells = 2, .n_stages = 1, .stages = &one};
    driver_init(&d, 1);
    for (uint32_t no = 1; no <= 20; no++) {
        driver_add(&d, no, &plan);
    }
    uint32_t expected = 1;
    for (int i = 0; i < 39; i++) {
        struct core_event ev = {
            .kind = CORE_ATTEMPT_ENDED, .program = expected, .task = (uint32_t)(i >= 20)};
        ev.attempt_no = 1;
        ev.ended.reason = END_EXITED;
        ev.ended.code = 64;
        driver_step(&d, ev);
        expected = expected % 20 + 1;
        assert_true(driver_did(&d, ACT_START));
        for (size_t a = 0; a < d.out.n_acts; a++) {
            if (d.out.acts[a].kind == ACT_START) {
                assert_int_equal(d.out.acts[a].program, expected);
            }
        }
    }
    driver_release(&d);
}

static void end_badly(struct driver *d, uint32_t program, uint32_t task)
{
    struct core_event ev = {.kind = CORE_ATTEMPT_ENDED, .program = program, .task = task};
    ev.attempt_no = 1;
    ev.ended.reason = END_EXITED;
    ev.ended.code = 64;
    driver_step(d, ev);
}

/* The program of the last step's only start; 0: nothing was started. */
static uint32_t started(const struct driver *d)
{
    uint32_t program = 0;
    for (size_t a = 0; a < d->out.n_acts; a++) {
        if (d->out.acts[a].kind == ACT_START) {
            assert_int_equal(program, 0);
            program = d->out.acts[a].program;
        }
    }
    return program;
}

/* Higher priority first, whoever came earlier; among equals the fair share; a pause lets others by.
 */
static void test_priority(void **state)
{
    (void)state;
    static const int32_t priorities[] = {0, -5, 7, 7};
    static const uint32_t order[] = {3, 4, 3, 4, 1, 2, 2};
    static const struct core_plan_stage one = {.threads = 1, .crashes = 3, .attempts = 9};
    struct driver d;
    uint32_t n_done[5] = {0};
    driver_init(&d, 1);
    for (uint32_t no = 1; no <= 4; no++) {
        const struct core_plan plan = {
            .n_cells = 2, .n_stages = 1, .stages = &one, .priority = priorities[no - 1]};
        driver_add(&d, no, &plan);
    }
    uint32_t at_work = 1; /* nothing else was there when it was added */
    struct core_explanation e;
    struct strbuf text = STRBUF_INIT;
    assert_true(core_explain(d.core, 2, 0, &e));
    assert_int_equal(e.why, WHY_PRIORITY);
    assert_int_equal(e.ahead, 3);
    core_explanation_text(d.core, &e, (struct mono_time){0}, &text);
    assert_string_equal(text.buf, "waits behind a program of higher priority (7, its own is -5)");
    strbuf_release(&text);
    assert_int_equal(core_program_ahead(d.core, 2), 3);
    assert_int_equal(core_program_ahead(d.core, 4), UINT32_MAX);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        end_badly(&d, at_work, n_done[at_work]++);
        at_work = started(&d);
        assert_int_equal(at_work, order[i]);
    }
    driver_release(&d);
}

/* A program that has waited for room reserves the machine against its like and lesser ones only. */
static void test_priority_of_the_starved(void **state)
{
    (void)state;
    static const struct {
        int32_t wide; /* priority of the program that does not fit */
        bool others_start;
    } rows[] = {{-1, true}, {0, false}, {1, false}};
    static const struct core_plan_stage narrow = {.threads = 1, .crashes = 3, .attempts = 9};
    static const struct core_plan_stage all = {.threads = 2, .crashes = 3, .attempts = 9};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct driver d;
        const struct core_plan small = {.n_cells = 9, .n_stages = 1, .stages = &narrow};
        const struct core_plan wide = {
            .n_cells = 1, .n_stages = 1, .stages = &all, .priority = rows[i].wide};
        driver_init(&d, 2);
        driver_add(&d, 1, &small);
        driver_add(&d, 2, &wide);
        end_badly(&d, 1, 0);
        assert_int_equal(started(&d), 1); /* the wide one has not waited long enough */
        d.now_ms += 6 * 60 * 1000;
        end_badly(&d, 1, 1);
        assert_int_equal(started(&d), rows[i].others_start ? 1 : 0);
        driver_release(&d);
    }
}

/* A task that wants more than the machine has runs alone; one that waits is told why. */
static void test_room(void **state)
{
    (void)state;
    struct driver d;
    static const struct core_plan_stage wide = {.threads = 64, .crashes = 3, .attempts = 9};
    const struct core_plan plan = {.n_cells = 2, .n_stages = 1, .stages = &wide};
    driver_init(&d, 4);
    driver_add(&d, 1, &plan);
    assert_int_equal(driver_row(&d, 0).state, TASK_STARTING);
    assert_int_equal(driver_row(&d, 1).state, TASK_READY);
    struct core_explanation e;
    struct strbuf text = STRBUF_INIT;
    assert_true(core_explain(d.core, 1, 1, &e));
    core_explanation_text(d.core, &e, (struct mono_time){0}, &text);
    assert_string_equal(text.buf, "waits for cores: needs 4, attempts of this daemon hold 4 of 4");
    strbuf_release(&text);
    driver_release(&d);
}

/* What is short of memory says how much of it our own attempts have. */
static void test_room_of_memory(void **state)
{
    (void)state;
    struct driver d;
    static const struct core_plan_stage large = {
        .threads = 1, .memory_bytes = INT64_C(3) << 30, .crashes = 3, .attempts = 9};
    const struct core_plan plan = {.n_cells = 2, .n_stages = 1, .stages = &large};
    struct core_config config;
    struct core_explanation e;
    struct strbuf text = STRBUF_INIT;
    core_config_default(&config);
    config.cores = 4;
    config.memory_bytes = INT64_C(5) << 30;
    driver_init(&d, config.cores);
    core_free(d.core);
    d.core = core_create(&config);
    driver_step(&d, (struct core_event){.kind = CORE_ALL_ADDED});
    driver_add(&d, 1, &plan);
    assert_int_equal(driver_row(&d, 1).state, TASK_READY);
    assert_true(core_explain(d.core, 1, 1, &e));
    core_explanation_text(d.core, &e, (struct mono_time){0}, &text);
    assert_string_equal(text.buf, "waits for memory: needs 3072 MiB, attempts of this daemon hold "
                                  "3072 of 5120 MiB");
    strbuf_release(&text);
    driver_release(&d);
}

/* A measured deadline is five times the longest interval seen, and never under the floor. */
static void test_deadline(void **state)
{
    (void)state;
    struct driver d;
    struct core_explanation e;
    setup_one(&d);
    for (int i = 1; i <= 4; i++) {
        d.now_ms += 20000;
        driver_said(&d, 0, 1, (i - 1) * 100, i);
    }
    assert_true(core_explain(d.core, 1, 0, &e));
    assert_int_equal(e.deadline_ms - d.now_ms, 5 * 20000);
    driver_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_short_task),
        cmocka_unit_test(test_idle_blocks),
        cmocka_unit_test(test_disk),
        cmocka_unit_test(test_backoff_and_wall_clock),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_vanished),
        cmocka_unit_test(test_unlaunched),
        cmocka_unit_test(test_outdated),
        cmocka_unit_test(test_unlaunched_by_a_dead_daemon),
        cmocka_unit_test(test_fair),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_priority_of_the_starved),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_room_of_memory),
        cmocka_unit_test(test_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
