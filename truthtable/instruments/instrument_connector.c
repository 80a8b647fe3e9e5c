/*
 * The loss-to-benchmark connector: does the validation loss show the gap between two arms, do the
 * benchmarks, and do they agree? Four cases are named (A: the loss alone, with no benchmark above
 * its floor; B: both agree; C: they disagree; D: neither); every other combination is "none of the
 * four". A gap shows if its 95 % interval leaves out 0. Everything is three-valued: a case is open
 * until no missing figure could change it.
 */
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/math/elementary.h"
#include "base/xalloc.h"
#include "truthtable/instruments/connector_share.h"

#define LIMIT                                                                                      \
    "A gap of the whole mix is not attributed to the architecture unless the gaps of its sources " \
    "agree in sign: "

#define BEYOND "the ratio is beyond double"

struct gap { /* a - b in one loss */
    const char *measure;
    double mean, se, low, high, n;
    enum truth shows; /* the interval leaves 0 out */
    const char *why;
};

struct rung { /* the benchmarks together */
    enum truth clears_any, shows;
    int favours; /* 1: arm a, -1: arm b, 0: those that show one disagree, or none does */
    bool disagree;
    const char *why;        /* why some measure may or may not show one */
    const char *clears_why; /* why some measure may or may not clear */
    size_t n;
};

struct connector {
    struct instrument_entry *t;
    const struct work *w;
    size_t contrast;
    size_t loss;
    const char *arms[2];
    struct gap whole;
    enum truth agree;
    const char *agree_why;
    struct rung bench;
};

/* Unknown without a finite interval on both sides. */
static enum truth leaves_out_zero(double low, double high)
{
    return isfinite(low) && isfinite(high) ? truth_of(low > 0 || high < 0) : TRUTH_UNKNOWN;
}

/* The figures of the contrast in one measure, with the first reason for one that is missing. */
static struct gap gap_of(const struct connector *c, size_t measure)
{
    const struct figure *f = work_figure(c->w, c->contrast, measure);
    struct gap g = {.measure = c->w->p->measures[measure].name,
                    .mean = point_or_nan(&f->fields[FIELD_MEAN]),
                    .se = point_or_nan(&f->fields[FIELD_SE]),
                    .low = point_or_nan(&f->fields[FIELD_CI_LOW]),
                    .high = point_or_nan(&f->fields[FIELD_CI_HIGH]),
                    .n = point_or_nan(&f->fields[FIELD_N])};
    g.shows = leaves_out_zero(g.low, g.high);
    g.why = point_why(&f->fields[FIELD_MEAN]);
    g.why = g.why != NULL ? g.why : point_why(&f->fields[FIELD_SE]);
    return g;
}

/* A higher loss is worse: the arm on whose side the gap is. */
static const char *worse_arm(const struct connector *c, double gap)
{
    if (!isfinite(gap) || gap == 0) {
        return NULL;
    }
    return c->arms[gap > 0 ? 0 : 1];
}

/* inflation is the relative increase of perplexity, exp(gap) - 1. */
static void put_gap(const struct connector *c, cJSON *o, const struct gap *g)
{
    json_put_string(o, "measure", g->measure);
    json_put_number(o, "gap", g->mean);
    json_put_number(o, "se", g->se);
    json_put_number(o, "ci_low", g->low);
    json_put_number(o, "ci_high", g->high);
    json_put_number(o, "n", g->n);
    json_put_number(o, "inflation", elementary_expm1(g->mean));
    json_put_string(o, "worse", worse_arm(c, g->mean));
    put_truth(o, "shows", g->shows);
    json_put_string(o, "why", g->why);
}

