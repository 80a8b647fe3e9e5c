/* `cancel --all` and `retry` in slices. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

enum { N_CELLS = 700, N_TASKS = 2 * N_CELLS, SLICE = 250 };

static const uint32_t FIRST = 0;
static const struct core_plan_stage STAGES[] = {
    {.counted = true, .threads = 1, .crashes = 3, .attempts = 50},
    {.after = &FIRST, .n_after = 1, .counted = true, .threads = 1, .crashes = 3, .attempts = 50}};
static const struct core_plan PLAN = {.n_cells = N_CELLS, .n_stages = 2, .stages = STAGES};

/* What the store would hold. */
struct stored {
    struct task_row tasks[N_TASKS];
    struct attempt_row attempts[N_TASKS];
    struct program_row status;
};

static void store_init(struct stored *s)
{
    *s = (struct stored){0};
    for (size_t i = 0; i < N_TASKS; i++) {
        task_row_init(&s->tasks[i], i % 2 == 0 ? TASK_READY : TASK_WAITING);
    }
}

/* Takes the step's rows in; how many tasks it moved. */
static size_t take_rows(struct driver *d, struct stored *s)
{
    size_t n = 0;
    for (size_t i = 0; i < d->out.n_rows; i++) {
        const struct state_row *row = &d->out.rows[i];
        if (!row_kind_is_of_task(row->kind)) {
            s->status = row->status;
            continue;
        }
        s->tasks[row->task] = row->after;
        s->attempts[row->task] = row->attempt;
        n++;
    }
    return n;
}

static bool all_ended(const struct stored *s)
{
    for (size_t i = 0; i < N_TASKS; i++) {
        if (!task_state_is_terminal(s->tasks[i].state) && s->tasks[i].ending == CAUSE_NONE) {
            return false;
        }
    }
    return true;
}

static void begin(struct driver *d, struct stored *s)
{
    store_init(s);
    driver_init(d, 2);
    driver_add(d, 1, &PLAN);
    (void)take_rows(d, s);
    driver_at(d, CORE_ATTEMPT_UP, 0, 1);
    (void)take_rows(d, s);
    driver_at(d, CORE_ATTEMPT_UP, 2, 1);
    (void)take_rows(d, s);
    assert_int_equal(s->tasks[2].state, TASK_RUNNING);
}

static void step(struct driver *d, struct stored *s, enum core_event_kind kind)
{
    driver_step(d, (struct core_event){.kind = kind, .program = 1, .text = "scripted"});
    assert_true(take_rows(d, s) <= SLICE + 4); /* and what lives, with its cell */
    for (size_t i = 0; i < d->out.n_rows; i++) {
        const struct state_row *row = &d->out.rows[i];
        bool ends = row->kind == ROW_TASK_ENDED || row->kind == ROW_TASK_ENDING;
        assert_true(!ends || (row->detail != NULL && strcmp(row->detail, "scripted") ==
                                                         0)); /* the reason, in all of them */
    }
    assert_false(driver_did(d, ACT_START));
}

static void refused(struct driver *d, struct stored *s, enum core_event_kind kind)
{
    size_t before = d->trace.len;
    step(d, s, kind);
    assert_non_null(strstr(d->trace.buf + before, "being cancelled"));
    assert_int_equal(d->out.n_rows, 0);
}

static void finish(struct driver *d, struct stored *s)
{
    int n = 0;
    while ((s->status.paused & PAUSE_STOPPING) != 0) {
        assert_true(core_next_timer_ms(d->core) <= d->now_ms); /* the loop has a turn between */
        step(d, s, CORE_TIMER);
        assert_true(++n <= N_TASKS / SLICE + 1);
    }
    assert_true(all_ended(s));
    assert_int_equal(s->status.paused, 0);
    for (uint32_t i = 0; i < N_TASKS; i++) {
        bool live = i == 0 || i == 2;
        assert_int_equal(s->tasks[i].state, live ? TASK_RUNNING : TASK_NEVER_RUN);
        assert_int_equal(live ? s->tasks[i].ending : s->tasks[i].cause, CAUSE_STOPPED);
    }
}

/* What lives is ended in the first step, the rest a slice at a time; nothing starts meanwhile. */
static void test_slices(void **state)
{
    (void)state;
    struct driver d;
    struct stored *s = malloc(sizeof(*s));
    begin(&d, s);
    step(&d, s, CORE_STOP);
    assert_int_equal(d.out.rows[0].kind, ROW_PAUSED); /* what all that follows rests on */
    assert_int_equal(s->status.paused, PAUSE_STOPPING);
    assert_true(driver_did(&d, ACT_TERMINATE));
    assert_int_equal(s->tasks[0].ending, CAUSE_STOPPED);
    assert_int_equal(s->tasks[2].ending, CAUSE_STOPPED);
    assert_int_equal(s->tasks[100].state, TASK_READY);
    refused(&d, s, CORE_RESUME);
    driver_step(&d, (struct core_event){.kind = CORE_RETRY, .program = 1, .task = N_TASKS - 1});
    assert_non_null(d.out.refusal);
    step(&d, s, CORE_STOP); /* once is enough */
    assert_int_equal(d.out.n_rows, 0);
    finish(&d, s);
    driver_release(&d);
    free(s);
}

