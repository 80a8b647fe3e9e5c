/* What an amendment is judged by, and that it is refused when that is no longer so. */
#include <string.h>

#include "daemon/core/core.h"
#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

static const uint32_t AFTER[1] = {0};
static const struct core_plan_stage STAGES[2] = {
    {.counted = true, .threads = 1, .crashes = 3, .attempts = 9},
    {.after = AFTER,
     .n_after = 1,
     .counted = true,
     .sealed = true,
     .threads = 1,
     .crashes = 3,
     .attempts = 9},
};
static const struct core_plan PLAN = {.n_cells = 2, .n_stages = 2, .stages = STAGES};

static struct core_access access_now(const struct driver *d)
{
    struct core_access a = {0};
    assert_true(core_access_get(d->core, 1, &a));
    assert_false(core_access_get(d->core, 2, &a) && core_access_get(d->core, 99, &a));
    assert_true(core_access_get(d->core, 1, &a));
    return a;
}

static struct core_event amend_of(struct core_access access)
{
    struct core_event ev = {.kind = CORE_AMEND, .program = 1, .text = "because"};
    ev.amendment.number = 7;
    ev.amendment.head.bytes[0] = 42;
    ev.amendment.access = access;
    return ev;
}

static void expect_taken(struct driver *d, enum access_level level)
{
    struct core_access a = access_now(d);
    assert_int_equal(a.level, level);
    driver_step(d, amend_of(a));
    assert_null(d->out.refusal);
    assert_int_equal(d->out.n_rows, 1);
    const struct state_row *row = &d->out.rows[0];
    assert_int_equal(row->kind, ROW_AMENDED);
    assert_int_equal(row->amendment.number, 7);
    assert_int_equal(row->amendment.head.bytes[0], 42);
    assert_int_equal(row->amendment.level, level);
    assert_string_equal(row->detail, "because");
    for (unsigned i = 0; i < ACCESS_NR; i++) { /* judged by any other level: refused */
        a.level = (enum access_level)i;
        if (a.level != level) {
            driver_step(d, amend_of(a));
            assert_non_null(d->out.refusal);
            assert_int_equal(d->out.n_rows, 0);
        }
    }
}

static void complete(struct driver *d, uint32_t task)
{
    driver_at(d, CORE_ATTEMPT_UP, task, 1);
    driver_probed(d, task, 1, HEALTH_ALIVE);
    driver_exit(d, task, 1, 0);
    driver_checked(d, task, 1, RESULT_VALID);
    driver_at(d, CORE_LINKED, task, 1);
}

static void test_levels(void **state)
{
    (void)state;
    struct driver d;
    driver_init(&d, 1);
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
    const struct program_row paused = {.paused = PAUSE_PERSON};
    ev.added.plan = PLAN;
    ev.added.status = &paused;
    driver_step(&d, ev);
    expect_taken(&d, ACCESS_NOTHING_RUN);
    driver_at(&d, CORE_RESUME, 0, 0);
    expect_taken(&d, ACCESS_NOTHING_SCORED);
    assert_int_equal(access_now(&d).started.words[0], 1);
    complete(&d, 0); /* the sealed stage of the first cell begins at once */
    expect_taken(&d, ACCESS_SEALED);
    assert_int_equal(access_now(&d).started.words[0], 3);
    assert_int_equal(access_now(&d).n_done, 1);
    driver_exit(&d, 1, 1, 64); /* what it had scored before it ended so may lie there */
    expect_taken(&d, ACCESS_SEALED);
    complete(&d, 2);
    complete(&d, 3);
    assert_int_equal(access_now(&d).level, ACCESS_SEEN); /* all counted tasks have ended */
    driver_step(&d, amend_of(access_now(&d)));
    assert_non_null(strstr(d.out.refusal, "verdict is being computed"));
    driver_release(&d);
}

static void test_unblinded_is_seen(void **state)
{
    (void)state;
    struct driver d;
    driver_init(&d, 1);
    driver_add(&d, 1, &PLAN);
    driver_at(&d, CORE_UNBLIND, 0, 0);
    expect_taken(&d, ACCESS_SEEN);
    driver_release(&d);
}

static void test_what_has_happened_since(void **state)
{
    (void)state;
    struct driver d;
    driver_init(&d, 2);
    driver_add(&d, 1, &PLAN);
    struct core_event ev = amend_of(access_now(&d));
    complete(&d, 0);
    complete(&d, 1);
    ev.amendment.access.level = ACCESS_SEALED;
    stage_set_add(&ev.amendment.params_of, 1);
    driver_step(&d, ev); /* a task of the second stage has been started */
    assert_non_null(strstr(d.out.refusal, "started since"));
    ev.amendment.params_of = (struct stage_set){0};
    ev.amendment.by_results = true;
    driver_step(&d, ev);
    assert_non_null(strstr(d.out.refusal, "ended since"));
    ev.amendment.by_results = false;
    driver_step(&d, ev);
    assert_null(d.out.refusal);
    driver_release(&d);
}

