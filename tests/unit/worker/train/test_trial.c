/* The estimate of a training's time: measured once within bounds, else assumed, with the reason. */
#include "base/files/file.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/shape.h"
#include "worker/train/trial.h"

static const struct model_config MODEL =
    SHAPE(2, 32, 2, 2, 257, 64, .ffn = 64, .tie_embeddings = true);
static const struct worker_task TASK = {.rates = "rates.json", .threads = 1};

static double estimate(const struct model_config *cfg, struct strbuf *why)
{
    const struct train_options opt = trial_options(cfg, 1, 10, PRODUCT_FLOAT32);

    return trial_seconds(&TASK, &opt, why);
}

static void test_measured_once(void **state)
{
    (void)state;
    struct strbuf why = STRBUF_INIT;

    const double first = estimate(&MODEL, &why), again = estimate(&MODEL, &why);
    if (why.len > 0)
        fail_msg("%s", why.buf);
    assert_true(first > 0.0 && first == again);
    assert_int_equal(file_kind_at("rates.json"), FILE_REGULAR);
}

/* Gigabytes are not taken to time a model. */
static void test_too_large(void **state)
{
    (void)state;
    struct model_config wide = MODEL;
    struct strbuf why = STRBUF_INIT;

    wide.width = 2048;
    wide.ffn = 32768;
    assert_true(estimate(&wide, &why) > 0.0);
    assert_non_null(strstr(why.buf, "measuring it takes"));
    assert_non_null(strstr(why.buf, "MiB"));
    assert_int_equal(file_kind_at("rates.json"), FILE_ABSENT);
    strbuf_release(&why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_measured_once),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
