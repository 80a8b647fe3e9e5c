/*
 * Every change is first classified by its path alone (place_of_path), into one row of the table of
 * docs/amendments.md; the level then selects the column. Two readers use the same table: the
 * amending program (amend_classify), which also knows both programs and which stages have started,
 * and every later reader of the file (amend_check_file), which has only the plans. The second must
 * accept all that the first accepted, so its checks are the weaker ones.
 */
#include "prereg/amend/amend_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/amend/amend_known.h"
#include "prereg/amend/amend_reads.h"
#include "prereg/amend/amendment.h"
#include "prereg/program/condition_names.h"

/* Rows of the table, in groups that share all conditions. */
enum rule_kind {
    KIND_SEALED,
    KIND_FIXED,
    KIND_METRIC,
    KIND_PARAMS,
    KIND_DATA,
    KIND_VALIDITY,
    KIND_APPARATUS,
    KIND_INSTRUMENTS,
    KIND_FORECASTS,
    KIND_NR
};

/* Whether a change of that kind is allowed at that level: the table of docs/amendments.md. The
 * columns are nothing_run, nothing_scored, sealed, seen. */
static const bool ALLOWED[KIND_NR][ACCESS_NR] = {
    [KIND_SEALED] = {false, false, false, false},  [KIND_FIXED] = {false, false, false, false},
    [KIND_METRIC] = {true, true, true, false},     [KIND_PARAMS] = {true, true, true, false},
    [KIND_DATA] = {true, true, true, false},       [KIND_VALIDITY] = {true, true, false, false},
    [KIND_APPARATUS] = {true, true, false, false}, [KIND_INSTRUMENTS] = {true, true, true, true},
    [KIND_FORECASTS] = {true, true, false, false},
};

/* The row that a change belongs to, and what messages and reports call it. */
struct place_of {
    enum rule_kind kind;
    const char *section;
    const char *stage; /* whose params; else NULL */
};

struct named_place {
    const char *key;
    struct place_of of;
};

static struct place_of find_named(const struct named_place *list, size_t n, const char *key,
                                  struct place_of other)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].key, key) == 0) {
            return list[i].of;
        }
    }
    return other;
}

/* The n-th key of a change's path; "" beyond its end. */
static const char *key_at(const cJSON *change, int n)
{
    const cJSON *key = cJSON_GetArrayItem(json_member(change, "path"), n);
    return cJSON_IsString(key) ? key->valuestring : "";
}

static bool has_both(const cJSON *change)
{
    return cJSON_IsString(json_member(change, "from")) && cJSON_IsString(json_member(change, "to"));
}

/* A metric may be replaced; one that is added or removed makes another measure. */
static struct place_of of_measure(const cJSON *change)
{
    static const struct named_place keys[] = {
        {"metric", {KIND_METRIC, "metric of a measure", NULL}},
        {"floor", {KIND_SEALED, "floors", NULL}},
        {"best_arm", {KIND_SEALED, "floors", NULL}},
        {"chance", {KIND_SEALED, "chance", NULL}},
        {"items", {KIND_SEALED, "items", NULL}},
    };
    struct place_of other = {KIND_SEALED, "measures", NULL};
    struct place_of of = find_named(keys, ARRAY_LEN(keys), key_at(change, 3), other);
    return of.kind != KIND_METRIC || has_both(change) ? of : other;
}

static struct place_of of_outcome(const cJSON *change)
{
    bool prior = strcmp(key_at(change, 3), "prior") == 0;
    return (struct place_of){KIND_SEALED, prior ? "priors" : "outcomes", NULL};
}

/* Only the parameters of a stage may change; command, order and environment may not. */
static struct place_of of_stage(const cJSON *change)
{
    const char *key = key_at(change, 3);
    if (strcmp(key, "params") == 0 || strcmp(key, "when") == 0) {
        return (struct place_of){KIND_PARAMS, "params of a stage", key_at(change, 2)};
    }
    return (struct place_of){KIND_FIXED, "stages", NULL};
}

/* A path may be replaced; an added or removed entry of [data] is not a change of path. */
static struct place_of of_data(const cJSON *change)
{
    bool both = has_both(change) && key_at(change, 2)[0] != '\0';
    return (struct place_of){both ? KIND_DATA : KIND_FIXED, both ? "data path" : "data", NULL};
}