/* The gap in the whole mix, and at each setting of the contrast. */
static void put_loss(struct connector *c)
{
    cJSON *o = json_object();
    cJSON *settings = json_array();
    const struct figure *f = work_figure(c->w, c->contrast, c->loss);
    const struct contrast_layout *cl = &c->w->ev->rules->layout.contrasts[c->contrast];
    c->whole = gap_of(c, c->loss);
    put_gap(c, o, &c->whole);
    json_put(c->t->json, "loss", o);
    for (size_t s = 0; s < cl->n_settings; s++) {
        double gap = point_or_nan(&f->settings[s]);
        cJSON *at = json_object();
        json_put_string(at, "setting", cl->names[s]);
        json_put_number(at, "gap", gap);
        json_put_number(at, "inflation", elementary_expm1(gap));
        json_push(settings, at);
    }
    json_put(c->t->json, "settings", settings);
}

/* Whether a source's gap has the sign of the whole one. */
static enum truth same_sign(double gap, double whole)
{
    if (!isfinite(gap) || !isfinite(whole)) {
        return TRUTH_UNKNOWN;
    }
    return truth_of((gap > 0 && whole > 0) || (gap < 0 && whole < 0));
}

/* How much of the whole gap is the source's; returns it. */
static double put_share(const struct connector *c, cJSON *o, const cJSON *source)
{
    const size_t part = program_find_measure(c->w->p, source->valuestring);
    const struct source_share s = connector_share(c->w, c->contrast, c->loss, part, source->string);
    json_put_number(o, "weight", s.weight);
    json_put_number(o, "share", s.share);
    json_put_number(o, "share_se", s.se);
    json_put_string(o, "share_why", s.why);
    return s.share;
}

/* The gaps in the sources of the mix. Unless all have the sign of the whole, `limit` warns against
 * attributing the gap to the architecture. */
static void put_sources(struct connector *c)
{
    const cJSON *sources = json_member(c->t->spec->spec, "sources");
    const cJSON *source = NULL;
    cJSON *list = json_array();
    double rest = sources == NULL ? (double)NAN : 1;
    c->agree = sources == NULL ? TRUTH_UNKNOWN : TRUTH_TRUE;
    c->agree_why = "no sources are declared";
    cJSON_ArrayForEach(source, sources)
    {
        struct gap g = gap_of(c, program_find_measure(c->w->p, source->valuestring));
        cJSON *o = json_object();
        json_put_string(o, "source", source->string);
        put_gap(c, o, &g);
        rest -= put_share(c, o, source);
        json_push(list, o);
        /* A source with a gap of exactly 0 does not agree. */
        c->agree = truth_and(c->agree, same_sign(g.mean, c->whole.mean));
        c->agree_why = "a source's gap, or the whole one, is undetermined";
    }
    json_put(c->t->json, "sources", list);
    json_put_number(c->t->json, "sources_rest", rest);
    put_truth(c->t->json, "sources_agree", c->agree);
    const char *limit = NULL;
    if (c->agree != TRUTH_TRUE) {
        limit = arena_printf(c->w->arena, "%s%s.", LIMIT,
                             c->agree == TRUTH_FALSE ? "they do not" : c->agree_why);
    }
    json_put_string(c->t->json, "limit", limit);
}

/* Neither the loss nor one of its sources. */
static bool is_benchmark(const struct connector *c, size_t measure)
{
    const cJSON *source = NULL;
    if (!c->w->p->measures[measure].counted || measure == c->loss) {
        return false;
    }
    cJSON_ArrayForEach(source, json_member(c->t->spec->spec, "sources"))
    {
        if (strcmp(source->valuestring, c->w->p->measures[measure].name) == 0) {
            return false;
        }
    }
    return true;
}

/* Whether a measure clears by the binding counter; one without a floor always does. */
static enum truth clears(const struct work *w, size_t measure)
{
    const struct plan_program *p = w->p;
    if (!p->measures[measure].has_floor) {
        return TRUTH_TRUE;
    }
    return p->binding_counter == INDEX_NONE
               ? TRUTH_UNKNOWN
               : w->ev->clears[p->binding_counter * p->n_measures + measure];
}

