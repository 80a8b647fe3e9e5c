/* The estimate of a training's time: measured once within bounds, else assumed, with the reason. */
#include <math.h>

#include "base/files/file.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/shape.h"
#include "worker/model/weights.h"
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

/* Weights of a trial are normal numbers, too, and the first row does not come again. */
static void test_weights_repeat(void **state)
{
    (void)state;
    struct model_config cfg = MODEL;
    struct weights w;
    struct err err;
    double sum = 0.0, squares = 0.0;

    cfg.vocab = 5000; /* more numbers than are drawn */
    assert_int_equal(weights_init(&w, &cfg, &err), 0);
    weights_repeat(&w, 0.02);
    const size_t c = (size_t)cfg.width, n = (size_t)cfg.vocab * c;
    const real *embed = weights_at(&w, TENSOR_EMBED, -1);
    for (size_t i = 0; i < n; i++) {
        sum += (double)embed[i];
        squares += (double)embed[i] * (double)embed[i];
    }
    assert_true(fabs(sum / (double)n) < 0.0005 && fabs(sqrt(squares / (double)n) - 0.02) < 0.0005);
    for (size_t row = 1; row < (size_t)cfg.vocab; row++)
        assert_memory_not_equal(embed + row * c, embed, c * sizeof(real));
    assert_true(weights_at(&w, TENSOR_NORM_FFN, 1)[0] == 1);
    const real *o = weights_at(&w, TENSOR_O, 1), *q = weights_at(&w, TENSOR_Q, 1);
    assert_true(fabs((double)o[0]) > 0.0 && fabs((double)o[0]) < 0.06 && o[0] != q[0]);
    weights_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_measured_once),
        cmocka_unit_test(test_weights_repeat),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
