/* Shapes: what asks for the same has one number, and every difference that reaches sbatch or the
 * job script has another. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "daemon/executor/slurm/shape.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

static struct plan_program *program_with(const char *run)
{
    char *text = text_replace(SMALL_PROGRAM, "slots = 2", run);
    struct plan_program *p = program_of(text, NULL);
    free(text);
    return p;
}

static uint32_t number(struct slurm_shapes *s, const struct plan_program *p, size_t stage,
                       const struct placement *at, uint32_t program)
{
    const struct attempt_place place = {
        .key = {.program = program}, .placement = at, .program = p, .stage = stage};
    return slurm_shape_number(s, &place, "/opt/prereg-shim");
}

static void test_numbers(void **state)
{
    struct slurm_shapes shapes = {0};
    const struct placement one = {.executor = EXECUTOR_SLURM, .threads = 1};
    struct placement two = one;
    struct plan_program *a = program_with("time = \"4h\"\nslurm = { partition = \"gpu\" }");
    struct plan_program *b = program_with("time = \"4h\"\nslurm = { partition = \"cpu\" }");
    struct plan_program *c =
        program_with("time = \"4h\"\nslurm = { partition = \"gpu\", setup = [\"module load x\"] }");
    (void)state;
    two.gpu_thousandths = 2000;
    assert_int_equal(number(&shapes, a, 0, &one, 1), 0);
    assert_int_equal(number(&shapes, a, 1, &one, 1), 0);
    assert_int_equal(number(&shapes, a, 0, &two, 1), 1);
    assert_int_equal(number(&shapes, b, 0, &one, 1), 2);
    assert_int_equal(number(&shapes, c, 0, &one, 1), 3);
    assert_int_equal(number(&shapes, a, 0, &one, 2), 4); /* its own jobs/ */
    assert_int_equal(number(&shapes, a, 0, &one, 1), 0);
    program_free(a); /* a shape keeps what it needs */
    const struct slurm_shape *s = shapes.list[1];
    assert_string_equal(s->request.partition, "gpu");
    assert_int_equal(s->request.gpus, 2);
    assert_int_equal(s->request.time_ms, 4 * 3600 * 1000);
    assert_int_equal(s->request.warn_ms, 10 * 60 * 1000);
    assert_int_equal(s->grace_ms, 180 * 1000);
    assert_int_equal(s->poll_ms, 5 * 1000);
    assert_string_equal(shapes.list[3]->setup[0], "module load x");
    assert_true(shapes.list[3]->request.login);
    assert_false(s->request.login);
    assert_string_equal(s->shim, "/opt/prereg-shim");
    program_free(b);
    program_free(c);
    slurm_shapes_release(&shapes);
}

/* The warning comes a tenth of the limit before it, and never in its first half. */
static void test_warning(void **state)
{
    static const struct {
        const char *run;
        int64_t warn_ms;
    } rows[] = {{"time = \"60s\"", 30000},
                {"time = \"5min\"", 60000},
                {"time = \"1h\"", 360000},
                {"time = \"30h\"", 600000},
                {"", 0}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].run);
        struct slurm_shapes shapes = {0};
        const struct placement at = {.executor = EXECUTOR_SLURM, .threads = 1};
        struct plan_program *p = program_with(rows[i].run);
        assert_int_equal(number(&shapes, p, 0, &at, 1), 0);
        assert_int_equal(shapes.list[0]->request.warn_ms, rows[i].warn_ms);
        program_free(p);
        slurm_shapes_release(&shapes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_warning)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