/* Cell 300 is another name of cell 0, which is at work: it ends with it, and as stopped. */
static void test_another_name_of_what_lives(void **state)
{
    (void)state;
    static uint32_t workers[N_TASKS];
    struct core_plan plan = PLAN;
    struct driver d;
    struct stored *s = malloc(sizeof(*s));
    for (uint32_t i = 0; i < N_TASKS; i++) {
        workers[i] = i / 2 == 300 ? i % 2 : i;
    }
    plan.workers = workers;
    store_init(s);
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    (void)take_rows(&d, s);
    driver_at(&d, CORE_ATTEMPT_UP, 0, 1);
    (void)take_rows(&d, s);
    step(&d, s, CORE_STOP);
    driver_end(&d, 0, 1, END_SIGNALLED);
    (void)take_rows(&d, s);
    assert_int_equal(s->tasks[0].cause, CAUSE_STOPPED);
    for (uint32_t i = 600; i < 602; i++) {
        assert_int_equal(s->tasks[i].state, TASK_NEVER_RUN);
        assert_int_equal(s->tasks[i].cause, CAUSE_STOPPED);
    }
    assert_int_equal(s->tasks[602].state, TASK_READY);
    driver_release(&d);
    free(s);
}

/* A daemon that dies between two slices: the next one goes on, after each of them. */
static void test_death_between_slices(void **state)
{
    (void)state;
    for (int survived = 0; survived < N_TASKS / SLICE; survived++) {
        struct driver d;
        struct stored *s = malloc(sizeof(*s));
        begin(&d, s);
        step(&d, s, CORE_STOP);
        for (int i = 0; i < survived; i++) {
            step(&d, s, CORE_TIMER);
        }
        assert_false(all_ended(s));
        driver_release(&d);
        struct core_live live[] = {{.task = 0}, {.task = 2}};
        live[0].attempt = s->attempts[0];
        live[1].attempt = s->attempts[2];
        driver_init(&d, 2);
        struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
        ev.added.plan = PLAN;
        ev.added.tasks = s->tasks;
        ev.added.live = live;
        ev.added.n_live = 2;
        ev.added.status = &s->status;
        ev.added.stop_text = "scripted";
        driver_step(&d, ev);
        assert_false(driver_did(&d, ACT_START));
        finish(&d, s);
        driver_release(&d);
        free(s);
    }
}

/* What is blocked is tried again a slice at a time, and what is refused is not. */
static void test_retry(void **state)
{
    (void)state;
    struct driver d;
    const char *refusal = NULL;
    struct stored *s = malloc(sizeof(*s));
    const struct program_row paused = {.paused = PAUSE_PERSON};
    store_init(s);
    for (uint32_t i = 0; i < N_TASKS - 2; i++) { /* the last cell is open: scores are sealed */
        s->tasks[i].state = i % 2 == 0 ? TASK_BLOCKED : TASK_NEVER_RUN;
        s->tasks[i].cause = i % 2 == 0 ? CAUSE_CRASH : CAUSE_DEPENDENCY;
        s->tasks[i].n_attempts = i % 2 == 0;
    }
    s->tasks[0].cause = CAUSE_LOST;
    driver_init(&d, 2);
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
    ev.added.plan = PLAN;
    ev.added.tasks = s->tasks;
    ev.added.status = &paused;
    driver_step(&d, ev);
    (void)take_rows(&d, s);
    assert_int_equal(core_n_retriable(d.core, 1, &refusal), N_CELLS - 2);
    assert_non_null(refusal);
    driver_step(&d, (struct core_event){.kind = CORE_RETRY_ALL, .program = 1});
    for (int n = 0; core_next_timer_ms(d.core) <= d.now_ms; n++) {
        assert_true(take_rows(&d, s) <= 2 * SLICE); /* each with what depends on it */
        driver_step(&d, (struct core_event){.kind = CORE_TIMER});
        assert_true(n <= N_CELLS / SLICE + 1);
    }
    (void)take_rows(&d, s);
    for (uint32_t i = 2; i < N_TASKS; i++) {
        assert_int_equal(s->tasks[i].state, i % 2 == 0 ? TASK_READY : TASK_WAITING);
    }
    assert_int_equal(s->tasks[0].state, TASK_BLOCKED);
    driver_step(&d, (struct core_event){.kind = CORE_RETRY_ALL, .program = 1});
    assert_non_null(d.out.refusal);
    driver_release(&d);
    free(s);
}

/* As many tasks as a slice has: nothing is left for a later turn, which could stop what a person
 * has asked for in between. */
static void test_one_slice(void **state)
{
    (void)state;
    struct driver d;
    const struct core_plan plan = {.n_cells = SLICE / 2 + 1, .n_stages = 2, .stages = STAGES};
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    driver_at(&d, CORE_CANCEL, 1, 0);
    driver_at(&d, CORE_CANCEL, 0, 0); /* the first cell has ended: no slice needs to reach it */
    driver_step(&d, (struct core_event){.kind = CORE_STOP, .program = 1});
    assert_true(core_next_timer_ms(d.core) > d.now_ms);
    driver_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_another_name_of_what_lives),
        cmocka_unit_test(test_death_between_slices),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_one_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
