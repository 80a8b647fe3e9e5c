/* The second runs of apparatus checks in a receipt: how each ended by the journal, and what the
 * provenance says of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define CHECK                                                                                      \
    "[apparatus.r]\nstage = \"score\"\nmodel = \"m\"\n"                                            \
    "expect = { metric = \"score.acc\", value = 0.5, within = 0.01 }\n"

#define DONE           "{\"state\":\"done\",\"cause\":null}"
#define ENDED(how, by) "{\"state\":\"" how "\",\"cause\":\"" by "\"}"
#define BOTH(a, b)     "{\"r\":" a ",\"r@end\":" b "}"

#define FIRST(end)                                                                                 \
    "{\"name\":\"r\",\"end\":\"" end "\",\"cause\":null,\"value\":0.5,\"results\":[]}"
#define SECOND(end, cause, results)                                                                \
    "{\"name\":\"r@end\",\"end\":\"" end "\",\"cause\":" cause ",\"value\":0.5,\"first\":0.5,"     \
    "\"results\":[" results "]}"
#define SAID(a, b)  "{\"apparatus\":[" a "," b "]}"
#define EQUAL       "{\"first\":0.5}"
#define DONE_TWICE  SAID(FIRST("done"), SECOND("done", "null", EQUAL))
#define NOT_RUN     SAID(FIRST("done"), SECOND("never_run", "\"dependency\"", ""))
#define GIVEN_UP    SAID(FIRST("done"), SECOND("blocked", "\"stopped\"", ""))
#define OTHER_SCORE SAID(FIRST("done"), SECOND("blocked", "\"apparatus\"", EQUAL))

static const struct {
    const char *journal;    /* the checks, as it left them */
    const char *provenance; /* what it says of them */
    bool scored;            /* a held stage has a result */
    const char *says;       /* of the fault; NULL: it follows */
    size_t n_told;          /* sentences that both scores are known from */
} CASES[] = {
    {BOTH(DONE, DONE), DONE_TWICE, true, NULL, 1},
    /* a version that made no second run */
    {"{\"r\":" DONE "}", "{\"apparatus\":[" FIRST("done") "]}", true, NULL, 0},
    /* known to one of the two, it must have ended */
    {"{\"r\":" DONE "}", DONE_TWICE, true, "a verdict while apparatus/r@end has not ended", 0},
    {BOTH(DONE, "{\"state\":\"running\",\"cause\":null}"), "{\"apparatus\":[" FIRST("done") "]}",
     true, "a verdict while apparatus/r@end has not ended", 0},
    /* left out: only where there is nothing to guard, or no first score to compare with */
    {BOTH(DONE, ENDED("never_run", "dependency")), NOT_RUN, true,
     "apparatus/r@end was not run, and the first run held and scores rest on it", 0},
    {BOTH(DONE, ENDED("never_run", "dependency")), NOT_RUN, false, NULL, 0},
    {BOTH(ENDED("blocked", "apparatus"), ENDED("never_run", "dependency")),
     SAID("{\"name\":\"r\",\"end\":\"blocked\",\"cause\":\"apparatus\",\"results\":[]}",
          SECOND("never_run", "\"dependency\"", "")),
     true, NULL, 0},
    /* given up, or another score: the verdict says what follows */
    {BOTH(DONE, ENDED("blocked", "stopped")), GIVEN_UP, true, NULL, 0},
    {BOTH(DONE, ENDED("blocked", "apparatus")), OTHER_SCORE, true, NULL, 0},
    /* provenance.json says another end than the journal, of either run */
    {BOTH(DONE, ENDED("blocked", "stopped")), DONE_TWICE, true, "end", 0},
    {BOTH(DONE, ENDED("blocked", "apparatus")), GIVEN_UP, true, "cause", 0},
    {BOTH(DONE, DONE), SAID(FIRST("blocked"), SECOND("done", "null", EQUAL)), true, "end", 0},
    /* another first score, or none, in a result of the second run */
    {BOTH(DONE, DONE),
     SAID(FIRST("done"), SECOND("done", "null", EQUAL ",{\"first\":0.5000000000000001}")), true,
     "\"first\" is not what the first run scored", 0},
    {BOTH(DONE, DONE), SAID(FIRST("done"), SECOND("done", "null", "{}")), true,
     "\"first\" is not what the first run scored", 0},
};

static struct plan_program *plan(void)
{
    char *text = xasprintf("%s" CHECK, SMALL_PROGRAM);
    struct plan_program *p = program_of(text, NULL);
    free(text);
    return p;
}

static void test_second_runs(void **state)
{
    (void)state;
    struct plan_program *p = plan();
    struct history_task *tasks = xcalloc(program_n_tasks(p), sizeof(*tasks));
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%zu", i);
        struct err err = {0};
        struct verifying v = {.program = p, .err = &err};
        v.history = (struct history){
            .tasks = tasks, .n_tasks = program_n_tasks(p), .checks = cJSON_Parse(CASES[i].journal)};
        v.provenance = cJSON_Parse(CASES[i].provenance);
        v.established = json_array();
        assert_true(v.history.checks != NULL && v.provenance != NULL);
        tasks[0].state = TASK_DONE; /* a training is no score */
        tasks[1].state = CASES[i].scored ? TASK_DONE : TASK_BLOCKED;
        assert_int_equal(verify_again(&v), CASES[i].says == NULL ? 0 : ERR_LOCK);
        if (CASES[i].says != NULL && strstr(err.msg, CASES[i].says) == NULL) {
            fail_msg("found \"%s\"", err.msg);
        }
        assert_int_equal(cJSON_GetArraySize(v.established), CASES[i].n_told);
        cJSON_Delete(v.history.checks);
        cJSON_Delete(v.provenance);
        cJSON_Delete(v.established);
    }
    free(tasks);
    program_free(p);
}

/* What the daemon holds to be within a tolerance, of decimals that are not exact, a receipt bears
 * out; what is clearly beyond it is not. */
static void test_tolerances(void **state)
{
    (void)state;
    static const struct {
        double value, first;
        bool holds, borne_out;
    } cases[] = {
        {0.655, (double)NAN, true, true},   {0.6551, (double)NAN, true, false},
        {0.6551, (double)NAN, false, true}, {0.65, 0.65, true, true},
        {0.65, 0.65, false, false},         {0.65, 0.652, true, true},
        {0.65, 0.6521, true, false},        {0.65, 0.6521, false, true},
        {(double)NAN, 0.65, true, false},   {(double)NAN, 0.65, false, true},
    };
    const struct plan_apparatus a = {.value = 0.65, .within = 0.005, .again = 0.002};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        assert_int_equal(verify_bears_out(&a, cases[i].value, cases[i].first, cases[i].holds),
                         cases[i].borne_out);
    }
    /* without a tolerance the two are one number, to the last bit */
    const struct plan_apparatus exact = {.value = 0.65, .within = 0.005};
    assert_true(verify_bears_out(&exact, 0.65, 0.65, true));
    assert_false(verify_bears_out(&exact, 0.65, 0.6500000000000001, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_runs),
        cmocka_unit_test(test_tolerances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
