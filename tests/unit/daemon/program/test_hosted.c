/* Why a program is paused: each pause has its own reason. And what is learnt for estimates. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "daemon/program/hosted.h"
#include "daemon/shell/attempts.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

struct change {
    enum row_kind kind;
    unsigned paused;
    const char *detail;
    const char *by;
    const char *why;
};

static void same(const char *found, const char *wanted)
{
    assert_string_equal(found == NULL ? "(none)" : found, wanted == NULL ? "(none)" : wanted);
}

static void apply(struct hosted *h, const struct change *c)
{
    struct state_row row = {.kind = c->kind, .detail = c->detail};
    row.status.paused = c->paused;
    hosted_apply(h, &row);
    same(hosted_paused_by(h), c->by);
    same(hosted_paused_why(h), c->why);
}

/* As much of a bundle as a verdict's row looks at. */
static struct bundle *bundle_of_head(const char *head)
{
    struct bundle *b = xcalloc(1, sizeof(*b));
    b->refs = 1;
    b->lock = xcalloc(1, sizeof(*b->lock));
    memcpy(b->lock->head, head, strlen(head) + 1);
    return b;
}

static void test_reasons(void **state)
{
    (void)state;
    static const struct change CHANGES[] = {
        {ROW_PAUSED, PAUSE_DATA, "corpus", "data", "corpus"},
        {ROW_PAUSED, PAUSE_DATA | PAUSE_PERSON, NULL, "user", NULL},
        {ROW_PAUSED, PAUSE_DATA | PAUSE_PERSON | PAUSE_DISK, "full", "no_space", "full"},
        {ROW_RESUMED, PAUSE_DATA | PAUSE_PERSON, "room", "user", NULL},
        {ROW_RESUMED, PAUSE_DATA, NULL, "data", "corpus"},
        {ROW_PAUSED, PAUSE_DATA | PAUSE_HOST, "no shim", "host", "no shim"},
        {ROW_PAUSED, PAUSE_DATA | PAUSE_LOCK, "prior", "lock", "prior"},
        {ROW_PAUSED, PAUSE_DATA | PAUSE_LOCK | PAUSE_STOPPING, "all", "cancel", "all"},
        {ROW_RESUMED, 0, NULL, NULL, NULL},
        {ROW_PAUSED, PAUSE_DATA, "other", "data", "other"},
        {ROW_RESUMED, 0, NULL, NULL, NULL},
        {ROW_PAUSED, PAUSE_FAILURES | PAUSE_DISK, "no torch", "failures", "no torch"},
        {ROW_RESUMED, 0, NULL, NULL, NULL},
        {ROW_VERDICT_REFUSED, 0, "floor", NULL, "floor"},
        {ROW_VERDICT, 0, NULL, NULL, NULL},
    };
    struct hosted *h = hosted_new(1, "/nowhere", "little-00000000");
    h->bundle = bundle_of_head("5a");
    for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
        apply(h, &CHANGES[i]);
    }
    hosted_set_paused_why(h, PAUSE_DATA, "of no pause");
    same(hosted_paused_why(h), NULL);
    assert_string_equal(h->verdict_head, "5a");
    hosted_free(h);
}

/* A machine that could not start attempts is tried ever more rarely, until one runs; when it fails
 * the next time that begins anew. */
static void test_host_is_well_again(void **state)
{
    (void)state;
    struct task_row task;
    struct state_row row = {.kind = ROW_ATTEMPT_STARTED, .from = TASK_READY};
    struct hosted *h = hosted_new(1, "/nowhere", "little-00000000");
    task_row_init(&task, TASK_READY);
    h->tasks = &task;
    h->n_tasks = 1;
    h->by_state[TASK_READY] = 1;
    h->host_wait_ms = 3600000;
    task_row_init(&row.after, TASK_STARTING);
    hosted_apply(h, &row);
    assert_int_equal(h->host_wait_ms, 3600000);
    row.kind = ROW_ATTEMPT_RUNNING;
    row.from = TASK_STARTING;
    row.after.state = TASK_RUNNING;
    hosted_apply(h, &row);
    assert_int_equal(h->host_wait_ms, 0);
    h->tasks = NULL;
    hosted_free(h);
}

/* Item 31: a clock that jumps by a day between an attempt's start and its end (or the other way)
 * teaches nothing about how long a task takes. */