/* 1 when arm a does better by this difference, -1 when arm b does. */
static int better_arm(const struct plan_measure *m, double difference)
{
    int sign = difference > 0 ? 1 : (difference < 0 ? -1 : 0);
    return m->lower_better ? -sign : sign;
}

/* One benchmark, added to the rung: it shows a difference if it clears and its interval leaves out
 * 0. */
static cJSON *benchmark_json(struct connector *c, size_t m)
{
    struct rung *r = &c->bench;
    const struct plan_measure *measure = &c->w->p->measures[m];
    struct gap g = gap_of(c, m);
    enum truth cleared = clears(c->w, m);
    enum truth shows = truth_and(cleared, g.shows);
    /* Only a difference that shows favors an arm. */
    int favours = shows == TRUTH_TRUE ? better_arm(measure, g.mean) : 0;
    cJSON *o = json_object();
    json_put_string(o, "measure", measure->name);
    put_truth(o, "clears", cleared);
    json_put_number(o, "difference", g.mean);
    json_put_number(o, "ci_low", g.low);
    json_put_number(o, "ci_high", g.high);
    put_truth(o, "shows", shows);
    json_put_string(o, "favours", favours == 0 ? NULL : c->arms[favours > 0 ? 0 : 1]);
    const char *why = cleared == TRUTH_UNKNOWN ? "whether it clears is undetermined" : g.why;
    json_put_string(o, "why", why);
    r->clears_any = truth_or(r->clears_any, cleared);
    r->shows = truth_or(r->shows, shows);
    r->disagree = r->disagree || (favours != 0 && r->favours != 0 && favours != r->favours);
    r->favours = favours != 0 ? favours : r->favours;
    if (shows == TRUTH_UNKNOWN && r->why == NULL) {
        r->why = arena_printf(c->w->arena, "%s: %s", measure->name, why);
    }
    if (cleared == TRUTH_UNKNOWN && r->clears_why == NULL) {
        r->clears_why = arena_printf(c->w->arena, "%s: %s", measure->name, why);
    }
    r->n++;
    return o;
}

/* The rung over all counted benchmarks; without one, everything about it is unknown. */
static void put_benchmarks(struct connector *c)
{
    struct rung *r = &c->bench;
    cJSON *o = json_object();
    cJSON *list = json_array();
    *r = (struct rung){.clears_any = TRUTH_FALSE, .shows = TRUTH_FALSE};
    for (size_t m = 0; m < c->w->p->n_measures; m++) {
        if (is_benchmark(c, m)) {
            json_push(list, benchmark_json(c, m));
        }
    }
    /* Nothing is counted beside the loss: the upper rung is missing. */
    if (r->n == 0) {
        r->clears_any = TRUTH_UNKNOWN;
        r->shows = TRUTH_UNKNOWN;
        r->why = "no benchmark is counted";
        r->clears_why = r->why;
    }
    if (r->disagree) {
        r->favours = 0;
    }
    json_put(o, "measures", list);
    put_truth(o, "clears_any", r->clears_any);
    put_truth(o, "shows", r->shows);
    json_put_string(o, "favours", r->favours == 0 ? NULL : c->arms[r->favours > 0 ? 0 : 1]);
    json_put_string(o, "why", r->disagree ? "measures that clear favour different arms" : r->why);
    json_put(c->t->json, "benchmarks", o);
}

struct verdict_case {
    const char *name; /* NULL: none of the four */
    const char *why;
    bool open; /* it is not known which */
};

