/*
 * Means over the replicates of a condition that are left, each with its t interval, and ranks of
 * levels by those means. A replicate whose value is unknown leaves the mean unknown, as it does a
 * contrast; one that is a copy of another leaves the spread unknown.
 */
#include "truthtable/instruments/condition_means.h"

#include <math.h>
#include <stdlib.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/condition/cell_layout.h"
#include "truthtable/condition/condition.h"
#include "truthtable/condition/stats.h"

#define ROUNDING 1e-12 /* as of contrasts (evaluate/contrast.c) */

struct mean_estimate {
    double mean, se, low, high;
    size_t n;
    const char *why; /* of the first that is unknown */
};

/* The values of the replicates that are left; false after one that is unknown. */
static bool read_values(const struct work *w, size_t measure, size_t condition, double *values,
                        struct mean_estimate *out)
{
    const struct layout *l = &w->ev->rules->layout;
    const char *copy = NULL;
    for (size_t r = 0; r < l->n_replicates; r++) {
        const struct score *s = work_score(w, measure, layout_cell(l, condition, r));
        if (s->excluded) {
            continue;
        }
        if (!number_is_point(&s->value)) {
            out->why = point_why(&s->value);
            return false;
        }
        copy = copy != NULL ? copy : s->copy;
        values[out->n++] = s->value.lo;
    }
    out->why = out->n == 0 ? "no cell is left" : copy;
    return out->n > 0;
}

static void find_spread(const double *values, struct mean_estimate *out)
{
    double low = values[0];
    double high = values[0];
    for (size_t i = 1; i < out->n; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    if (out->n < 2 || !(high - low > ROUNDING * fmax(fabs(low), fabs(high)))) {
        out->why =
            out->n < 2 ? "one replicate has no spread" : "no spread seen: the replicates are equal";
        return;
    }
    out->se = stat_sd(values, out->n) / sqrt((double)out->n);
    const double half = stat_t_quantile(0.975, (unsigned)(out->n - 1)) * out->se;
    out->low = out->mean - half;
    out->high = out->mean + half;
}

static struct mean_estimate mean_of(const struct work *w, size_t measure, size_t condition,
                                    double *values)
{
    struct mean_estimate out = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, 0, NULL};
    if (read_values(w, measure, condition, values, &out)) {
        out.mean = stat_mean(values, out.n);
        if (out.why == NULL) {
            find_spread(values, &out);
        }
    }
    return out;
}

cJSON *condition_means(const struct work *w)
{
    const struct plan_program *p = w->p;
    double *values = xcalloc(w->ev->rules->layout.n_replicates, sizeof(*values));
    cJSON *list = json_array();
    for (size_t m = 0; m < p->n_measures; m++) {
        for (size_t c = 0; c < p->n_conditions; c++) {
            const struct mean_estimate x = mean_of(w, m, c, values);
            cJSON *o = json_object();
            json_put_string(o, "measure", p->measures[m].name);
            json_put_string(o, "condition", p->conditions[c].name);
            json_put_number(o, "mean", x.mean);
            json_put_number(o, "se", x.se);
            json_put_number(o, "ci_low", x.low);
            json_put_number(o, "ci_high", x.high);
            json_put_int(o, "n", (int64_t)x.n);
            json_put_string(o, "why", x.why);
            json_push(list, o);
        }
    }
    free(values);
    return list;
}

/* ---- ranks ---- */

struct ranked_level {
    const char *level;
    size_t place; /* among the levels of the plan */
    double rank;
    double mean;
};