/* Sections of the plan by name. The last line is the rule that nothing is open by omission. */
static struct place_of of_plan(const cJSON *change, const char *section)
{
    static const struct named_place sections[] = {
        {"factor", {KIND_SEALED, "factors", NULL}},
        {"counter", {KIND_SEALED, "counters", NULL}},
        {"contrast", {KIND_SEALED, "contrasts", NULL}},
        {"input", {KIND_SEALED, "inputs", NULL}},
        {"table", {KIND_SEALED, "table", NULL}},
        {"exclusion", {KIND_SEALED, "budget", NULL}},
        {"scope", {KIND_SEALED, "scope", NULL}},
        {"same_work", {KIND_SEALED, "same work", NULL}},
        {"validity", {KIND_VALIDITY, "validity", NULL}},
        {"apparatus", {KIND_APPARATUS, "apparatus", NULL}},
        {"instrument", {KIND_INSTRUMENTS, "instruments", NULL}},
        {"forecast", {KIND_FORECASTS, "forecasts", NULL}},
        {"program", {KIND_FIXED, "the program's name and question", NULL}},
        {"pin", {KIND_FIXED, "[pin]", NULL}},
        {"lock", {KIND_FIXED, "[lock]", NULL}},
        {"release", {KIND_FIXED, "[release]", NULL}},
        {"reuse", {KIND_FIXED, "[reuse]", NULL}},
    };
    if (strcmp(section, "measure") == 0) {
        return of_measure(change);
    }
    if (strcmp(section, "outcome") == 0) {
        return of_outcome(change);
    }
    if (strcmp(section, "stage") == 0) {
        return of_stage(change);
    }
    if (strcmp(section, "data") == 0) {
        return of_data(change);
    }
    return find_named(sections, ARRAY_LEN(sections), section,
                      (struct place_of){KIND_FIXED, "what the table does not name", NULL});
}

/* A change of order is judged as its section. Measures and stages have several rows; their order
 * belongs to the sealed ones. */
static struct place_of of_order(const cJSON *change)
{
    const char *section = key_at(change, 2);
    if (strcmp(section, "measure") == 0 || strcmp(section, "stage") == 0) {
        return (struct place_of){KIND_SEALED, section[0] == 'm' ? "measures" : "stages", NULL};
    }
    return of_plan(change, section);
}

/* Classifies by the path alone. Files may be added and removed with the models of [apparatus]; a
 * digest that changes in place is a changed worker or pinned file. */
static struct place_of place_of_path(const cJSON *change)
{
    const char *part = key_at(change, 0);
    const char *key = key_at(change, 1);
    bool both = json_member(change, "from") != NULL && json_member(change, "to") != NULL;
    if (strcmp(part, "plan") == 0) {
        return strcmp(key, "order") == 0 ? of_order(change) : of_plan(change, key);
    }
    if (strcmp(part, "solved") == 0 && key_at(change, 2)[0] != '\0') {
        return (struct place_of){KIND_PARAMS, "params of a stage", key_at(change, 2)};
    }
    if (strcmp(part, "files") == 0 && key[0] != '\0' && !both) {
        return (struct place_of){KIND_APPARATUS, "apparatus", NULL};
    }
    return (struct place_of){KIND_FIXED,
                             strcmp(part, "data") == 0           ? "contents of data"
                             : strcmp(part, "files") == 0        ? "workers and pinned files"
                             : strcmp(part, "reuse") == 0        ? "what is reused"
                             : strcmp(part, "environments") == 0 ? "packages of an environment"
                                                                 : "what was solved",
                             NULL};
}

/* Also uses the programs: a file that is the model of a check both before and after, or in
 * neither, did not come or go with a check. */
static struct place_of place_in(const struct amend_state *s, const cJSON *change)
{
    const char *key = key_at(change, 1);
    struct place_of of = place_of_path(change);
    if (strcmp(key_at(change, 0), "files") == 0 &&
        amend_names_model(s->now->tree, key) == amend_names_model(s->then->tree, key)) {
        of = (struct place_of){KIND_FIXED, "workers and pinned files", NULL};
    }
    return of;
}

struct seen_plans {
    const cJSON *before;
    const cJSON *after;
    bool stated; /* something is known: forecasts hold as they were made */
};

/* Why the instrument may not be changed so, on the heap; NULL: it may. */
static char *why_not_instrument(const struct seen_plans *plans, const cJSON *change)
{
    const char *reader = amend_bf10_reader(plans->before, plans->after, change);
    if (reader != NULL) {
        return xasprintf("the condition \"%.80s\" reads bf10 under its priors, so they are sealed "
                         "like the table: " AMEND_SUPERSEDE,
                         reader);
    }
    reader = plans->stated ? amend_forecast_reader(plans->before, plans->after, change) : NULL;
    return reader == NULL ? NULL
                          : xasprintf("the forecast \"%.80s\" reads it, and would be another: "
                                      "declare a new instrument after it",
                                      reader);
}

