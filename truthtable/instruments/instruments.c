/*
 * Computes all instruments and forecasts of a program and writes instruments.json. The evidence is
 * evaluated again and must give the verdict's outcome, gates and contrasts; otherwise the whole
 * file is refused, because instruments beside another verdict would mislead. Each entry says
 * whether it was locked, amended before scores were seen, or added post hoc. Forecasts come last,
 * since they may read the fields of instruments.
 */
#include "truthtable/instruments/instruments.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/evaluate/scoring.h"
#include "truthtable/evaluate/verdict_file.h"
#include "truthtable/evidence/evidence.h"
#include "truthtable/instruments/condition_means.h"
#include "truthtable/instruments/instrument_work.h"

#define POST_HOC "amended, post hoc"

/* An empty instruments.json. */
static cJSON *envelope(const struct instruments_input *in)
{
    cJSON *o = json_object();
    const cJSON *outcome = json_member(in->verdict, "outcome");
    json_put_int(o, "schema", INSTRUMENTS_SCHEMA);
    json_put_string(o, "program", in->program->name);
    json_put_string(o, "root", in->lock->root);
    json_put_string(o, "head", in->lock->head);
    /* For every reader of the file, in its first members. */
    json_put_bool(o, "binds", false);
    json_put_string(o, "verdict", cJSON_IsString(outcome) ? outcome->valuestring : NULL);
    return o;
}

/* instruments.json with a reason instead of instruments. */
static cJSON *failed(const struct instruments_input *in, const char *why)
{
    cJSON *o = envelope(in);
    json_put_string(o, "why", why);
    json_put(o, "instruments", json_array());
    json_put(o, "means", json_array());
    json_put(o, "ranks", json_array());
    json_put(o, "forecasts", json_array());
    json_put_null(o, "forecast_score");
    json_put_null(o, "priors");
    return o;
}

/* Whether a change of an amendment touches the member of a section, or all of them. */
static bool touches(const cJSON *change, const char *section, const char *name)
{
    const cJSON *path = json_member(change, "path");
    const char *const want[] = {"plan", section, name};
    for (int i = 0; i < (int)ARRAY_LEN(want) && i < cJSON_GetArraySize(path); i++) {
        const cJSON *key = cJSON_GetArrayItem(path, i);
        if (!cJSON_IsString(key) || strcmp(key->valuestring, want[i]) != 0) {
            return false;
        }
    }
    return cJSON_GetArraySize(path) > 1;
}

/* How a member came into the plan: "locked", "amended", or post hoc once any amendment after scores
 * were seen touched it. */
static const char *declared(const struct instruments_input *in, const char *section,
                            const char *name)
{
    const char *how = "locked";
    const cJSON *amendment = NULL;
    cJSON_ArrayForEach(amendment, in->amendments)
    {
        const cJSON *level = json_member(amendment, "level");
        bool seen = cJSON_IsString(level) && strcmp(level->valuestring, "seen") == 0;
        const cJSON *change = NULL;
        cJSON_ArrayForEach(change, json_member(amendment, "changes"))
        {
            if (!touches(change, section, name)) {
                continue;
            }
            /* One post hoc change is enough, whatever came before or after. */
            if (seen || cJSON_IsTrue(json_member(change, "post_hoc"))) {
                return POST_HOC;
            }
            how = "amended";
        }
    }
    return how;
}

/* The fields of an instrument; unknown ones are null. */
static cJSON *fields_json(const struct instrument_entry *t)
{
    size_t n = 0;
    const struct instrument_field *known = instrument_fields(t->kind, &n);
    cJSON *o = json_object();
    for (size_t i = 0; i < n; i++) {
        if (known[i].is_truth) {
            put_truth(o, known[i].name, t->fields[i].truth);
        } else {
            put_point(o, known[i].name, &t->fields[i].number);
        }
    }
    return o;
}

/* Every field starts as unknown, so one that an instrument forgets is never a value. */
static struct instrument_answer *no_answers(const struct work *w, enum instrument_kind kind)
{
    size_t n = 0;
    (void)instrument_fields(kind, &n);
    struct instrument_answer *fields = arena_array(w->arena, n, sizeof(*fields));
    for (size_t i = 0; i < n; i++) {
        fields[i] = (struct instrument_answer){.truth = TRUTH_UNKNOWN,
                                               .number = number_unknown("not computed")};
    }
    return fields;
}

/* One declared instrument, computed by its kind. */
static cJSON *declared_json(const struct work *w, size_t i, struct instrument_answer **fields)
{
    static void (*const kinds[INSTRUMENT_KIND_NR])(struct instrument_entry *) = {
        [INSTRUMENT_BAYES] = instrument_bayes,         [INSTRUMENT_MIXED] = instrument_mixed,
        [INSTRUMENT_CONNECTOR] = instrument_connector, [INSTRUMENT_ITEMS] = instrument_items,
        [INSTRUMENT_ROUTER] = instrument_router,       [INSTRUMENT_ANCHORS] = instrument_anchors,
        [INSTRUMENT_COURSE] = instrument_course};
    const struct plan_instrument *spec = &w->p->instruments[i];
    struct instrument_entry t = {.w = w, .spec = spec, .kind = instrument_kind_find(spec->kind)};
    t.json = json_object();
    t.fields = no_answers(w, t.kind);
    *fields = t.fields;
    json_put_string(t.json, "name", spec->name);
    json_put_string(t.json, "kind", spec->kind);
    json_put_string(t.json, "declared", declared(w->in, "instrument", spec->name));
    json_put_bool(t.json, "discussion_only", instrument_discussion_only(spec));
    json_put_string(t.json, "why", NULL);
    kinds[t.kind](&t);
    json_put(t.json, "fields", fields_json(&t));
    return t.json;
}

