/*
 * Ten training steps of every kind of model against numbers from PyTorch in float64
 * (tests/golden/model_numbers.json, written by tests/oracle/test_model.py --golden): losses, and of
 * logits, initial weights, first gradients and final parameters the norm and sampled elements of
 * every tensor. Built with `real` as float and as double.
 */
#include <math.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/oracle/engine.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/sparse.h"

#define GOLDEN TEST_SOURCE_DIR "/tests/golden/"

/* Allowed differences: of norms relative to the norm, of elements relative to the tensor's root
 * mean square. An element whose gradient is all rounding moves either way by AdamW's whole step, so
 * single final parameters are looked at less closely in float. */
struct tolerances {
    double loss;
    double computed; /* logits, gradients */
    double norm;     /* of final parameters */
    double element;  /* of final parameters */
    double initial;
};

static const struct tolerances SINGLE = {2e-6, 1e-4, 1e-5, 1e-2, 1e-6};
static const struct tolerances DOUBLE = {1e-12, 1e-11, 1e-11, 1e-10, 1e-12};

struct fixture {
    char *folder;
    cJSON *cases;
    cJSON *numbers;
    struct tolerances tol;
    int n_compared;
};

static cJSON *read_golden(const char *path)
{
    struct err err = {0};
    cJSON *value = NULL;

    if (json_read_file(path, (size_t)1 << 24, &value, &err) < 0)
        fail_msg("%s", err.msg);
    return value;
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct err err = {0};

    f->folder = scratch_make();
    f->cases = read_golden(GOLDEN "model_cases.json");
    f->numbers = read_golden(GOLDEN "model_numbers.json");
    f->tol = sizeof(real) == sizeof(double) ? DOUBLE : SINGLE;
    char *corpus = path_join(f->folder, "corpus.txt");
    if (engine_write_corpus(corpus, &err) < 0)
        fail_msg("%s", err.msg);
    free(corpus);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    scratch_remove(f->folder);
    cJSON_Delete(f->cases);
    cJSON_Delete(f->numbers);
    free(f);
    return 0;
}

/* The common parameters, overridden by those of the case. */
static cJSON *case_params(const struct fixture *f, const cJSON *own)
{
    cJSON *params = json_copy(json_member(f->cases, "common"));
    const cJSON *item;

    cJSON_ArrayForEach(item, own)
    {
        cJSON_DeleteItemFromObjectCaseSensitive(params, item->string);
        json_put(params, item->string, json_copy(item));
    }
    return params;
}

static void open_case(const struct fixture *f, const cJSON *own, struct engine *e)
{
    cJSON *task = json_object(), *data = json_object(), *text = json_object();
    char *corpus = path_join(f->folder, "corpus.txt"), *path = path_join(f->folder, "task.json");
    struct err err = {0};

    json_put_string(text, "path", corpus);
    json_put(data, "text", text);
    json_put_int(task, "protocol", TASK_PROTOCOL);
    json_put_string(task, "attempt", "golden");
    json_put_int(task, "attempt_no", 1);
    json_put_int(task, "threads", 1);
    json_put(task, "params", case_params(f, own));
    json_put(task, "data", data);
    json_put(task, "resume", json_array());
    if (json_write_file(path, task, 0644, &err) < 0 || engine_open(e, path, &err) < 0)
        fail_msg("%s: %s", own->string, err.msg);
    cJSON_Delete(task);
    free(corpus);
    free(path);
}