static void test_times_of_tasks(void **state)
{
    (void)state;
    static const struct {
        int64_t wall_ms;
        int64_t ran_ms;
        enum cause cause;
        bool counts;
    } ENDS[] = {{2100, 2000, CAUSE_NONE, true},      {86402000, 2000, CAUSE_NONE, true},
                {-86398000, 2000, CAUSE_NONE, true}, {0, 2000, CAUSE_NONE, true},
                {86402000, -1, CAUSE_NONE, false}, /* of an older journal */
                {2100, 9000, CAUSE_CRASH, false}};
    struct plan_program program = {.n_cells = 10, .n_stages = 1};
    struct bundle bundle = {.refs = 2, .program = &program};
    struct stage_times times = {0};
    struct hosted *h = hosted_new(1, "/nowhere", "little-00000000");
    h->plan = h->bundle = &bundle;
    h->times = &times;
    h->n_tasks = 10;
    int64_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        struct attempt_row a;
        attempt_row_init(&a);
        a.state = ATTEMPT_ENDED;
        a.cause = ENDS[i].cause;
        a.started.ms = 1763694202000;
        a.ended.ms = a.started.ms + ENDS[i].wall_ms;
        a.ran_ms = ENDS[i].ran_ms;
        hosted_note_time(h, (uint32_t)i, &a);
        n += ENDS[i].counts;
    }
    assert_int_equal(times.n, n);
    assert_true(times.sum_ms == 2000.0 * (double)n);
    h->plan = h->bundle = NULL;
    h->times = NULL;
    hosted_free(h);
}

/* A new folder's name is short enough for the link of its result to take no block of an ext4; a
 * folder of an older version is found by its own name. */
static void test_attempt_folder(void **state)
{
    (void)state;
    static char id[] = "0d3b7a52-4a5f-4e0e-9a51-6c2f5f0e8a11";
    struct plan_cell cell = {.folder = "arm=a"};
    struct plan_stage stage = {.name = "t"};
    struct plan_program program = {.cells = &cell, .n_cells = 1, .stages = &stage, .n_stages = 1};
    struct bundle bundle = {.refs = 1, .program = &program};
    struct err err;
    char *dir = scratch_make();
    struct hosted *h = hosted_new(1, dir, "little-00000000");
    h->plan = &bundle;
    h->n_tasks = 1;
    char *task = hosted_task_folder(h, 0);
    char *made = hosted_attempt_folder(h, 0, 99, id);
    char *target = path_join(path_name(made), "result.json");
    same(path_name(made), "attempt-99-0d3b7a52-4a5f-4e0e-9a51-6c2f5f0e8a11");
    assert_int_equal(strlen(target), 59);
    char *old = xasprintf("%s/attempt-0099-%s", task, id);
    assert_int_equal(dir_make(old, 0700, &err), 0);
    char *found = hosted_attempt_folder(h, 0, 99, id);
    same(found, old);
    assert_int_equal(dir_make(made, 0700, &err), 0);
    free(found);
    found = hosted_attempt_folder(h, 0, 99, id);
    same(found, made);
    char *const all[] = {found, old, target, made, task};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        free(all[i]);
    }
    h->plan = NULL;
    hosted_free(h);
    scratch_remove(dir);
}

/* The same of one that runs: what it did since it was first seen, and by the monotonic clock. */
static void test_pace(void **state)
{
    (void)state;
    struct shell_attempt a = {.since_ms = clock_mono().ms - 10000};
    struct attempt_row row;
    attempt_row_init(&row);
    row.started.ms = clock_wall().ms - INT64_C(86400000);
    row.total = 1000;
    attempt_mirror(&a, &row);
    a.row.done = -1;
    assert_true(attempt_pace_ms(&a) != attempt_pace_ms(&a)); /* nothing is known */
    row.done = 100;
    attempt_mirror(&a, &row);
    assert_true(attempt_pace_ms(&a) >= 100 && attempt_pace_ms(&a) < 86400000 / 100);
    /* One that goes on at a checkpoint did not do in ten seconds what others did before it. */
    struct shell_attempt later = {.since_ms = clock_mono().ms - 10000};
    attempt_row_init(&later.row);
    row.resumed_from = 900;
    row.done = 900;
    attempt_mirror(&later, &row);
    assert_true(attempt_pace_ms(&later) != attempt_pace_ms(&later));
    later.since_ms = clock_mono().ms - 5000;
    row.done = 905;
    attempt_mirror(&later, &row);
    assert_true(attempt_pace_ms(&later) >= 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons), cmocka_unit_test(test_host_is_well_again),
        cmocka_unit_test(test_times_of_tasks), cmocka_unit_test(test_attempt_folder),
        cmocka_unit_test(test_pace)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
