/* What a shim does about the GPUs of its job where the node cannot say: no helper is beside this
 * test. tests/e2e/test_slurm.py has nodes that can. */
#include "daemon/shim/job_gpus.h"

#include <string.h>

#include "tests/unit/check.h"

static void test_not_asked(void **state)
{
    struct shim_spec spec = {.pin_gpu = "NVIDIA H100"};
    struct strbuf notes = STRBUF_INIT;
    struct err err;
    (void)state;
    assert_int_equal(job_gpus_find(&spec, &notes, &err), 0);
    assert_int_equal(notes.len, 0);
}

/* Unknown GPUs stay out of start.json, and are no reason not to run. */
static void test_unknown(void **state)
{
    struct shim_spec spec = {.asks_gpus = true};
    struct strbuf notes = STRBUF_INIT;
    struct err err;
    (void)state;
    assert_int_equal(job_gpus_find(&spec, &notes, &err), 0);
    assert_non_null(strstr(notes.buf, "which GPUs the job has is unknown: "));
    assert_int_equal(spec.gpus.n, 0);
    strbuf_release(&notes);
}

/* But for a locked model they are. */
static void test_pinned(void **state)
{
    struct shim_spec spec = {.asks_gpus = true, .pin_gpu = "NVIDIA H100"};
    struct strbuf notes = STRBUF_INIT;
    struct err err;
    (void)state;
    assert_int_equal(job_gpus_find(&spec, &notes, &err), ERR_REFUSED);
    assert_non_null(strstr(err.msg, "[pin] gpu: which GPUs the job has is unknown: "));
    assert_string_equal(notes.buf, "GPUs that cannot be listed");
    strbuf_release(&notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_asked),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
