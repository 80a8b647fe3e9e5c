/*
 * Published or measured scores of other models beside ours. The program states them, nothing here
 * verifies them, and no condition but a forecast may read them. Differences are ours minus the
 * anchor, condition by condition; extremes over all of them are the fields.
 */
#include <math.h>

#include "base/json/json.h"
#include "truthtable/condition/stats.h"
#include "truthtable/instruments/instrument_work.h"

struct condition_mean {
    double mean;
    const char *why;
};

/* The mean over the cells that are not excluded. One undetermined cell makes it undetermined. */
static struct condition_mean mean_at(const struct work *w, size_t measure, size_t condition,
                                     double *scratch)
{
    struct condition_mean out = {.mean = (double)NAN};
    size_t n = 0;
    for (size_t c = 0; c < w->p->n_cells; c++) {
        const struct score *s = work_score(w, measure, c);
        if (w->p->cells[c].condition != condition || s->excluded) {
            continue;
        }
        if (point_why(&s->value) != NULL) {
            out.why = arena_printf(w->arena, "%s: %s", w->p->cells[c].name, point_why(&s->value));
            return out;
        }
        scratch[n++] = s->value.lo;
    }
    if (n == 0) {
        out.why = "no cell is left";
    } else {
        out.mean = stat_mean(scratch, n);
    }
    return out;
}

/* One anchor of one model. lowest and highest are over single cells, the conditions' differences
 * over means. */
static cJSON *anchor_json(struct instrument_entry *t, const cJSON *anchor, struct spread *all,
                          double *scratch)
{
    const struct work *w = t->w;
    size_t m = program_find_measure(w->p, anchor->string);
    const struct plan_measure *measure = &w->p->measures[m];
    cJSON *o = json_object();
    cJSON *conditions = json_array();
    struct spread cells = {0};
    json_put_string(o, "measure", measure->name);
    json_put_number(o, "value", anchor->valuedouble);
    json_put_number(o, "floor", measure->has_floor ? measure->floor : (double)NAN);
    put_truth(o, "clears_floor",
              measure->has_floor ? truth_of(anchor->valuedouble >= measure->floor) : TRUTH_UNKNOWN);
    for (size_t c = 0; c < w->p->n_conditions; c++) {
        struct condition_mean ours = mean_at(w, m, c, scratch);
        cJSON *at = json_object();
        json_put_string(at, "condition", w->p->conditions[c].name);
        json_put_number(at, "score", ours.mean);
        json_put_number(at, "difference", ours.mean - anchor->valuedouble);
        json_put_string(at, "why", ours.why);
        json_push(conditions, at);
        spread_add(all, ours.mean - anchor->valuedouble, ours.why);
    }
    for (size_t c = 0; c < w->p->n_cells; c++) {
        const struct score *s = work_score(w, m, c);
        if (!s->excluded) {
            spread_add(&cells, point_or_nan(&s->value), point_why(&s->value));
        }
    }
    json_put(o, "conditions", conditions);
    json_put_number(o, "lowest", spread_low(&cells));
    json_put_number(o, "highest", spread_high(&cells));
    json_put_string(o, "why", cells.n > 0 ? cells.why : spread_why(&cells));
    return o;
}

/* Models and measures in the order of the program. */
void instrument_anchors(struct instrument_entry *t)
{
    const cJSON *models = json_member(t->spec->spec, "models");
    const cJSON *model = NULL;
    struct arena *a = t->w->arena;
    double *scratch = arena_array(a, t->w->p->n_cells, sizeof(*scratch));
    struct spread all = {0};
    cJSON *list = json_array();
    cJSON_ArrayForEach(model, models)
    {
        cJSON *o = json_object();
        cJSON *measures = json_array();
        const cJSON *anchor = NULL;
        json_put_string(o, "model", model->string);
        cJSON_ArrayForEach(anchor, model)
        {
            json_push(measures, anchor_json(t, anchor, &all, scratch));
        }
        json_put(o, "measures", measures);
        json_push(list, o);
    }
    json_put_string(t->json, "source", json_member(t->spec->spec, "source")->valuestring);
    json_put(t->json, "models", list);
    double low = spread_low(&all);
    double high = spread_high(&all);
    entry_number(t, "min_difference", low, spread_why(&all));
    entry_number(t, "max_difference", high, spread_why(&all));
    entry_number(t, "max_abs", fmax(fabs(low), fabs(high)), spread_why(&all));
    entry_words(
        t->json,
        "Scores of other models, as the program states them: shown beside ours, none of them "
        "produced by this program.",
        isfinite(low)
            ? arena_printf(a, "Our conditions lie %+.4g to %+.4g from the anchors.", low, high)
            : arena_printf(a, "Some difference is undetermined: %s.", spread_why(&all)));
}