/* Metrics, forecasts and validity are judged by which open stages had begun. */
static void test_an_open_stage_has_begun_since(void **state)
{
    (void)state;
    static const uint32_t after_open[1] = {1};
    struct core_plan_stage stages[3] = {STAGES[0], STAGES[1], STAGES[1]};
    struct core_plan plan = {.n_cells = 1, .n_stages = 3, .stages = stages};
    struct driver d;
    stages[1].sealed = false;
    stages[2].after = after_open;
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    struct core_event ev = amend_of(access_now(&d));
    assert_int_equal(access_now(&d).level, ACCESS_NOTHING_SCORED);
    complete(&d, 0);
    assert_int_equal(access_now(&d).level, ACCESS_NOTHING_SCORED);
    assert_int_equal(access_now(&d).started.words[0], 3);
    driver_step(&d, ev);
    assert_non_null(d.out.refusal);
    assert_non_null(strstr(d.out.refusal, "started since"));
    assert_int_equal(d.out.n_rows, 0);
    expect_taken(&d, ACCESS_NOTHING_SCORED);
    driver_release(&d);
}

static void amend_check(struct driver *d, struct core_apparatus check)
{
    struct core_plan plan = PLAN;
    struct core_event ev = amend_of(access_now(d));
    plan.apparatus = &check;
    plan.n_apparatus = 1;
    ev.amendment.plan = &plan;
    driver_step(d, ev);
    assert_null(d->out.refusal);
}

/* Taken away while it was ready, then declared again: it is in line once more. */
static void test_check_declared_again(void **state)
{
    (void)state;
    struct driver d;
    const struct core_apparatus away = {.name = "a", .stage = 1};
    const struct core_apparatus there = {
        .name = "a", .stage = 1, .declared = true, .changed = true};
    const struct program_row paused = {.paused = PAUSE_PERSON};
    const uint32_t check = PLAN.n_cells * PLAN.n_stages;
    bool started = false;
    driver_init(&d, 1);
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
    ev.added.plan = PLAN;
    ev.added.plan.apparatus = &there;
    ev.added.plan.n_apparatus = 1;
    ev.added.status = &paused;
    driver_step(&d, ev);
    amend_check(&d, away);
    amend_check(&d, there);
    driver_at(&d, CORE_CANCEL, check, 0);
    amend_check(&d, away);
    driver_at(&d, CORE_RETRY, check, 0); /* nobody would start it */
    assert_non_null(d.out.refusal);
    assert_non_null(strstr(d.out.refusal, "took this check away"));
    amend_check(&d, there);
    driver_at(&d, CORE_RESUME, 0, 0);
    for (size_t i = 0; i < d.out.n_acts; i++) {
        started = started || (d.out.acts[i].kind == ACT_START && d.out.acts[i].task == check);
    }
    assert_true(started);
    driver_release(&d);
}

/* A task whose check nobody knows any more (a rebuilt store has it without a name) is given to
 * another, and is told by that one's name. */
static void test_check_without_a_name(void **state)
{
    (void)state;
    struct driver d;
    const struct core_apparatus forgotten = {.name = "", .stage = 1};
    const struct core_apparatus there = {.name = "b", .stage = 1, .declared = true};
    const struct program_row paused = {.paused = PAUSE_PERSON};
    const char *why = NULL;
    driver_init(&d, 1);
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
    ev.added.plan = PLAN;
    ev.added.plan.apparatus = &forgotten;
    ev.added.plan.n_apparatus = 1;
    ev.added.status = &paused;
    driver_step(&d, ev);
    amend_check(&d, there);
    driver_at(&d, CORE_CANCEL, PLAN.n_cells * PLAN.n_stages, 0);
    for (size_t i = 0; i < d.out.n_rows; i++) {
        why = d.out.rows[i].kind == ROW_PAUSED ? d.out.rows[i].detail : why;
    }
    assert_non_null(why);
    assert_non_null(strstr(why, "apparatus.b could not be made"));
    driver_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_unblinded_is_seen),
        cmocka_unit_test(test_what_has_happened_since),
        cmocka_unit_test(test_an_open_stage_has_begun_since),
        cmocka_unit_test(test_check_declared_again),
        cmocka_unit_test(test_check_without_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