/* The loss shows a gap: case A, B or C, or none of them. Rules are tried in this order. */
static struct verdict_case case_with_gap(const struct connector *c)
{
    const struct rung *r = &c->bench;
    if (r->clears_any == TRUTH_FALSE) {
        return (struct verdict_case){
            .name = "CASE-A",
            .why = "The loss rung shows the gap; no counted benchmark clears its floor."};
    }
    if (r->shows == TRUTH_UNKNOWN) {
        return (struct verdict_case){.why = r->why, .open = true};
    }
    if (r->clears_any == TRUTH_UNKNOWN) {
        return (struct verdict_case){.why = r->clears_why, .open = true};
    }
    if (r->shows == TRUTH_FALSE) {
        return (struct verdict_case){.why = "The loss rung shows a gap; benchmarks clear their "
                                            "floors and show none: none of the four cases."};
    }
    if (r->disagree) {
        return (struct verdict_case){
            .why = "Benchmarks that clear favour different arms: none of the four cases."};
    }
    if (r->why != NULL) { /* another one might yet disagree */
        return (struct verdict_case){.why = r->why, .open = true};
    }
    /* A lower loss of arm a is a negative gap, in favor of arm a. */
    bool same = r->favours == (c->whole.mean < 0 ? 1 : -1);
    return same ? (struct verdict_case){.name = "CASE-B",
                                        .why = "Loss and benchmarks favour the same arm."}
                : (struct verdict_case){.name = "CASE-C",
                                        .why = "Loss and benchmarks favour different arms."};
}

/* The case, or why it is open, from both rungs. */
static struct verdict_case case_of(const struct connector *c)
{
    const struct rung *r = &c->bench;
    if (c->whole.shows == TRUTH_UNKNOWN) {
        return (struct verdict_case){.why = c->whole.why != NULL ? c->whole.why
                                                                 : "the loss gap has no interval",
                                     .open = true};
    }
    if (c->whole.shows == TRUTH_TRUE) {
        return case_with_gap(c);
    }
    if (r->shows == TRUTH_UNKNOWN) {
        return (struct verdict_case){.why = r->why, .open = true};
    }
    return r->shows == TRUTH_FALSE
               ? (struct verdict_case){.name = "CASE-D", .why = "Neither rung shows a difference."}
               : (struct verdict_case){.why = "The benchmarks show a difference and the loss shows "
                                              "none: none of the four cases."};
}

/* The declared trigger: it fires when all of it holds, the perplexity ratio and the condition. It
 * suggests further work and binds nothing. */
static enum truth put_trigger(struct connector *c, const char **why)
{
    const cJSON *trigger = json_member(c->t->spec->spec, "trigger");
    if (trigger == NULL) {
        json_put_null(c->t->json, "trigger");
        *why = "no trigger is declared";
        return TRUTH_UNKNOWN;
    }
    const cJSON *at = json_member(trigger, "perplexity_ratio");
    const struct cond *condition = c->w->ev->rules->triggers[c->t->spec - c->w->p->instruments];
    /* The ratio of perplexities, the worse over the better. */
    double ratio = elementary_exp(fabs(c->whole.mean));
    enum truth exceeds = at == NULL     ? TRUTH_TRUE
                         : isnan(ratio) ? TRUTH_UNKNOWN
                                        : truth_of(ratio >= at->valuedouble);
    const char *open = exceeds == TRUTH_UNKNOWN ? c->whole.why : NULL;
    enum truth holds = condition == NULL
                           ? TRUTH_TRUE
                           : evaluation_truth(c->w->ev, condition, TRUTH_UNKNOWN, &open);
    enum truth fires = truth_and(exceeds, holds);
    cJSON *o = json_object();
    *why = fires == TRUTH_UNKNOWN ? open : NULL;
    json_put_number(o, "perplexity_ratio", at == NULL ? (double)NAN : at->valuedouble);
    json_put_number(o, "ratio", ratio);
    if (condition != NULL) {
        json_put_string(o, "condition", c->t->spec->trigger.text);
        put_truth(o, "holds", holds);
    }
    put_truth(o, "fires", fires);
    json_put_string(o, "why", at != NULL && isinf(ratio) ? BEYOND : *why);
    json_put(c->t->json, "trigger", o);
    return fires;
}