/* The instruments without a declaration. Their names are reserved (asserted), and without apparatus
 * checks the last one is left out. */
static void push_always(const struct work *w, cJSON *list)
{
    static const struct {
        const char *name;
        void (*compute)(const struct work *, cJSON *);
    } always[] = {{"margins", instrument_margins},
                  {"dispersion", instrument_dispersion},
                  {"detectable", instrument_detectable},
                  {"apparatus", instrument_apparatus}};
    /* The apparatus is last in the list. */
    size_t n = ARRAY_LEN(always) - (w->p->n_apparatus == 0 ? 1 : 0);
    for (size_t i = 0; i < n; i++) {
        cJSON *o = json_object();
        json_put_string(o, "name", always[i].name);
        json_put_string(o, "kind", always[i].name);
        json_put_string(o, "declared", "always");
        json_put_bool(o, "discussion_only", false);
        json_put_string(o, "why", NULL);
        assert(instrument_name_is_taken(always[i].name));
        always[i].compute(w, o);
        json_put(o, "fields", json_object());
        json_push(list, o);
    }
}

struct forecast_sum {
    size_t scored;
    double brier, bits;
};

/* A forecast is scored only if its truth is known; `sum` collects the scores. */
static cJSON *forecast_json(const struct work *w, const struct table_evaluation *ev, size_t i,
                            struct forecast_sum *sum)
{
    const struct plan_forecast *f = &ev->rules->program->forecasts[i];
    const char *why = "undetermined";
    enum truth t = evaluation_truth(ev, ev->rules->forecasts[i], TRUTH_UNKNOWN, &why);
    /* An unknown forecast is neither right nor wrong. */
    bool known = t != TRUTH_UNKNOWN;
    double brier = known ? scoring_forecast_brier(f->confidence, t == TRUTH_TRUE) : (double)NAN;
    double bits = known ? scoring_forecast_bits(f->confidence, t == TRUTH_TRUE) : (double)NAN;
    cJSON *o = json_object();
    json_put_string(o, "name", f->name);
    const char *how = declared(w->in, "forecast", f->name);
    json_put_string(o, "declared", how);
    json_put_bool(o, "post_hoc", strcmp(how, POST_HOC) == 0);
    json_put_string(o, "condition", f->condition.text);
    json_put_number(o, "confidence", f->confidence);
    put_truth(o, "outcome", t);
    json_put_string(o, "why", known ? NULL : why);
    json_put_number(o, "brier", brier);
    json_put_number(o, "bits", bits);
    if (known) {
        sum->scored++;
        sum->brier += brier;
        sum->bits += bits;
    }
    return o;
}

/* All forecasts and their score: the mean Brier score and the sum of bits. */
static void put_forecasts(cJSON *out, const struct work *w, const struct table_evaluation *ev)
{
    size_t n = ev->rules->program->n_forecasts;
    struct forecast_sum sum = {0};
    cJSON *list = json_array();
    cJSON *score = json_object();
    for (size_t i = 0; i < n; i++) {
        json_push(list, forecast_json(w, ev, i, &sum));
    }
    bool any = sum.scored > 0;
    json_put(out, "forecasts", list);
    json_put_int(score, "stated", (int64_t)n);
    json_put_int(score, "scored", (int64_t)sum.scored);
    json_put_int(score, "unknown", (int64_t)(n - sum.scored));
    json_put_number(score, "brier", any ? sum.brier / (double)sum.scored : (double)NAN);
    json_put_number(score, "bits", any ? sum.bits : (double)NAN);
    json_put_string(score, "why",
                    any      ? NULL
                    : n == 0 ? "no forecasts are stated"
                             : "no forecast's truth is known");
    json_put(out, "forecast_score", score);
}

/* A member under another name; null if it is absent. */
static void copy_member(cJSON *to, const char *key, const cJSON *from, const char *member)
{
    const cJSON *v = json_member(from, member);
    json_put(to, key, v == NULL ? cJSON_CreateNull() : json_copy(v));
}

/* The verdict's own figures: they are not computed twice. */
static void put_priors(cJSON *out, const cJSON *verdict)
{
    cJSON *o = json_object();
    copy_member(o, "outcome", verdict, "outcome");
    copy_member(o, "prior", verdict, "prior");
    copy_member(o, "bits", verdict, "surprisal_bits");
    copy_member(o, "brier", verdict, "brier");
    json_put_string(o, "why",
                    cJSON_IsNumber(json_member(verdict, "prior")) ? NULL : "no outcome binds");
    json_put(out, "priors", o);
}

