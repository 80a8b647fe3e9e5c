/* The same three training steps under every instruction set: the kernels of worker/nn give the same
 * bits, and OpenBLAS's products stay within a bound of them. */
#include <math.h>
#include <stdlib.h>

#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/nn/cpu.h"

/* Relative, of the losses, and of all gradients and updated parameters as a whole. The worst seen
 * was 1e-7. docs/models.md states them. */
#define LOSS_BOUND  1e-6
#define WHOLE_BOUND 1e-5
#define N_LOSSES    3

static struct strbuf run_program(const char *program, const char *model, const char *cpu,
                                 const char *core)
{
    char *cpu_text = xasprintf("PREREG_CPU=%s", cpu);
    char *core_text = xasprintf("OPENBLAS_CORETYPE=%s", core);
    const char *argv[] = {program, model, NULL};
    const char *env[] = {cpu_text, core_text, "OPENBLAS_NUM_THREADS=1", NULL};
    struct proc_spec spec = {
        .argv = argv, .env = env, .timeout_ms = 30000, .max_out_bytes = 1 << 24};
    struct proc_result result;
    struct err err = {0};
    struct strbuf out = STRBUF_INIT;

    if (proc_run(&spec, &result, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(result.code, 0);
    strbuf_add(&out, result.out.buf, result.out.len);
    proc_result_release(&result);
    free(cpu_text);
    free(core_text);
    return out;
}

static struct strbuf run_reference(const char *model, const char *cpu, const char *core)
{
    return run_program(REFERENCE, model, cpu, core);
}

static const char *const MODELS[] = {"dense", "mixture"};

static void test_kernels_give_the_same_bits(void **state)
{
    (void)state;

    if (nn_cpu() == NN_CPU_BASELINE) {
        print_message("  skipped: this processor has the baseline only\n");
        skip();
    }
    for (size_t i = 0; i < ARRAY_LEN(MODELS); i++) {
        CHECK_ROW("%s", MODELS[i]);
        struct strbuf want = run_reference(MODELS[i], "baseline", "Prescott");
        for (enum nn_cpu cpu = NN_CPU_AVX2; cpu <= nn_cpu(); cpu++) {
            struct strbuf got = run_reference(MODELS[i], nn_cpu_text(cpu), "Prescott");
            print_message("  %s: %s against baseline\n", MODELS[i], nn_cpu_text(cpu));
            assert_string_equal(got.buf, want.buf);
            strbuf_release(&got);
        }
        strbuf_release(&want);
    }
}

static void compare(const char *what, const char *a, const char *b)
{
    double apart = 0.0, norm = 0.0;

    for (int i = 0; *a != '\0' && *b != '\0'; i++) {
        char *end = NULL;
        double x = strtod(a, &end);
        a = end + strspn(end, "\n");
        double y = strtod(b, &end);
        b = end + strspn(end, "\n");
        if (i < N_LOSSES && !(fabs(x - y) <= LOSS_BOUND * fabs(y)))
            fail_msg("%s: loss %d: %.9g and %.9g", what, i, x, y);
        apart += (x - y) * (x - y);
        norm += y * y;
    }
    assert_true(*a == '\0' && *b == '\0' && norm > 0.0);
    print_message("  %s: relative difference %.2e\n", what, sqrt(apart / norm));
    assert_true(sqrt(apart / norm) < WHOLE_BOUND);
}

/* Training with the fixed products has the same bits whatever core OpenBLAS takes itself for, and
 * OpenBLAS's own products stay within a bound of them. */
static void test_blas_is_only_a_reference(void **state)
{
    (void)state;
    static const char *const CORES[] = {"Prescott", "Haswell", "SkylakeX"};

    for (size_t i = 0; i < ARRAY_LEN(MODELS); i++) {
        CHECK_ROW("%s", MODELS[i]);
        struct strbuf want = run_reference(MODELS[i], "baseline", CORES[0]);
        for (enum nn_cpu cpu = NN_CPU_AVX2; cpu <= nn_cpu() && cpu <= NN_CPU_AVX512; cpu++) {
            struct strbuf got = run_reference(MODELS[i], nn_cpu_text(cpu), CORES[cpu]);
            assert_string_equal(got.buf, want.buf);
            strbuf_release(&got);
            char *blas = xasprintf("%s-openblas", MODELS[i]);
            got = run_reference(blas, nn_cpu_text(cpu), CORES[cpu]);
            compare(nn_cpu_text(cpu), got.buf, want.buf);
            assert_string_not_equal(got.buf, want.buf);
            strbuf_release(&got);
            free(blas);
        }
        strbuf_release(&want);
    }
}

/* What is scored is the same everywhere: no product of the engine's is OpenBLAS's. */
static void test_engine_gives_the_same_bits(void **state)
{
    (void)state;

    struct strbuf want = run_program(ENGINE_NUMBERS, NULL, "baseline", "Prescott");
    assert_true(want.len > 500);
    for (enum nn_cpu cpu = NN_CPU_BASELINE; cpu <= nn_cpu(); cpu++) {
        struct strbuf got = run_program(ENGINE_NUMBERS, NULL, nn_cpu_text(cpu), "Haswell");
        print_message("  engine: %s against baseline\n", nn_cpu_text(cpu));
        assert_string_equal(got.buf, want.buf);
        strbuf_release(&got);
    }
    strbuf_release(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_give_the_same_bits),
        cmocka_unit_test(test_blas_is_only_a_reference),
        cmocka_unit_test(test_engine_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