/* A measure may not get a metric that another measure has, whose floor was chosen for it. */
static char *why_not_owner(const cJSON *plan, const cJSON *change)
{
    const char *owner = plan == NULL ? NULL : amend_metric_owner(plan, change);
    return owner == NULL ? NULL
                         : xasprintf("it is the metric of measure.%.60s, whose floor is locked: it "
                                     "would be held to another",
                                     owner);
}

/* Whether "post_hoc" is what level and known results demand. At nothing_scored a forecast or a
 * validity rule may rest on visible results of unsealed stages, which the file alone does not show:
 * both values are accepted there. */
static bool is_marked(const struct amend_file *f, const cJSON *change, enum rule_kind kind)
{
    bool post_hoc = cJSON_IsTrue(json_member(change, "post_hoc"));
    return post_hoc == (f->level == ACCESS_SEEN || amend_is_known(f->known, change)) ||
           ((kind == KIND_FORECASTS || kind == KIND_VALIDITY) && f->level == ACCESS_NOTHING_SCORED);
}

/* Whether an added or removed digest is that of a reference model. */
static bool is_of_model(const struct amend_file *f, const cJSON *change)
{
    const char *file = key_at(change, 1);
    bool comes = json_member(change, "to") != NULL;
    return comes ? amend_names_model(f->after, file)
                 : amend_names_model(f->before, file) && !amend_names_file(f->after, file);
}

/* The checks of a file, from the cheapest: level, mark, model, then what the plans must be
 * searched for. */
static char *why_not_path(const struct amend_file *f, const cJSON *change, enum rule_kind kind)
{
    const struct seen_plans plans = {f->before, f->after, f->level >= ACCESS_SEALED};
    if (!ALLOWED[kind][f->level]) {
        return xasprintf("is changed by no amendment when %s", access_level_words(f->level));
    }
    if (!is_marked(f, change, kind)) {
        return xstrdup("its \"post_hoc\" is not as its level says, or what was known then");
    }
    if (kind == KIND_APPARATUS && strcmp(key_at(change, 0), "files") == 0 &&
        !is_of_model(f, change)) {
        return xstrdup(
            "is not a reference model that was added or removed: no amendment changes it");
    }
    if (kind == KIND_METRIC) {
        char *why = why_not_owner(f->before, change);
        return why != NULL ? why : why_not_owner(f->locked, change);
    }
    return kind == KIND_INSTRUMENTS ? why_not_instrument(&plans, change) : NULL;
}

int amend_check_file(const struct amend_file *f, struct err *err)
{
    const cJSON *change;
    cJSON_ArrayForEach(change, f->changes)
    {
        struct place_of of = place_of_path(change);
        char *why = why_not_path(f, change, of.kind);
        if (why != NULL) {
            struct strbuf path = STRBUF_INIT;
            amendment_path_text(change, &path);
            int rc = err_set(err, ERR_LOCK, "%.100s (%s): %s", path.buf == NULL ? "" : path.buf,
                             of.section, why);
            strbuf_release(&path);
            free(why);
            return rc;
        }
    }
    return 0;
}

/* ---- rules that need more than the level ---- */

static bool has_begun(const struct amend_state *s, size_t stage)
{
    return stage_set_has(&s->started, stage);
}

/* Results of a stage that is not sealed are visible as soon as one of its tasks has started,
 * whatever is sealed beside it. */
static bool is_open(const struct amend_state *s, size_t stage)
{
    return !program_stage_is_sealed(s->now, stage) && has_begun(s, stage);
}

static bool is_any_open(const struct amend_state *s)
{
    bool any = false;
    for (size_t i = 0; i < s->now->n_stages; i++) {
        any = any || is_open(s, i);
    }
    return any;
}

/* A changed metric can move a measure to another stage, and with it the seal. */
static bool same_seals(const struct amend_state *s)
{
    bool same = s->now->n_stages == s->then->n_stages;
    for (size_t i = 0; same && i < s->now->n_stages; i++) {
        same = program_stage_is_sealed(s->now, i) == program_stage_is_sealed(s->then, i);
    }
    return same;
}

/* Neither the stage that the metric came from nor the one it moves to may have visible results. */
static char *why_not_metric(const struct amend_state *s, const cJSON *change)
{
    size_t before = program_find_measure(s->now, key_at(change, 2));
    size_t after = program_find_measure(s->then, key_at(change, 2));
    if (before == INDEX_NONE || after == INDEX_NONE) {
        return xstrdup("the measures themselves are sealed for good: " AMEND_SUPERSEDE);
    }
    size_t a = s->now->measures[before].stage;
    size_t b = program_find_stage(s->now, s->then->stages[s->then->measures[after].stage].name);
    size_t open = is_open(s, a) ? a : b != INDEX_NONE && is_open(s, b) ? b : INDEX_NONE;
    if (open != INDEX_NONE) {
        return xasprintf("the results of stage %s are visible: it could be chosen by what they are",
                         s->now->stages[open].name);
    }
    char *owned = why_not_owner(s->now->tree, change);
    if (owned != NULL) {
        return owned;
    }
    return same_seals(s) ? NULL
                         : xstrdup("it would change which stages are sealed: " AMEND_SUPERSEDE);
}