/* Instruments first, then forecasts over an evaluation that includes their answers. */
static cJSON *list_instruments(const struct work *w)
{
    const struct plan_program *p = w->p;
    cJSON *o = envelope(w->in);
    cJSON *list = json_array();
    struct instrument_answer **answers =
        arena_array(w->arena, p->n_instruments + 1, sizeof(*answers));
    json_put_string(o, "why", NULL);
    for (size_t i = 0; i < p->n_instruments; i++) {
        json_push(list, declared_json(w, i, &answers[i]));
    }
    push_always(w, list);
    json_put(o, "instruments", list);
    json_put(o, "means", condition_means(w));
    json_put(o, "ranks", condition_ranks(w));
    /* A copy that knows the answers; the verdict's own evaluation never does. */
    struct table_evaluation with = *w->ev;
    with.instruments = (const struct instrument_answer *const *)answers;
    put_forecasts(o, w, &with);
    put_priors(o, w->in->verdict);
    return o;
}

/* A contrast's Bayes factor is over the priors that instruments name. Those may be amended after
 * the verdict, which keeps what it was computed with. */
static void forget_bayes_factors(cJSON *contrasts)
{
    cJSON *contrast = NULL;
    cJSON_ArrayForEach(contrast, contrasts)
    {
        cJSON *measure = NULL;
        cJSON_ArrayForEach(measure, cJSON_GetObjectItemCaseSensitive(contrast, "measures"))
        {
            cJSON_DeleteItemFromObjectCaseSensitive(measure, "bf10");
            cJSON_DeleteItemFromObjectCaseSensitive(measure, "bf10_bounds");
        }
    }
}

/* Whether two verdicts have equal contrasts, apart from Bayes factors. */
static bool same_contrasts(const cJSON *a, const cJSON *b)
{
    cJSON *x = json_copy(json_member(a, "contrasts"));
    cJSON *y = json_copy(json_member(b, "contrasts"));
    forget_bayes_factors(x);
    forget_bayes_factors(y);
    bool same = json_equal(x, y);
    cJSON_Delete(x);
    cJSON_Delete(y);
    return same;
}

/* NULL when the evidence gives the verdict at hand; else the first member that differs. */
static const char *disagreement(const struct evidence *e, const struct instruments_input *in)
{
    /* Contrasts are compared apart, without their Bayes factors. */
    static const char *const members[] = {"outcome", "gates"};
    struct table_verdict v;
    struct err err = {0};
    const char *why = NULL;
    if (verdict_compute(e, in->lock->root, in->lock->head, &v, &err) != 0) {
        verdict_release(&v);
        return "outcome";
    }
    for (size_t i = 0; i < ARRAY_LEN(members) && why == NULL; i++) {
        if (!json_equal(json_member(verdict_json(&v), members[i]),
                        json_member(in->verdict, members[i]))) {
            why = members[i];
        }
    }
    if (why == NULL && !same_contrasts(verdict_json(&v), in->verdict)) {
        why = "contrasts";
    }
    verdict_release(&v);
    return why;
}

/* Evaluates the evidence and computes everything. `rules` are compiled. */
static cJSON *evaluate(const struct instruments_input *in, const struct evidence *e,
                       const struct rules *rules)
{
    struct arena arena;
    struct coverage coverage;
    struct table_reading reading;
    struct table_evaluation ev;
    arena_init(&arena);
    coverage_init(&coverage, e, &arena);
    reading_of_evidence(&reading, e, rules, &coverage, &arena);
    evaluation_run(&ev, rules, &reading, &arena);
    const struct work w = {
        .in = in, .p = in->program, .e = e, .coverage = &coverage, .ev = &ev, .arena = &arena};
    cJSON *o = list_instruments(&w);
    arena_release(&arena);
    return o;
}

/* Never fails: what prevents the computation becomes the file's "why". */
cJSON *instruments_of_evidence(const struct instruments_input *in, const struct evidence *e)
{
    struct rules rules;
    struct diag diag;
    struct err err = {0};
    cJSON *o = NULL;
    diag_init(&diag, in->program->path);
    if (rules_compile(in->program, &rules, &diag, &err) != 0) {
        o = failed(in, err.msg);
    } else {
        const char *off = disagreement(e, in);
        char text[128];
        (void)snprintf(text, sizeof(text), "the evidence does not give the verdict's %s",
                       off == NULL ? "" : off);
        o = off == NULL ? evaluate(in, e, &rules) : failed(in, text);
    }
    rules_release(&rules);
    diag_release(&diag);
    return o;
}

/* The evidence of the folder, read as the verdict read it. */
cJSON *instruments_compute(const struct instruments_input *in)
{
    struct evidence e;
    struct err err = {0};
    evidence_init(&e, in->program);
    cJSON *o = folder_evidence(&e, in->folder, in->provenance, &err) == 0
                   ? instruments_of_evidence(in, &e)
                   : failed(in, err.msg);
    evidence_release(&e);
    return o;
}
