/* When a checkpoint is due: Daly's interval, and the work of earlier attempts in it. */
#include <math.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/train/checkpoint/checkpoint_schedule.h"

static void test_interval(void **state)
{
    (void)state;
    static const struct {
        double cost, worked;
        int64_t failures;
        double want;
    } cases[] = {
        {2.0, 0.0, 0, 118.0},     /* sqrt(2 * 2 * 3600) - 2 */
        {2.0, 32400.0, 9, 118.0}, /* one failure an hour all along */
        {2.0, 0.0, 99, 20.0},     /* sqrt(2 * 2 * 36) - 2 is 10: never more than a tenth */
        {1e-6, 0.0, 0, 0.5},      {0.0, 0.0, 0, 0.5},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        assert_true(fabs(checkpoint_interval(cases[i].cost, cases[i].worked, cases[i].failures) -
                         cases[i].want) < 1e-9);
    }
    assert_true(checkpoint_interval(2.0, 1e6, 3) > checkpoint_interval(2.0, 0.0, 3));
}

/* Failures are of all attempts, so the time they are counted over is too. */
static void test_earlier_work_counts(void **state)
{
    (void)state;
    struct step_record history[] = {{3.0F, 100.0F}, {2.0F, 150.0F}, {1.0F, 4000.0F}};
    struct train_options opt = {
        .model = {.layers = 1, .width = 2, .heads = 1, .kv_heads = 1, .vocab = 3, .ffn = 1},
        .steps = 3};
    struct train_data data = {.n_sources = 0};
    struct trainer t = {.opt = &opt, .data = &data, .history = history};
    cJSON *params = json_object();
    struct worker_task task = {.attempt_no = 2, .checkpoint_seconds = -1.0, .params = params};
    struct events events = {.fd = -1};
    struct checkpoint_schedule k;

    checkpoint_schedule_init(&k, &task, &t, &events, false);
    checkpoint_schedule_begin(&k);
    assert_true(k.earlier == 0.0);
    t.step = 2; /* taken up: the third step is still to come */
    checkpoint_schedule_begin(&k);
    assert_true(k.earlier == 250.0);
    checkpoint_schedule_release(&k);
    cJSON_Delete(params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_earlier_work_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