/* Parameters are fixed as soon as one task of the stage has started with them. */
static char *why_not_params(const struct amend_state *s, const char *name)
{
    size_t stage = program_find_stage(s->now, name);
    if (stage == INDEX_NONE) {
        return xstrdup("the stages are sealed for good: " AMEND_SUPERSEDE);
    }
    if (s->now->reuse.receipt != NULL) {
        return xstrdup(
            "cells are reused from an earlier receipt as the same work: " AMEND_SUPERSEDE);
    }
    return has_begun(s, stage) ? xasprintf("a task of stage %s has been started", name) : NULL;
}

/* Why the amending program refuses this change, on the heap; NULL: it is allowed. */
static char *why_not(const struct amend_state *s, const cJSON *change, const struct place_of *of)
{
    if (of->kind == KIND_SEALED) {
        return xstrdup("sealed for good: " AMEND_SUPERSEDE);
    }
    if (of->kind == KIND_FIXED) {
        return xstrdup("no amendment changes it: " AMEND_SUPERSEDE);
    }
    if (!ALLOWED[of->kind][s->level]) {
        return xasprintf("not any more: %s", access_level_words(s->level));
    }
    if (of->kind == KIND_METRIC) {
        return why_not_metric(s, change);
    }
    if (of->kind == KIND_INSTRUMENTS) {
        const struct seen_plans plans = {s->now->tree, s->then->tree,
                                         s->level >= ACCESS_SEALED || is_any_open(s)};
        return why_not_instrument(&plans, change);
    }
    return of->kind == KIND_PARAMS ? why_not_params(s, of->stage) : NULL;
}

/* ---- conditions on visible results ---- */

/* Whether the condition reads a fact of a stage with visible results, one of its measures, or any
 * instrument. */
static bool reads_open(const struct amend_state *s, const char *condition)
{
    for (size_t i = 0; i < s->now->n_stages; i++) {
        if (!is_open(s, i)) {
            continue;
        }
        if (condition_reads_fact_of(condition, s->now->stages[i].name) ||
            condition_reads_instrument(condition, NULL)) {
            return true;
        }
        for (size_t m = 0; m < s->now->n_measures; m++) {
            const struct plan_measure *of = &s->now->measures[m];
            if (of->stage == i && condition_reads_measure(condition, of->name)) {
                return true;
            }
        }
    }
    return false;
}

/* Whether a changed condition of the section reads visible results, as it was or as it is to be. A
 * path that ends at the section concerns all of its entries. */
static bool is_about_open(const struct amend_state *s, const cJSON *change, const char *section)
{
    const char *name = key_at(change, 2);
    bool of_one = strcmp(key_at(change, 1), section) == 0 && name[0] != '\0';
    const cJSON *trees[] = {s->now->tree, s->then->tree};
    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        const cJSON *one;
        cJSON_ArrayForEach(one, json_member(trees[i], section))
        {
            const cJSON *condition = json_member(one, "condition");
            if ((!of_one || strcmp(one->string, name) == 0) && cJSON_IsString(condition) &&
                reads_open(s, condition->valuestring)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_post_hoc(const struct amend_state *s, const cJSON *change, enum rule_kind kind)
{
    return s->level == ACCESS_SEEN || amend_is_known(s->known, change) ||
           (kind == KIND_FORECASTS && is_about_open(s, change, "forecast")) ||
           (kind == KIND_VALIDITY && is_about_open(s, change, "validity"));
}

void amend_classify(const struct amend_state *state, cJSON *changes, cJSON *refused)
{
    cJSON *change;
    cJSON_ArrayForEach(change, changes)
    {
        struct place_of of = place_in(state, change);
        char *why = why_not(state, change, &of);
        json_put_string(change, "section", of.section);
        json_put_bool(change, "post_hoc", is_post_hoc(state, change, of.kind));
        if (why != NULL) {
            struct strbuf path = STRBUF_INIT;
            cJSON *o = json_object();
            amendment_path_text(change, &path);
            json_put_string(o, "path", path.buf);
            json_put_string(o, "section", of.section);
            json_put_string(o, "why", why);
            json_push(refused, o);
            strbuf_release(&path);
        }
        free(why);
    }
}
