#include "tests/unit/truthtable/instruments/ask.h"

#include <math.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/condition/stats.h"
#include "truthtable/evaluate/scoring.h"
#include "truthtable/instruments/bayes.h"
#include "truthtable/instruments/dispersion.h"
#include "truthtable/instruments/gamma.h"
#include "truthtable/instruments/items_error.h"
#include "truthtable/instruments/power.h"
#include "truthtable/instruments/quantile.h"

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = json_member(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

double *ask_numbers(const cJSON *array, size_t *n, struct arena *a)
{
    const cJSON *v;
    double *out = arena_array(a, (size_t)cJSON_GetArraySize(array) + 1, sizeof(*out));
    *n = 0;
    cJSON_ArrayForEach(v, array)
    {
        out[(*n)++] = cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
    }
    return out;
}

static size_t *whole_numbers(const cJSON *array, size_t *n, size_t *most, struct arena *a)
{
    double *v = ask_numbers(array, n, a);
    size_t *out = arena_array(a, *n + 1, sizeof(*out));
    *most = 0;
    for (size_t i = 0; i < *n; i++) {
        out[i] = (size_t)v[i];
        *most = out[i] >= *most ? out[i] + 1 : *most;
    }
    return out;
}

void ask_mixed_data(const cJSON *request, struct arena *a, struct mixed_data *out)
{
    const cJSON *rows = json_member(request, "x");
    const cJSON *row;
    size_t n;
    *out = (struct mixed_data){.y = ask_numbers(json_member(request, "y"), &out->n, a)};
    out->group = whole_numbers(json_member(request, "group"), &out->n, &out->n_groups, a);
    out->p = (size_t)cJSON_GetArraySize(cJSON_GetArrayItem(rows, 0));
    double *x = arena_array(a, out->n * out->p + 1, sizeof(*x));
    double *at = x;
    cJSON_ArrayForEach(row, rows)
    {
        memcpy(at, ask_numbers(row, &n, a), out->p * sizeof(*at));
        at += out->p;
    }
    out->x = x;
}

static cJSON *reasons(const struct mixed_fit *f)
{
    static const char *const kinds[] = {"no_variance", "aliased", "boundary"};
    cJSON *list = json_array();
    for (size_t i = 0; i < f->n_reasons; i++) {
        const struct mixed_reason *r = &f->reasons[i];
        cJSON *o = json_object();
        cJSON *of = json_array();
        cJSON *coefficient = json_array();
        for (size_t k = 0; k < r->n_of; k++) {
            json_push_number(of, (double)r->of[k]);
            json_push_number(coefficient, r->coefficient[k]);
        }
        json_put_string(o, "kind", kinds[r->kind]);
        json_put_number(o, "column", (double)r->column);
        json_put(o, "of", of);
        json_put(o, "coefficient", coefficient);
        json_push(list, o);
    }
    return list;
}

static void put_mixed(const struct mixed_data *d, const struct mixed_fit *f, cJSON *out)
{
    cJSON *kept = json_array();
    cJSON *beta = json_array();
    cJSON *se = json_array();
    for (size_t k = 0; k < d->p; k++) {
        json_push(kept, cJSON_CreateBool(f->kept[k]));
        json_push_number(beta, f->kept[k] ? f->beta[k] : (double)NAN);
        json_push_number(se, f->kept[k] ? f->se[k] : (double)NAN);
    }
    json_put_string(out, "why", f->why);
    json_put(out, "kept", kept);
    json_put(out, "beta", beta);
    json_put(out, "se", se);
    json_put_number(out, "var_b", f->var_b);
    json_put_number(out, "var_e", f->var_e);
    json_put_number(out, "theta", f->theta);
    json_put_number(out, "reml_loglik", f->loglik);
    json_put_number(out, "r2_marginal", f->r2_marginal);
    json_put_number(out, "r2_conditional", f->r2_conditional);
    json_put_bool(out, "singular", f->singular);
    json_put(out, "reasons", reasons(f));
}

static void ask_mixed(const cJSON *request, struct arena *a, cJSON *out)
{
    struct mixed_data d;
    struct mixed_fit f;
    ask_mixed_data(request, a, &d);
    (void)mixed_model_fit(&d, a, &f);
    put_mixed(&d, &f, out);
}

static void ask_chi_square(const cJSON *request, struct arena *a, cJSON *out)
{
    struct gamma_tails t = chi_square_tails(number(request, "x"), number(request, "df"));
    (void)a;
    json_put_number(out, "p", t.p);
    json_put_number(out, "q", t.q);
    json_put_number(out, "ln_p", t.ln_p);
    json_put_number(out, "ln_q", t.ln_q);
}

static void ask_student(const cJSON *request, struct arena *a, cJSON *out)
{
    (void)a;
    json_put_number(out, "t",
                    student_quantile(number(request, "p"), (size_t)number(request, "df")));
}

static void ask_normal(const cJSON *request, struct arena *a, cJSON *out)
{
    (void)a;
    json_put_number(out, "z", normal_quantile(number(request, "p")));
}

static void put_items(const struct item_error *e, cJSON *out)
{
    bool known = e->why == NULL;
    json_put_string(out, "why", e->why);
    json_put_number(out, "mean", e->mean);
    json_put_number(out, "se", known ? e->se : (double)NAN);
    json_put_number(out, "low", known ? e->t_low : (double)NAN);
    json_put_number(out, "high", known ? e->t_high : (double)NAN);
    json_put_number(out, "df", known ? e->df : (double)NAN);
    json_put_number(out, "clusters", (double)e->n_clusters);
}

static void ask_paired(const cJSON *request, struct arena *a, cJSON *out)
{
    struct item_error e;
    size_t n;
    double *diff = ask_numbers(json_member(request, "diff"), &n, a);
    items_paired(diff, n, &e);
    put_items(&e, out);
}

static void ask_clustered(const cJSON *request, struct arena *a, cJSON *out)
{
    struct item_error e;
    size_t n;
    size_t n_clusters;
    double *diff = ask_numbers(json_member(request, "diff"), &n, a);
    size_t *cluster = whole_numbers(json_member(request, "cluster"), &n, &n_clusters, a);
    items_clustered(diff, cluster, n, n_clusters, &e);
    put_items(&e, out);
}

static void ask_dispersion(const cJSON *request, struct arena *a, cJSON *out)
{
    struct dispersion d;
    size_t n;
    double *score = ask_numbers(json_member(request, "score"), &n, a);
    dispersion_of(score, ask_numbers(json_member(request, "items"), &n, a), n, &d);
    json_put_string(out, "why", d.why);
    json_put_number(out, "chi2", d.chi2);
    json_put_number(out, "df", d.df);
    json_put_number(out, "p_lower", d.p_lower);
    json_put_number(out, "p_upper", d.p_upper);
}

static void ask_bayes(const cJSON *request, struct arena *a, cJSON *out)
{
    (void)a;
    json_put_number(
        out, "ln_bf10",
        stat_ln_bf10(number(request, "d"), number(request, "se"), number(request, "tau")));
}

static void ask_power(const cJSON *request, struct arena *a, cJSON *out)
{
    const struct power_design d = {
        .alpha = number(request, "alpha"),
        .power = number(request, "power"),
        .omega2 = number(request, "omega2"),
        .var_a = number(request, "var_a"),
        .k_a = number(request, "k_a"),
        .var_b = number(request, "var_b"),
        .k_b = number(request, "k_b"),
    };
    double delta = number(request, "delta");
    double n = number(request, "n");
    (void)a;
    json_put_number(out, "items", power_items(&d, delta));
    json_put_number(out, "difference", power_difference(&d, n));
}

static void ask_brier(const cJSON *request, struct arena *a, cJSON *out)
{
    size_t n;
    double *priors = ask_numbers(json_member(request, "priors"), &n, a);
    size_t hit = (size_t)number(request, "hit");
    json_put_number(out, "brier", scoring_prior_brier(priors, n, hit));
    json_put_number(out, "bits", hit < n ? scoring_bits(priors[hit]) : (double)NAN);
}

cJSON *instruments_ask(const cJSON *request)
{
    static const struct {
        const char *op;
        void (*answer)(const cJSON *request, struct arena *a, cJSON *out);
    } ops[] = {
        {"mixed", ask_mixed},           {"chi_square", ask_chi_square},
        {"student", ask_student},       {"normal", ask_normal},
        {"paired", ask_paired},         {"clustered", ask_clustered},
        {"dispersion", ask_dispersion}, {"bayes", ask_bayes},
        {"power", ask_power},           {"brier", ask_brier},
    };
    const cJSON *op = json_member(request, "op");
    for (size_t i = 0; cJSON_IsString(op) && i < ARRAY_LEN(ops); i++) {
        if (strcmp(op->valuestring, ops[i].op) == 0) {
            struct arena a;
            cJSON *out = json_object();
            arena_init(&a);
            ops[i].answer(request, &a, out);
            arena_release(&a);
            return out;
        }
    }
    return NULL;
}
