/*
 * The course of a contrast's gap over the marks of a run: the verdict's own figure at each mark,
 * the slope over the replicates' courses, whether the gap widens or narrows, and where it changes
 * sign. A replicate enters slope and crossing only with a value at every mark and every setting:
 * one that lost some would have the course of the others, and bend that of all. The report says
 * how many are left out.
 */
#include "truthtable/instruments/course.h"

#include <math.h>
#include <stdlib.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/condition/cell_layout.h"
#include "truthtable/instruments/instrument_work.h"

struct mark {
    double at;
    size_t measure;
};

struct course_plan {
    struct instrument_entry *t;
    size_t contrast;
    const char *a, *b; /* the arms */
    struct mark *marks;
    size_t n_marks;
    double *places;  /* [mark] */
    const char *why; /* no course: the first reason, or NULL */
    struct course c; /* valid while why is NULL */
    size_t left_out; /* replicates that lost a pair */
    const char *no_spread;
};

static int by_place(const void *a, const void *b)
{
    const struct mark *x = a;
    const struct mark *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Marks in the order of their places, whatever their order in the plan: a locked plan keeps none.
 */
static void read_plan(struct course_plan *plan)
{
    const struct work *w = plan->t->w;
    const cJSON *spec = plan->t->spec->spec;
    const cJSON *marks = json_member(spec, "marks");
    const cJSON *mark = NULL;
    plan->contrast = program_find_contrast(w->p, json_member(spec, "contrast")->valuestring);
    const struct plan_contrast *k = &w->p->contrasts[plan->contrast];
    plan->a = w->p->factors[k->factor].levels[k->level_a].text;
    plan->b = w->p->factors[k->factor].levels[k->level_b].text;
    size_t n = (size_t)cJSON_GetArraySize(marks);
    plan->marks = arena_array(w->arena, n, sizeof(*plan->marks));
    plan->places = arena_array(w->arena, n, sizeof(*plan->places));
    cJSON_ArrayForEach(mark, marks)
    {
        plan->marks[plan->n_marks++] =
            (struct mark){mark->valuedouble, program_find_measure(w->p, mark->string)};
    }
    qsort(plan->marks, n, sizeof(*plan->marks), by_place);
    for (size_t i = 0; i < n; i++) {
        plan->places[i] = plan->marks[i].at;
    }
}

static const struct figure *figure_at(const struct course_plan *plan, size_t mark)
{
    return work_figure(plan->t->w, plan->contrast, plan->marks[mark].measure);
}

/* The arm that a gap favors: a at a higher score, unless less is better. */
static const char *favored(const struct course_plan *plan, double gap)
{
    bool lower = plan->t->w->p->measures[plan->marks[0].measure].lower_better;
    return (gap > 0) == lower ? plan->b : plan->a;
}

/* -1, 0 or 1: on which side of 0 the whole interval is; 0 where it is unknown or holds 0. */
static int side(double low, double high)
{
    return low > 0 ? 1 : (high < 0 ? -1 : 0);
}

/* One mark: the verdict's figure of the contrast in its measure. */
static cJSON *mark_json(const struct course_plan *plan, size_t i)
{
    const struct figure *f = figure_at(plan, i);
    double low = point_or_nan(&f->fields[FIELD_CI_LOW]);
    double high = point_or_nan(&f->fields[FIELD_CI_HIGH]);
    const char *why = point_why(&f->fields[FIELD_MEAN]);
    cJSON *o = json_object();
    json_put_number(o, "at", plan->marks[i].at);
    json_put_string(o, "measure", plan->t->w->p->measures[plan->marks[i].measure].name);
    put_point(o, "gap", &f->fields[FIELD_MEAN]);
    put_point(o, "se", &f->fields[FIELD_SE]);
    json_put_number(o, "ci_low", low);
    json_put_number(o, "ci_high", high);
    put_point(o, "n", &f->fields[FIELD_N]);
    json_put_string(o, "favours",
                    side(low, high) == 0 ? NULL : favored(plan, (double)side(low, high)));
    json_put_string(o, "why", why != NULL ? why : point_why(&f->fields[FIELD_CI_LOW]));
    return o;
}

/* ---- the courses of replicates ---- */

/* Whether a replicate has every pair at every mark. */
static bool is_whole(const struct course_plan *plan, size_t replicate)
{
    const struct work *w = plan->t->w;
    const struct layout *l = &w->ev->rules->layout;
    bool whole = true;
    for (size_t s = 0; s < l->contrasts[plan->contrast].n_settings; s++) {
        const size_t a = layout_pair_a(l, plan->contrast, s, replicate);
        const size_t b = layout_pair_b(l, plan->contrast, s, replicate);
        for (size_t i = 0; i < plan->n_marks; i++) {
            whole = whole && !work_score(w, plan->marks[i].measure, a)->excluded &&
                    !work_score(w, plan->marks[i].measure, b)->excluded;
        }
    }
    return whole;
}

/* Adds the gap of a pair of cells at every mark to `sum`. */
static void add_pair(struct course_plan *plan, size_t a, size_t b, double *sum)
{
    const struct work *w = plan->t->w;
    for (size_t i = 0; i < plan->n_marks; i++) {
        double x = point_or_nan(&work_score(w, plan->marks[i].measure, a)->value);
        double y = point_or_nan(&work_score(w, plan->marks[i].measure, b)->value);
        sum[i] += x - y;
        plan->c.scale = fmax(plan->c.scale, fmax(fabs(x), fabs(y)));
    }
}

/* Each replicate's gaps, averaged over its settings as the contrast's are. */
static void read_courses(struct course_plan *plan)
{
    const struct work *w = plan->t->w;
    const struct layout *l = &w->ev->rules->layout;
    size_t n_settings = l->contrasts[plan->contrast].n_settings;
    double *gaps = arena_array(w->arena, l->n_replicates * plan->n_marks, sizeof(*gaps));
    plan->c.at = plan->places;
    plan->c.n_marks = plan->n_marks;
    plan->c.gaps = gaps;
    for (size_t r = 0; r < l->n_replicates; r++) {
        double *own = &gaps[plan->c.n * plan->n_marks];
        if (n_settings == 0 || !is_whole(plan, r)) {
            plan->left_out++;
            continue;
        }
        for (size_t s = 0; s < n_settings; s++) {
            add_pair(plan, layout_pair_a(l, plan->contrast, s, r),
                     layout_pair_b(l, plan->contrast, s, r), own);
        }
        for (size_t i = 0; i < plan->n_marks; i++) {
            own[i] /= (double)n_settings;
        }
        plan->c.n++;
    }
    if (plan->c.n == 0) {
        plan->why = "no replicate has a value at every mark and setting";
    }
}

/* No course while a gap is unknown; no spread where the verdict sees none, as of copies. */
static void find_why(struct course_plan *plan)
{
    for (size_t i = 0; i < plan->n_marks && plan->why == NULL; i++) {
        const struct figure *f = figure_at(plan, i);
        const char *why = point_why(&f->fields[FIELD_MEAN]);
        if (why != NULL) {
            plan->why = arena_printf(plan->t->w->arena, "%s: %s",
                                     plan->t->w->p->measures[plan->marks[i].measure].name, why);
        } else if (plan->no_spread == NULL) {
            plan->no_spread = point_why(&f->fields[FIELD_SE]);
        }
    }
}

/* ---- what they come to ---- */

/* Both ends unknown unless replicates have a spread of their own. */
static struct course_slope slope_of(const struct course_plan *plan)
{
    struct course_slope s = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (plan->why == NULL) {
        s = course_slope(&plan->c);
        if (plan->no_spread != NULL) {
            s.se = s.low = s.high = (double)NAN;
        }
    }
    return s;
}

static struct course_crossing crossing_of(const struct course_plan *plan)
{
    struct course_crossing x = {0, (double)NAN, false, (double)NAN, (double)NAN};
    if (plan->why == NULL) {
        x = course_crossing(&plan->c);
        if (plan->no_spread != NULL) {
            x.has_interval = false;
            x.low = x.high = (double)NAN;
        }
    }
    return x;
}

/* How the course reads; each is unknown while the course or its spread is. */
struct course_reading {
    enum truth crosses; /* one mark's interval is wholly above 0, another's wholly below */
    enum truth widens;  /* all gaps have one sign, and the slope's interval the same */
    enum truth narrows; /* or the other */
    const char *why;
};

static struct course_reading read_course(const struct course_plan *plan,
                                         const struct course_slope *slope)
{
    struct course_reading out = {TRUTH_UNKNOWN, TRUTH_UNKNOWN, TRUTH_UNKNOWN, plan->why};
    bool up = false;
    bool down = false;
    bool above = true;
    bool below = true;
    if (plan->why != NULL || !isfinite(slope->low)) {
        out.why = plan->why != NULL         ? plan->why
                  : plan->no_spread != NULL ? plan->no_spread
                                            : "no spread seen: the replicates' slopes are equal";
        return out;
    }
    for (size_t i = 0; i < plan->n_marks; i++) {
        const struct figure *f = figure_at(plan, i);
        int at = side(f->fields[FIELD_CI_LOW].lo, f->fields[FIELD_CI_HIGH].lo);
        up = up || at > 0;
        down = down || at < 0;
        above = above && f->fields[FIELD_MEAN].lo > 0;
        below = below && f->fields[FIELD_MEAN].lo < 0;
    }
    int turns = side(slope->low, slope->high);
    out.crosses = truth_of(up && down);
    out.widens = truth_of((above && turns > 0) || (below && turns < 0));
    out.narrows = truth_of((above && turns < 0) || (below && turns > 0));
    return out;
}

static const char *word_of(const struct course_reading *r)
{
    return r->widens == TRUTH_UNKNOWN ? NULL
           : r->crosses == TRUTH_TRUE ? "crosses"
           : r->widens == TRUTH_TRUE  ? "widens"
           : r->narrows == TRUTH_TRUE ? "narrows"
                                      : "unresolved";
}

static const char *crossing_why(const struct course_plan *plan, const struct course_crossing *x)
{
    return plan->why != NULL ? plan->why
           : x->n == 0       ? "not within range"
           : x->n > 1        ? arena_printf(plan->t->w->arena, "it changes sign %zu times", x->n)
                             : NULL;
}

/* ---- words ---- */

static const char *slope_words(const struct course_plan *plan, const struct course_slope *s,
                               const struct course_reading *r)
{
    struct arena *a = plan->t->w->arena;
    if (!isfinite(s->low)) {
        return arena_printf(a, "Slope over the horizon %+.4g, without an interval: %s.", s->slope,
                            r->why);
    }
    const char *reads = r->crosses == TRUTH_TRUE   ? "it changes sides"
                        : r->widens == TRUTH_TRUE  ? "the gap widens"
                        : r->narrows == TRUTH_TRUE ? "the gap narrows"
                                                   : "neither widening nor narrowing is resolved";
    return arena_printf(a, "Slope over the horizon %+.4g [%+.4g, %+.4g]: %s.", s->slope, s->low,
                        s->high, reads);
}

static const char *crossing_words(const struct course_plan *plan, const struct course_crossing *x)
{
    struct arena *a = plan->t->w->arena;
    if (x->n != 1) {
        return x->n == 0 ? "No crossing within range: the mean gap keeps its sign at all marks."
                         : arena_printf(a, "The mean gap changes sign %zu times.", x->n);
    }
    if (!x->has_interval) {
        return arena_printf(a, "The mean gap changes sign at %.3g, without an interval.", x->at);
    }
    return arena_printf(
        a, "The mean gap changes sign at %.3g [%s, %s].", x->at,
        isfinite(x->low) ? arena_printf(a, "%.3g", x->low) : "at or before the first mark",
        isfinite(x->high) ? arena_printf(a, "%.3g", x->high) : "at or after the last mark");
}

/* What slope and crossing are not over, if anything. */
static const char *left_out_words(const struct course_plan *plan)
{
    return plan->left_out == 0
               ? ""
               : arena_printf(plan->t->w->arena,
                              " %zu replicate%s that lost a pair %s left out of both.",
                              plan->left_out, plan->left_out == 1 ? "" : "s",
                              plan->left_out == 1 ? "is" : "are");
}

/* "dense - moe in loss: +0.006 at 0.1 of the horizon, +0.025 at 1. Slope ..." */
static const char *sentence(const struct course_plan *plan, const struct course_slope *s,
                            const struct course_reading *r, const struct course_crossing *x)
{
    const struct work *w = plan->t->w;
    size_t last = plan->n_marks - 1;
    if (plan->why != NULL) {
        return arena_printf(w->arena, "The course is undetermined: %s.", plan->why);
    }
    return arena_printf(w->arena, "%s - %s: %+.4g at %.3g of the horizon, %+.4g at %.3g. %s %s%s",
                        plan->a, plan->b, figure_at(plan, 0)->fields[FIELD_MEAN].lo,
                        plan->places[0], figure_at(plan, last)->fields[FIELD_MEAN].lo,
                        plan->places[last], slope_words(plan, s, r), crossing_words(plan, x),
                        left_out_words(plan));
}

/* ---- the entry ---- */

static void answer(const struct course_plan *plan, const struct course_slope *s,
                   const struct course_reading *r, const struct course_crossing *x)
{
    struct instrument_entry *t = plan->t;
    const char *why = crossing_why(plan, x);
    const char *open = "the interval reaches the end of the marks";
    entry_truth(t, "widens", r->widens, r->why);
    entry_truth(t, "narrows", r->narrows, r->why);
    entry_truth(t, "crosses", r->crosses, r->why);
    entry_number(t, "slope", s->slope, plan->why);
    entry_number(t, "slope_low", s->low, r->why);
    entry_number(t, "slope_high", s->high, r->why);
    for (size_t i = 0; i < 2; i++) {
        const struct number *gap =
            &figure_at(plan, i == 0 ? 0 : plan->n_marks - 1)->fields[FIELD_MEAN];
        entry_number(t, i == 0 ? "first" : "last", point_or_nan(gap), point_why(gap));
    }
    entry_number(t, "crossing", x->at, why);
    entry_number(t, "crossing_low", x->low, why != NULL ? why : open);
    entry_number(t, "crossing_high", x->high, why != NULL ? why : open);
}

static void put_slope(const struct course_plan *plan, const struct course_slope *s,
                      const struct course_reading *r)
{
    cJSON *o = json_object();
    json_put_number(o, "slope", s->slope);
    json_put_number(o, "se", s->se);
    json_put_number(o, "ci_low", s->low);
    json_put_number(o, "ci_high", s->high);
    json_put_number(o, "n", plan->why == NULL ? (double)plan->c.n : (double)NAN);
    json_put_number(o, "left_out", plan->why == NULL ? (double)plan->left_out : (double)NAN);
    json_put_string(o, "why", r->why);
    json_put(plan->t->json, "slope", o);
    json_put_string(plan->t->json, "course", word_of(r));
}

static void put_crossing(const struct course_plan *plan, const struct course_crossing *x)
{
    cJSON *o = json_object();
    json_put_number(o, "at", x->at);
    json_put_number(o, "low", x->low);
    json_put_number(o, "high", x->high);
    json_put_bool(o, "has_interval", x->has_interval);
    json_put_string(o, "why", crossing_why(plan, x));
    json_put(plan->t->json, "crossing", o);
}

/* Marks are shown even where one of them is unknown; slope and crossing need all. */
void instrument_course(struct instrument_entry *t)
{
    struct course_plan plan = {.t = t};
    cJSON *marks = json_array();
    read_plan(&plan);
    for (size_t i = 0; i < plan.n_marks; i++) {
        json_push(marks, mark_json(&plan, i));
    }
    find_why(&plan);
    if (plan.why == NULL) {
        read_courses(&plan);
    }
    const struct course_slope slope = slope_of(&plan);
    const struct course_crossing crossing = crossing_of(&plan);
    const struct course_reading reading = read_course(&plan, &slope);
    json_put_string(t->json, "contrast", t->w->p->contrasts[plan.contrast].name);
    json_put_string(t->json, "a", plan.a);
    json_put_string(t->json, "b", plan.b);
    json_put(t->json, "marks", marks);
    put_slope(&plan, &slope, &reading);
    put_crossing(&plan, &crossing);
    answer(&plan, &slope, &reading, &crossing);
    entry_words(t->json,
                "The gap of a contrast at the marks of a run, with its 95 % t interval over "
                "replicates at each, and whether it widens, narrows or changes sign on the way.",
                sentence(&plan, &slope, &reading, &crossing));
}
