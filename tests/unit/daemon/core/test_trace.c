/*
 * Whole scenarios as text: what the core answered to every event, against
 * tests/unit/daemon/core/traces/. After a change that is meant, PREREGD_UPDATE=1 writes the traces
 * anew; read the difference before keeping it.
 */
#include <stdlib.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

static const uint32_t AFTER_FIRST[] = {0};

/* Two cells; training, then a counted evaluation. */
static const struct core_plan_stage STAGES[] = {
    {.counted = true, .threads = 1, .crashes = 3, .attempts = 50},
    {.after = AFTER_FIRST,
     .n_after = 1,
     .counted = true,
     .sealed = true,
     .threads = 1,
     .crashes = 3,
     .attempts = 50},
};
static const struct core_plan PLAN = {.n_cells = 2, .n_stages = 2, .stages = STAGES};

static void compare(const struct driver *d, const char *name)
{
    struct strbuf want = STRBUF_INIT;
    struct err err = {0};
    char *path = xasprintf("%s/tests/unit/daemon/core/traces/%s.txt", TEST_SOURCE_DIR, name);
    if (getenv("PREREGD_UPDATE") != NULL) {
        assert_int_equal(file_write_atomic(path, d->trace.buf, d->trace.len, 0644, &err), 0);
    }
    assert_int_equal(file_read(path, 1 << 20, &want, &err), 0);
    assert_string_equal(d->trace.buf, want.buf);
    strbuf_release(&want);
    free(path);
}

static void do_task(struct driver *d, uint32_t task, uint32_t no)
{
    driver_at(d, CORE_ATTEMPT_UP, task, no);
    d->now_ms += 1000;
    driver_exit(d, task, no, 0);
    driver_checked(d, task, no, RESULT_VALID);
    driver_at(d, CORE_LINKED, task, no);
}

/* Nothing goes wrong: cells finish one after the other, then the seal, the verdict, the report. */
static void test_smooth(void **state)
{
    (void)state;
    struct driver d;
    driver_init(&d, 1);
    driver_add(&d, 1, &PLAN);
    for (uint32_t task = 0; task < 4; task++) {
        do_task(&d, task, 1);
    }
    struct core_event verdict = {.kind = CORE_VERDICT_COMPUTED, .program = 1};
    driver_step(&d, verdict);
    driver_step(&d, verdict); /* said twice: nothing comes of it */
    driver_step(&d, (struct core_event){.kind = CORE_REPORTED, .program = 1});
    compare(&d, "smooth");
    driver_release(&d);
}

/* A crash with progress, a hang found by its deadline, a probe that cannot tell, and a block with
 * its dependant. */
static void test_trouble(void **state)
{
    (void)state;
    struct driver d;
    driver_init(&d, 2);
    driver_add(&d, 1, &PLAN);
    driver_at(&d, CORE_ATTEMPT_UP, 0, 1);
    driver_at(&d, CORE_ATTEMPT_UP, 2, 1);
    d.now_ms += 500;
    driver_said(&d, 0, 1, 0, 10);
    driver_said(&d, 0, 1, 0, 10); /* the same bytes again */
    driver_end(&d, 0, 1, END_SIGNALLED);
    d.now_ms += 1000;
    driver_step(&d, (struct core_event){.kind = CORE_TIMER});
    driver_at(&d, CORE_ATTEMPT_UP, 0, 2);
    d.now_ms += 1800000; /* nothing was heard of task 2 */
    driver_step(&d, (struct core_event){.kind = CORE_TIMER});
    driver_probed(&d, 2, 1, HEALTH_UNKNOWN);
    d.now_ms += 5000;
    driver_step(&d, (struct core_event){.kind = CORE_TIMER});
    driver_probed(&d, 2, 1, HEALTH_ALIVE);
    d.now_ms += 30000;
    driver_step(&d, (struct core_event){.kind = CORE_TIMER});
    driver_probed(&d, 2, 1, HEALTH_ALIVE);
    driver_end(&d, 2, 1, END_SIGNALLED);
    driver_end(&d, 2, 1, END_SIGNALLED); /* said twice */
    driver_exit(&d, 0, 1, 0);            /* of an attempt that is no longer the current one */
    driver_exit(&d, 0, 2, 69);
    compare(&d, "trouble");
    driver_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smooth),
        cmocka_unit_test(test_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
