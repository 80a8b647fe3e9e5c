/* The limit on stages is one: a program with as many is read, planned as the daemon plans it, and
 * run to its verdict by the core; one more is refused where the text is read. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/strbuf.h"
#include "daemon/program/hosted.h"
#include "prereg/load/program_load.h"
#include "prereg/program/stage_set.h"
#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

static const char HEAD[] = "[program]\nname = \"deep\"\nschema = 1\n"
                           "[[factor]]\nname = \"arm\"\nlevels = [\"a\", \"b\"]\n";

/* Every stage after the one before it, and the last one measured. */
static int parse(size_t n_stages, struct plan_program **out, struct diag *diag)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    strbuf_adds(&text, HEAD);
    for (size_t i = 0; i < n_stages; i++) {
        strbuf_addf(&text, "[stage.s%zu]\ncommand = [\"./w\"]\nparams = { arm = \"$arm\" }\n", i);
        if (i > 0) {
            strbuf_addf(&text, "after = [\"s%zu\"]\n", i - 1);
        }
    }
    strbuf_addf(
        &text,
        "[measure]\nm = { metric = \"s%zu.acc\" }\n"
        "[contrast]\narm = { between = { arm = [\"a\", \"b\"] } }\n"
        "[[input]]\nname = \"lead\"\n"
        "levels = [[\"a\", \"contrast.arm[m].mean > 0\"], [\"b\", \"otherwise\"]]\n"
        "[table]\ninputs = [\"lead\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"
        "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.5, title = \"b\" }\n",
        n_stages - 1);
    diag_init(diag, "grid.toml");
    int rc = program_parse(text.buf, text.len, "/grid.toml", out, diag, &err);
    strbuf_release(&text);
    return rc;
}

static void run_task(struct driver *d, uint32_t task, uint32_t no)
{
    driver_at(d, CORE_ATTEMPT_UP, task, no);
    driver_exit(d, task, no, 0);
    driver_checked(d, task, no, RESULT_VALID);
    driver_at(d, CORE_LINKED, task, no);
}

static uint32_t count_of(const struct driver *d, enum task_state state)
{
    struct core_counts counts;
    assert_true(core_counts_get(d->core, 1, &counts));
    return counts.by_state[state];
}

static void test_at_the_limit(void **state)
{
    (void)state;
    struct plan_program *p = NULL;
    struct diag diag;
    struct core_plan plan;
    struct driver d;
    assert_int_equal(parse(STAGES_MAX, &p, &diag), 0);
    struct hosted *h = hosted_new(1, "/nowhere", "deep-00000000");
    plan_init(&plan, p, h);
    driver_init(&d, 1);
    driver_add(&d, 1, &plan);
    assert_null(d.out.refusal);
    /* The first cell is cancelled at its first stage and revived: all others follow it both ways.
     */
    driver_at(&d, CORE_CANCEL, STAGES_MAX, 0);
    assert_int_equal(count_of(&d, TASK_NEVER_RUN), STAGES_MAX);
    driver_at(&d, CORE_RETRY, STAGES_MAX, 0);
    assert_null(d.out.refusal);
    assert_int_equal(count_of(&d, TASK_NEVER_RUN), 0);
    for (uint32_t task = 0; task < 2 * STAGES_MAX; task++) {
        assert_false(driver_did(&d, ACT_VERDICT));
        run_task(&d, task, 1);
    }
    assert_int_equal(count_of(&d, TASK_DONE), 2 * STAGES_MAX);
    assert_true(driver_did(&d, ACT_VERDICT));
    driver_release(&d);
    plan_release(&plan);
    hosted_free(h);
    program_free(p);
    diag_release(&diag);
}

static void test_over_the_limit(void **state)
{
    (void)state;
    struct plan_program *p = NULL;
    struct diag diag;
    assert_int_not_equal(parse(STAGES_MAX + 1, &p, &diag), 0);
    assert_null(p);
    assert_non_null(strstr(diag.items[0].msg, "257 entries; the limit is 256"));
    diag_release(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_at_the_limit),
                                       cmocka_unit_test(test_over_the_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