/* The fields that forecasts may read. */
static void answer(const struct connector *c, const struct verdict_case *which)
{
    /* While it is open which case it is, one that a rung rules out is false all the same. */
    /* Cases B and C both need a difference on both rungs. */
    enum truth both = truth_and(c->whole.shows, c->bench.shows);
    const struct {
        const char *field;
        const char *name;
        enum truth possible;
    } cases[] = {
        {"case_a", "CASE-A", truth_and(c->whole.shows, truth_not(c->bench.clears_any))},
        {"case_b", "CASE-B", both},
        {"case_c", "CASE-C", both},
        {"case_d", "CASE-D", truth_and(truth_not(c->whole.shows), truth_not(c->bench.shows))}};
    struct instrument_entry *t = c->t;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool is = which->name != NULL && strcmp(which->name, cases[i].name) == 0;
        entry_truth(t, cases[i].field,
                    which->open ? truth_and(cases[i].possible, TRUTH_UNKNOWN) : truth_of(is),
                    which->why);
    }
    entry_truth(t, "shows", c->whole.shows, c->whole.why);
    entry_truth(t, "sources_agree", c->agree, c->agree_why);
    entry_number(t, "gap", c->whole.mean, c->whole.why);
    entry_number(t, "gap_se", c->whole.se, c->whole.why);
    entry_number(t, "gap_low", c->whole.low, c->whole.why);
    entry_number(t, "gap_high", c->whole.high, c->whole.why);
    entry_number(t, "inflation", elementary_expm1(c->whole.mean),
                 c->whole.why != NULL ? c->whole.why : BEYOND);
}

/* The gap and the case in words. */
static const char *sentence(const struct connector *c, const struct verdict_case *which)
{
    struct arena *a = c->w->arena;
    if (!isfinite(c->whole.mean)) {
        return arena_printf(a, "The loss gap is undetermined: %s.", c->whole.why);
    }
    const char *worse = worse_arm(c, c->whole.mean);
    const char *gap =
        worse == NULL
            ? "The losses are equal"
            : arena_printf(a, "%s has the higher loss by %.4g nats (perplexity %.1f %% higher)",
                           worse, fabs(c->whole.mean), 100 * elementary_expm1(fabs(c->whole.mean)));
    if (which->open) {
        return arena_printf(a, "%s; which case it is, is undetermined: %s.", gap, which->why);
    }
    return which->name == NULL ? arena_printf(a, "%s. %s", gap, which->why)
                               : arena_printf(a, "%s: %s. %s", which->name, gap, which->why);
}

/* The contrast is the declared one or the program's main one; it always has two arms. */
void instrument_connector(struct instrument_entry *t)
{
    const struct work *w = t->w;
    const cJSON *named = json_member(t->spec->spec, "contrast");
    struct connector c = {.t = t, .w = w};
    c.contrast = named != NULL ? program_find_contrast(w->p, named->valuestring)
                               : instrument_main_contrast(w->p);
    c.loss = program_find_measure(w->p, json_member(t->spec->spec, "loss")->valuestring);
    const struct plan_contrast *k = &w->p->contrasts[c.contrast];
    c.arms[0] = w->p->factors[k->factor].levels[k->level_a].text;
    c.arms[1] = w->p->factors[k->factor].levels[k->level_b].text;
    json_put_string(t->json, "contrast", k->name);
    json_put_string(t->json, "a", c.arms[0]);
    json_put_string(t->json, "b", c.arms[1]);
    put_loss(&c);
    put_sources(&c);
    put_benchmarks(&c);
    struct verdict_case which = case_of(&c);
    json_put_string(t->json, "case", which.name);
    json_put_string(t->json, "case_why", which.why);
    const char *why = NULL;
    enum truth fires = put_trigger(&c, &why);
    answer(&c, &which);
    entry_truth(t, "trigger", fires, why);
    entry_words(t->json,
                "Which rung of the ladder shows the difference of the arms: the validation loss, "
                "the benchmarks, both or neither.",
                sentence(&c, &which));
}