static double number_at(const cJSON *array, int i)
{
    const cJSON *item = cJSON_GetArrayItem(array, i);

    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void compare(struct fixture *f, const char *what, double got, double want, double allowed)
{
    f->n_compared++;
    if (!(fabs(got - want) <= allowed))
        fail_msg("%s: %.17g, the reference has %.17g; %.1e apart, %.1e is allowed", what, got, want,
                 fabs(got - want), allowed);
}

/* kept = [norm, elements spread evenly from the first to the last]. */
static void compare_array(struct fixture *f, const char *what, const cJSON *kept, const real *x,
                          size_t n, double norm_tol, double element_tol)
{
    double squares = 0.0, norm = number_at(kept, 0);
    size_t last = (size_t)cJSON_GetArraySize(kept) - 2;

    assert_true(cJSON_GetArraySize(kept) >= 3);
    for (size_t i = 0; i < n; i++)
        squares += (double)x[i] * (double)x[i];
    compare(f, what, sqrt(squares), norm, norm_tol * norm);
    for (size_t j = 0; j <= last; j++)
        compare(f, what, (double)x[j * (n - 1) / last], number_at(kept, (int)j + 1),
                element_tol * norm / sqrt((double)n));
}

/* An array that lies like the parameters, tensor by tensor; every tensor must be among the kept. */
static void compare_tensors(struct fixture *f, const cJSON *kept, const char *what,
                            const struct tensor_table *table, const real *all)
{
    const cJSON *part = json_member(kept, what);
    bool is_final = strcmp(what, "parameters") == 0;
    double computed = strcmp(what, "initial") == 0 ? f->tol.initial : f->tol.computed;

    assert_int_equal(cJSON_GetArraySize(part), table->n);
    for (size_t i = 0; i < table->n; i++) {
        const struct tensor *t = &table->items[i];
        char *name = xasprintf("%s, %s of %s", kept->string, what, t->name);
        compare_array(f, name, json_member(part, t->name), all + t->offset, tensor_size(t),
                      is_final ? f->tol.norm : computed, is_final ? f->tol.element : computed);
        free(name);
    }
}

static void compare_steps(struct fixture *f, const cJSON *kept, struct engine *e)
{
    struct trainer *t = &e->trainer;
    const cJSON *losses = json_member(kept, "losses");
    struct err err = {0};

    assert_int_equal(cJSON_GetArraySize(losses), e->opt.steps);
    const int64_t steps = e->opt.steps / (int64_t)sparse_part();
    for (int step = 0; step < steps; step++) {
        double loss = 0.0, want = number_at(losses, step);
        if (trainer_step(t, &loss, &err) < 0)
            fail_msg("%s: %s", kept->string, err.msg);
        compare(f, kept->string, loss, want, f->tol.loss * want);
    }
    if (steps < e->opt.steps)
        return;
    compare_tensors(f, kept, "parameters", &t->w.table, t->w.params);
    const cJSON *bias = json_member(kept, "bias");
    for (size_t i = 0; i < weights_n_bias(&e->opt.model); i++)
        compare(f, "choice bias", (double)t->w.route_bias[i], number_at(bias, (int)i),
                f->tol.initial);
}

static void check_case(struct fixture *f, const cJSON *own)
{
    const cJSON *kept = json_member(f->numbers, own->string);
    struct engine e;

    assert_non_null(kept);
    open_case(f, own, &e);
    compare_tensors(f, kept, "initial", &e.trainer.w.table, e.trainer.w.params);
    real *logits = engine_logits(&e, 0);
    assert_non_null(logits);
    compare_array(f, "logits", json_member(kept, "logits"), logits,
                  (size_t)e.opt.batch_tokens * (size_t)e.opt.model.vocab, f->tol.computed,
                  f->tol.computed);
    free(logits);
    real *gradient = engine_gradient(&e);
    assert_non_null(gradient);
    compare_tensors(f, kept, "gradients", &e.trainer.w.table, gradient);
    free(gradient);
    compare_steps(f, kept, &e);
    engine_close(&e);
}

static void test_every_case(void **state)
{
    struct fixture *f = *state;
    const cJSON *own, *cases = json_member(f->cases, "cases");

    assert_true(cJSON_GetArraySize(cases) >= 12);
    assert_int_equal(cJSON_GetArraySize(cases), cJSON_GetArraySize(f->numbers));
    cJSON_ArrayForEach(own, cases) check_case(f, own);
    print_message("  %d numbers of %d models\n", f->n_compared, cJSON_GetArraySize(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_case, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
