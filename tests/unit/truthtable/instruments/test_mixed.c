/* Mixed models against what lme4 fitted: tests/golden/mixed_model.json (tests/oracle/mixed_model.R)
 * and vectors/mixed_model.json of the shared folder; and what a singular fit is said to be. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/instruments/ask.h"

#define GOLDEN TEST_SOURCE_DIR "/tests/golden/mixed_model.json"

static cJSON *document(const char *path)
{
    cJSON *doc = NULL;
    struct err err = {0};
    if (json_read_file(path, 16U << 20, &doc, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return doc;
}

/* NULL when the shared folder is not there. */
static cJSON *shared_document(const char *name)
{
    const char *shared = getenv("PREREGD_SHARED");
    char *path = shared == NULL ? xstrdup("") : path_join(shared, name);
    cJSON *doc = access(path, R_OK) == 0 ? document(path) : NULL;
    free(path);
    return doc;
}

static double member(const cJSON *o, const char *key)
{
    const cJSON *v = json_member(o, key);
    assert_true(cJSON_IsNumber(v));
    return v->valuedouble;
}

static void near(const char *id, const char *what, double got, double want, double within)
{
    if (!(fabs(got - want) <= within)) {
        fail_msg("%s: %s is %.17g, not %.17g", id, what, got, want);
    }
}

/* lme4's optimiser ends within 2e-6 of the minimum on the hardest of the kept cases; theta 1e-8
 * instead of 0 is its way to say 0. */
static void look_variances(const char *id, const cJSON *want, const struct mixed_fit *f)
{
    double var_e = member(want, "var_e");
    double theta = member(want, "theta");
    near(id, "theta", f->theta, theta, 1e-6 + 2e-5 * theta);
    near(id, "var_b", f->var_b, member(want, "var_b"), 1e-9 * var_e + 4e-5 * member(want, "var_b"));
    near(id, "var_e", f->var_e, var_e, 2e-5 * var_e);
    near(id, "sigma_b", f->sigma_b, sqrt(f->var_b), 1e-12 * f->sigma_b);
    near(id, "sigma_e", f->sigma_e, sqrt(f->var_e), 1e-12 * f->sigma_e);
    near(id, "loglik", f->loglik, member(want, "reml_loglik"),
         1e-8 * fabs(member(want, "reml_loglik")));
    near(id, "r2_marginal", f->r2_marginal, member(want, "r2_marginal"), 1e-5);
    near(id, "r2_conditional", f->r2_conditional, member(want, "r2_conditional"), 1e-5);
    assert_int_equal(f->singular, cJSON_IsTrue(json_member(want, "singular")));
}

static void look_columns(const char *id, const cJSON *want, const struct mixed_data *d,
                         const struct mixed_fit *f)
{
    const cJSON *kept = json_member(want, "kept");
    for (size_t k = 0; k < d->p; k++) {
        bool keep = kept == NULL || cJSON_IsTrue(cJSON_GetArrayItem(kept, (int)k));
        assert_int_equal(f->kept[k], keep);
        if (keep) {
            double beta = cJSON_GetArrayItem(json_member(want, "beta"), (int)k)->valuedouble;
            double se = cJSON_GetArrayItem(json_member(want, "se"), (int)k)->valuedouble;
            near(id, "beta", f->beta[k], beta, 1e-5 * fabs(beta) + 1e-6 * se);
            near(id, "se", f->se[k], se, 1e-5 * se);
        }
    }
}

static void look_case(const char *id, const cJSON *want, const struct mixed_data *d)
{
    struct arena a;
    struct mixed_fit f;
    arena_init(&a);
    if (mixed_model_fit(d, &a, &f) != 0) {
        fail_msg("%s: %s", id, f.why);
    }
    look_variances(id, want, &f);
    look_columns(id, want, d, &f);
    arena_release(&a);
}

static void test_golden(void **state)
{
    cJSON *doc = document(GOLDEN);
    const cJSON *c;
    int n = 0;
    int n_singular = 0;
    (void)state;
    cJSON_ArrayForEach(c, json_member(doc, "cases"))
    {
        struct mixed_data d;
        struct arena a;
        arena_init(&a);
        ask_mixed_data(c, &a, &d);
        look_case(json_member(c, "id")->valuestring, c, &d);
        arena_release(&a);
        n++;
        n_singular += cJSON_IsTrue(json_member(c, "singular"));
    }
    assert_true(n >= 30 && n_singular >= 10);
    cJSON_Delete(doc);
}

/* y ~ 1 + arch + lr + x + (1 | seed), the columns apart. */
static void vector_data(const cJSON *data, struct arena *a, struct mixed_data *d)
{
    static const char *const names[] = {"arch", "lr", "x"};
    *d = (struct mixed_data){.p = 4};
    d->y = ask_numbers(json_member(data, "y"), &d->n, a);
    double *x = arena_array(a, d->n * 4, sizeof(*x));
    double *seed = ask_numbers(json_member(data, "seed"), &d->n, a);
    size_t *group = arena_array(a, d->n, sizeof(*group));
    for (size_t k = 0; k < ARRAY_LEN(names); k++) {
        double *v = ask_numbers(json_member(data, names[k]), &d->n, a);
        for (size_t i = 0; i < d->n; i++) {
            x[i * 4] = 1;
            x[i * 4 + k + 1] = v[i];
            group[i] = (size_t)seed[i];
            d->n_groups = group[i] >= d->n_groups ? group[i] + 1 : d->n_groups;
        }
    }
    d->x = x;
    d->group = group;
}

