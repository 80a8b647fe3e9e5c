/* The table of answers has a function for every method; a request about a program that is not
 * loaded is answered with the reason; what a status counts as excluded, and as left. Linked with
 * run_record_follow() wrapped: there is no store, so what [run] was is not known. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "prereg/load/program_load.h"
#include "state/store/run_history.h"
#include "tests/unit/check.h"

static void test_every_method_has_an_answer(void **state)
{
    (void)state;
    for (int m = 0; m < RPC_METHOD_NR; m++) {
        CHECK_ROW("%s", rpc_method_name((enum rpc_method)m));
        assert_true(answer_to((enum rpc_method)m) != NULL);
    }
}

/* With a name and without one: "no program has been submitted" would be wrong. */
static void test_a_program_that_is_not_loaded_is_named(void **state)
{
    (void)state;
    struct unloaded one = {.id = xstrdup("p-12345678"), .name = xstrdup("p")};
    struct shell sh = {.unloaded = &one, .n_unloaded = 1};
    static const char *const params[] = {"{}", "{\"program\":\"p\"}",
                                         "{\"program\":\"p-12345678\"}"};
    (void)err_set(&one.why, ERR_CORRUPT, "its lock is missing");
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        CHECK_ROW("%s", params[i]);
        struct hosted *h = NULL;
        struct err err;
        cJSON *p = cJSON_Parse(params[i]);
        assert_int_equal(answer_find_program(&sh, p, &h, &err), ERR_CORRUPT);
        assert_string_equal(err.msg, "p-12345678 is not loaded: its lock is missing");
        cJSON_Delete(p);
    }
    free(one.id);
    free(one.name);
}

/* Two arms, trained and then scored. */
#define TWO_ARMS                                                                                   \
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"                                      \
    "[[factor]]\nname = \"way\"\nlevels = [\"x\", \"y\"]\n"                                        \
    "[stage.train]\ncommand = [\"w\"]\n[stage.score]\ncommand = [\"w\"]\nafter = [\"train\"]\n"    \
    "[measure]\nacc = { metric = \"score.acc\", counted = true }\n"                                \
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"measure.acc[way=x] > 0.5\"], [\"b\", "           \
    "\"otherwise\"]]\n"                                                                            \
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"                         \
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n"          \
    "[exclusion]\nbudget = 0.5\n"
#define TWO_NAMES TWO_ARMS "[[same_work]]\nacross = \"way\"\n" /* of one work */

int __wrap_run_record_follow(struct store *store, uint32_t program, const struct plan_program *p,
                             const struct run_bounds *bounds, struct run_record **r,
                             struct err *err);

int __wrap_run_record_follow(struct store *store, uint32_t program, const struct plan_program *p,
                             const struct run_bounds *bounds, struct run_record **r,
                             struct err *err)
{
    (void)store;
    (void)program;
    (void)p;
    (void)bounds;
    (void)r;
    return err_set(err, ERR_IO, "there is no store");
}

static void open_program(struct bundle *bundle, const char *text)
{
    struct diag diag;
    struct err err;
    diag_init(&diag, "grid.toml");
    if (program_parse(text, strlen(text), "grid.toml", &bundle->program, &diag, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    diag_release(&diag);
}

/* A second for each training and for each score, of which there is one. */
static void test_another_name_takes_no_time(void **state)
{
    (void)state;
    struct bundle bundle = {0};
    open_program(&bundle, TWO_NAMES);
    struct task_row rows[4] = {{.state = TASK_READY},
                               {.state = TASK_WAITING},
                               {.state = TASK_WAITING},
                               {.state = TASK_WAITING}};
    struct stage_times times[2] = {{1, 1000}, {1, 1000}};
    const struct hosted h = {
        .bundle = &bundle, .plan = &bundle, .tasks = rows, .n_tasks = 4, .times = times};
    struct lock lock = {0};
    const struct shell sh = {.config = {.cores = 1}};
    bundle.lock = &lock;
    assert_float_equal(summary_eta_ms(&sh, &h), 2000, 0);
    program_free(bundle.program);
}

/* Before a task has ended or said how far it is: each arm as its own worker forecast. */
static void test_each_arm_takes_its_own_time(void **state)
{
    (void)state;
    struct bundle bundle = {0};
    open_program(&bundle, TWO_ARMS);
    struct task_row rows[4] = {{.state = TASK_READY},
                               {.state = TASK_WAITING},
                               {.state = TASK_READY},
                               {.state = TASK_WAITING}};
    struct stage_times times[2] = {0};
    const struct hosted h = {
        .bundle = &bundle, .plan = &bundle, .tasks = rows, .n_tasks = 4, .times = times};
    cJSON *describe =
        cJSON_Parse("{\"way=x\":{\"train\":{\"seconds\":1},\"score\":{\"seconds\":2}},"
                    "\"way=y\":{\"train\":{\"seconds\":4},\"score\":{\"seconds\":8}}}");
    struct lock lock = {.describe = describe};
    const struct shell sh = {.config = {.cores = 1}};
    bundle.lock = &lock;
    assert_float_equal(summary_eta_ms(&sh, &h), 15000, 0);
    times[0] = (struct stage_times){2, 2000}; /* a training takes a second */
    assert_float_equal(summary_eta_ms(&sh, &h), 12000, 0);
    cJSON_Delete(describe);
    program_free(bundle.program);
}

/* The training of x is lost by chance, and with it all that the two names needed of it. */
static void test_a_lost_work_is_excluded_under_all_names(void **state)
{
    (void)state;
    static const struct {
        enum cause cause;
        int excluded;
    } cases[] = {{CAUSE_CRASH, 2}, {CAUSE_USER_ERROR, 0}};
    struct bundle bundle = {0};
    open_program(&bundle, TWO_NAMES);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        struct task_row rows[4] = {{.state = TASK_BLOCKED, .cause = cases[i].cause},
                                   {.state = TASK_NEVER_RUN, .cause = CAUSE_DEPENDENCY},
                                   {.state = TASK_NEVER_RUN, .cause = CAUSE_DEPENDENCY},
                                   {.state = TASK_NEVER_RUN, .cause = CAUSE_DEPENDENCY}};
        struct hosted h = {.bundle = &bundle, .plan = &bundle, .tasks = rows, .n_tasks = 4};
        struct hosted *programs[1] = {&h};
        struct shell sh = {.programs = programs, .cap_programs = 1};
        cJSON *counted = counted_json(&sh, &h);
        assert_int_equal(json_member(counted, "planned")->valueint, 2);
        assert_int_equal(json_member(counted, "excluded")->valueint, cases[i].excluded);
        cJSON_Delete(counted);
    }
    program_free(bundle.program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_method_has_an_answer),
        cmocka_unit_test(test_a_program_that_is_not_loaded_is_named),
        cmocka_unit_test(test_a_lost_work_is_excluded_under_all_names),
        cmocka_unit_test(test_another_name_takes_no_time),
        cmocka_unit_test(test_each_arm_takes_its_own_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