/* By rank; levels that tie keep the order of the plan. */
static int by_rank(const void *a, const void *b)
{
    const struct ranked_level *x = a;
    const struct ranked_level *y = b;
    int order = (x->rank > y->rank) - (x->rank < y->rank);
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

/* The condition with another level of the factor: conditions differ in it alone by their levels. */
static size_t condition_at(const struct plan_program *p, size_t condition, size_t factor,
                           size_t level)
{
    for (size_t c = 0; c < p->n_conditions; c++) {
        bool same = p->conditions[c].levels[factor] == level;
        for (size_t f = 0; f < p->n_factors && same; f++) {
            same = f == factor || p->factors[f].replicate ||
                   p->conditions[c].levels[f] == p->conditions[condition].levels[f];
        }
        if (same) {
            return c;
        }
    }
    return INDEX_NONE;
}

/* "lr=0.001,width=64": the condition without the factor; "all" where nothing else varies. */
static const char *setting_of(const struct work *w, size_t condition, size_t factor)
{
    const struct plan_program *p = w->p;
    const char *text = "";
    for (size_t f = 0; f < p->n_factors; f++) {
        if (f != factor && !p->factors[f].replicate) {
            text = arena_printf(w->arena, "%s%s%s=%s", text, text[0] == '\0' ? "" : ",",
                                p->factors[f].name,
                                p->factors[f].levels[p->conditions[condition].levels[f]].text);
        }
    }
    return text[0] == '\0' ? "all" : text;
}

/* The levels of the factor by their rank, which the condition language's rank() gives, too. */
static cJSON *order_json(const struct work *w, size_t measure, size_t factor, size_t condition,
                         const char **why)
{
    const struct plan_program *p = w->p;
    const size_t n = p->factors[factor].n_levels;
    struct ranked_level *levels = arena_array(w->arena, n, sizeof(*levels));
    struct plan_setting *where = arena_array(w->arena, p->n_factors, sizeof(*where));
    struct cond c = {.kind = COND_RANK, .measure = measure, .factor = factor, .where = where};
    double *values = arena_array(w->arena, w->ev->rules->layout.n_replicates, sizeof(*values));
    for (size_t f = 0; f < p->n_factors; f++) {
        if (f != factor && !p->factors[f].replicate) {
            where[c.n_where++] = (struct plan_setting){f, p->conditions[condition].levels[f]};
        }
    }
    for (size_t i = 0; i < n && *why == NULL; i++) {
        c.level_a = i;
        const struct number rank = rank_of_level(w->ev, &c);
        const size_t at = condition_at(p, condition, factor, i);
        *why = point_why(&rank);
        levels[i] = (struct ranked_level){p->factors[factor].levels[i].text, i, rank.lo,
                                          mean_of(w, measure, at, values).mean};
    }
    cJSON *order = json_array();
    qsort(levels, n, sizeof(*levels), by_rank);
    for (size_t i = 0; i < n && *why == NULL; i++) {
        cJSON *o = json_object();
        json_put_string(o, "level", levels[i].level);
        json_put_number(o, "rank", levels[i].rank);
        json_put_number(o, "mean", levels[i].mean);
        json_push(order, o);
    }
    return order;
}

/* Every setting once: that of the conditions with the factor's first level. */
static void push_ranks(const struct work *w, size_t measure, size_t factor, cJSON *list)
{
    const struct plan_program *p = w->p;
    for (size_t c = 0; c < p->n_conditions; c++) {
        if (p->conditions[c].levels[factor] != 0) {
            continue;
        }
        const char *why = NULL;
        cJSON *o = json_object();
        json_put_string(o, "measure", p->measures[measure].name);
        json_put_string(o, "factor", p->factors[factor].name);
        json_put_string(o, "setting", setting_of(w, c, factor));
        json_put(o, "order", order_json(w, measure, factor, c, &why));
        json_put_string(o, "why", why);
        json_push(list, o);
    }
}

cJSON *condition_ranks(const struct work *w)
{
    const struct plan_program *p = w->p;
    cJSON *list = json_array();
    for (size_t f = 0; f < p->n_factors; f++) {
        bool compared = false;
        for (size_t k = 0; k < p->n_contrasts; k++) {
            compared = compared || (!p->contrasts[k].is_difference && p->contrasts[k].factor == f);
        }
        for (size_t m = 0; m < p->n_measures && compared && !p->factors[f].replicate; m++) {
            push_ranks(w, m, f, list);
        }
    }
    return list;
}