static void test_vectors(void **state)
{
    cJSON *doc = shared_document("vectors/mixed_model.json");
    const cJSON *c;
    int n = 0;
    (void)state;
    if (doc == NULL) {
        skip();
    }
    cJSON_ArrayForEach(c, json_member(doc, "cases"))
    {
        struct mixed_data d;
        struct arena a;
        char id[32];
        (void)snprintf(id, sizeof(id), "vector %d", ++n);
        arena_init(&a);
        vector_data(json_member(c, "data"), &a, &d);
        look_case(id, c, &d);
        arena_release(&a);
    }
    assert_int_equal(n, 24);
    cJSON_Delete(doc);
}

/* Balanced one-way designs have closed forms: var_e = MSW, var_b = (MSB - MSW) / 3, or 0 and the
 * variance of all. */
static void test_one_way(void **state)
{
    static const struct {
        double y[9];
        double var_b, var_e, theta;
    } cases[] = {
        {{1, 2, 3, 4, 5, 6, 7, 8, 9}, 26. / 3, 1, 2.943920288775949},
        {{1, 5, 9, 2, 5, 8, 3, 5, 7}, 0, 7.25, 0},
    };
    static const double ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const size_t group[9] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        const struct mixed_data d = {ones, cases[i].y, group, 9, 1, 3};
        struct arena a;
        struct mixed_fit f;
        arena_init(&a);
        assert_int_equal(mixed_model_fit(&d, &a, &f), 0);
        near("one way", "var_b", f.var_b, cases[i].var_b, 1e-12);
        near("one way", "var_e", f.var_e, cases[i].var_e, 1e-12);
        near("one way", "theta", f.theta, cases[i].theta, 1e-12);
        near("one way", "beta", f.beta[0], 5, 1e-13);
        assert_int_equal(f.singular, i == 1);
        assert_int_equal(f.n_reasons, i);
        arena_release(&a);
    }
}

struct expected_reason {
    enum mixed_reason_kind kind;
    size_t column, n_of, of[2];
    double coefficient[2];
};

/* What is said of the columns that were not kept; a boundary comes after them. */
static const struct expected {
    const char *id;
    size_t n_columns;
    struct expected_reason r[4];
    bool boundary;
} expected[] = {
    {"grid_1", 0, {{0}}, false},
    {"boundary_1", 0, {{0}}, true},
    {"constant", 1, {{.kind = MIXED_NO_VARIANCE, .column = 4}}, false},
    {"zeros", 1, {{.kind = MIXED_NO_VARIANCE, .column = 4}}, false},
    {"four_pinned",
     4,
     {{.kind = MIXED_NO_VARIANCE, .column = 3},
      {.kind = MIXED_NO_VARIANCE, .column = 4},
      {.kind = MIXED_NO_VARIANCE, .column = 5},
      {.kind = MIXED_NO_VARIANCE, .column = 6}},
     false},
    {"duplicate", 1, {{MIXED_ALIASED, 4, 1, {3}, {1}}}, false},
    {"multiple", 1, {{MIXED_ALIASED, 4, 1, {2}, {-3}}}, false},
    {"sum", 1, {{MIXED_ALIASED, 4, 2, {1, 2}, {1, 2}}}, false},
    {"dummies", 1, {{MIXED_ALIASED, 3, 2, {0, 1}, {1, -1}}}, false},
    {"duplicate_at_boundary",
     2,
     {{MIXED_ALIASED, 4, 1, {1}, {1}}, {.kind = MIXED_NO_VARIANCE, .column = 5}},
     true},
};

static void look_reasons(const struct expected *e, const struct mixed_fit *f)
{
    assert_int_equal(f->n_reasons, e->n_columns + e->boundary);
    for (size_t i = 0; i < e->n_columns; i++) {
        const struct mixed_reason *got = &f->reasons[i];
        assert_int_equal(got->kind, e->r[i].kind);
        assert_int_equal(got->column, e->r[i].column);
        assert_int_equal(got->n_of, e->r[i].n_of);
        for (size_t k = 0; k < got->n_of; k++) {
            assert_int_equal(got->of[k], e->r[i].of[k]);
            near(e->id, "coefficient", got->coefficient[k], e->r[i].coefficient[k], 1e-12);
        }
    }
    if (e->boundary) {
        assert_int_equal(f->reasons[f->n_reasons - 1].kind, MIXED_BOUNDARY_THETA);
    }
}

static const cJSON *golden_case(const cJSON *doc, const char *id)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_member(doc, "cases"))
    {
        if (strcmp(json_member(c, "id")->valuestring, id) == 0) {
            return c;
        }
    }
    fail_msg("no case %s", id);
    return NULL;
}

static void test_reasons(void **state)
{
    cJSON *doc = document(GOLDEN);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        CHECK_ROW("%s", expected[i].id);
        struct mixed_data d;
        struct mixed_fit f;
        struct arena a;
        arena_init(&a);
        ask_mixed_data(golden_case(doc, expected[i].id), &a, &d);
        assert_int_equal(mixed_model_fit(&d, &a, &f), 0);
        look_reasons(&expected[i], &f);
        arena_release(&a);
    }
    cJSON_Delete(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_one_way),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
