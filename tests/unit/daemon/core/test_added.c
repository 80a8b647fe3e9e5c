/* A program whose stored rows do not hold together is refused with the reason; the core goes on. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

#define N_TASKS 4

struct stored {
    uint32_t after[1];
    struct core_plan_stage stages[2];
    struct core_plan plan;
    struct task_row tasks[N_TASKS];
    struct core_live live[2];
    size_t n_live;
    uint32_t no;
};

static void set_sound(struct stored *s)
{
    *s = (struct stored){.no = 1, .n_live = 1};
    s->stages[0] =
        (struct core_plan_stage){.counted = true, .threads = 1, .crashes = 2, .attempts = 5};
    s->stages[1] = s->stages[0];
    s->stages[1].after = s->after;
    s->stages[1].n_after = 1;
    s->plan = (struct core_plan){.n_cells = 2, .n_stages = 2, .stages = s->stages};
    for (size_t i = 0; i < N_TASKS; i++) {
        task_row_init(&s->tasks[i], i % 2 == 0 ? TASK_READY : TASK_WAITING);
    }
    s->tasks[0].state = TASK_RUNNING;
    s->tasks[0].n_attempts = 1;
    for (size_t i = 0; i < ARRAY_LEN(s->live); i++) {
        attempt_row_init(&s->live[i].attempt);
        s->live[i].attempt.no = 1;
        s->live[i].attempt.state = ATTEMPT_RUNNING;
    }
}

static void no_number(struct stored *s)
{
    s->no = 0;
}

static void no_stage(struct stored *s)
{
    s->plan.n_stages = 0;
}

static void many_stages(struct stored *s)
{
    s->plan.n_stages = STAGES_MAX + 1;
}

static void many_cells(struct stored *s)
{
    s->plan.n_cells = UINT32_MAX / 2;
}

static void backwards(struct stored *s)
{
    s->after[0] = 1;
}

static void uncounted(struct stored *s)
{
    s->stages[0].counted = false;
}

static void unknown_state(struct stored *s)
{
    s->tasks[3].state = TASK_STATE_NR;
}

static void cause_of_a_ready_task(struct stored *s)
{
    s->tasks[2].cause = CAUSE_CRASH;
}

static void blocked_for_nothing(struct stored *s)
{
    s->tasks[2].state = TASK_BLOCKED;
}

static void attempt_of_no_task(struct stored *s)
{
    s->live[0].task = N_TASKS;
}

static void attempt_of_a_ready_task(struct stored *s)
{
    s->live[0].task = 2;
}

static void two_attempts(struct stored *s)
{
    s->n_live = 2;
}

static void no_attempt(struct stored *s)
{
    s->n_live = 0;
}

static void damaged_attempt(struct stored *s)
{
    s->live[0].attempt.reason = END_REASON_NR;
}

static void attempts_without_bound(struct stored *s)
{
    s->tasks[2].n_attempts = UINT32_MAX;
}

static void idle_without_bound(struct stored *s)
{
    s->tasks[2].idle = UINT16_MAX + 1;
}

static void other_attempt(struct stored *s)
{
    s->live[0].attempt.no = 2;
}

static void ready_too_early(struct stored *s)
{
    s->tasks[3].state = TASK_READY;
}

static const struct {
    void (*damage)(struct stored *s);
    const char *why;
} CASES[] = {
    {no_number, "0 is not the number of a program"},
    {no_stage, "it has 0 stages; expected 1 to 256"},
    {many_stages, "it has 257 stages; expected 1 to 256"},
    {many_cells, "more tasks than can be numbered"},
    {backwards, "the order of stages is wrong"},
    {uncounted, "stage 1 is counted, and stage 0 that it needs is not"},
    {unknown_state, "the row of task 3 is damaged"},
    {cause_of_a_ready_task, "the row of task 2 is damaged"},
    {blocked_for_nothing, "the row of task 2 is damaged"},
    {attempt_of_no_task, "task 4 has an attempt too many, or is none of its 4 tasks"},
    {attempt_of_a_ready_task, "task 2 is not at work, and an attempt of it has no end"},
    {two_attempts, "task 0 has an attempt too many"},
    {no_attempt, "1 tasks are at work, and 0 attempts have no end"},
    {damaged_attempt, "the attempt of task 0 is damaged"},
    {attempts_without_bound, "the row of task 2 is damaged: its counts"},
    {idle_without_bound, "the row of task 2 is damaged: its counts"},
    {other_attempt, "task 0 has had 1 attempts, and attempt 2 of it has no end"},
    {ready_too_early, "task 3 is ready, and task 2 that it needs is ready"},
};

static void add(struct driver *d, struct stored *s)
{
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = s->no};
    ev.added.plan = s->plan;
    ev.added.tasks = s->tasks;
    ev.added.live = s->live;
    ev.added.n_live = s->n_live;
    driver_step(d, ev);
}

static void test_damaged(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].why);
        struct driver d;
        struct stored s;
        struct core_counts counts;
        driver_init(&d, 2);
        set_sound(&s);
        CASES[i].damage(&s);
        add(&d, &s);
        if (d.out.refusal == NULL || strstr(d.out.refusal, CASES[i].why) == NULL) {
            fail_msg("case %zu: expected \"%s\", found \"%s\"", i, CASES[i].why,
                     d.out.refusal == NULL ? "no refusal" : d.out.refusal);
        }
        assert_int_equal(d.out.n_rows + d.out.n_acts, 0);
        assert_false(core_counts_get(d.core, s.no, &counts));
        set_sound(&s); /* the next one is taken */
        add(&d, &s);
        assert_null(d.out.refusal);
        assert_true(core_counts_get(d.core, s.no, &counts));
        driver_release(&d);
    }
}

/* Nothing else would ever move what waits for a task that has ended. */
static void test_waits_for_nothing(void **state)
{
    static const struct {
        enum task_state before;
        enum cause cause;
        enum task_state after;
        enum row_kind row;
    } cases[] = {{TASK_DONE, CAUSE_NONE, TASK_READY, ROW_TASK_READY},
                 {TASK_BLOCKED, CAUSE_CRASH, TASK_NEVER_RUN, ROW_TASK_ENDED}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        struct driver d;
        struct stored s;
        driver_init(&d, 2);
        set_sound(&s);
        s.tasks[2].state = cases[i].before;
        s.tasks[2].cause = cases[i].cause;
        s.tasks[2].linked = true;
        s.tasks[2].n_attempts = 1;
        add(&d, &s);
        assert_null(d.out.refusal);
        assert_true(d.out.n_rows >= 1);
        assert_int_equal(d.out.rows[0].kind, cases[i].row);
        assert_int_equal(d.out.rows[0].task, 3);
        assert_int_equal(d.out.rows[0].after.state, cases[i].after);
        driver_release(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_waits_for_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
