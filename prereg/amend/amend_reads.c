/*
 * Searches over the JSON trees of two plans, before and after an amendment. The order of
 * instruments matters: bf10 of a contrast is computed under the priors of the first bayes
 * instrument that names it, so that adding, removing or reordering instruments can change a value
 * that a condition reads without touching that condition.
 */
#include "prereg/amend/amend_reads.h"

#include <string.h>

#include "base/json/json.h"
#include "prereg/amend/amendment.h"
#include "prereg/program/condition_names.h"

/* ---- priors ---- */

static const char *text_of(const cJSON *o, const char *key, const char *other)
{
    const cJSON *v = json_member(o, key);
    return cJSON_IsString(v) ? v->valuestring : other;
}

struct source { /* where a contrast's bf10 gets its priors */
    const char *instrument;
    const cJSON *priors; /* NULL: there is none */
};

/* An instrument without "kind" has its name as its kind. */
static bool is_source(const cJSON *spec, const char *name, const char *contrast)
{
    return cJSON_IsObject(spec) && strcmp(text_of(spec, "kind", name), "bayes") == 0 &&
           strcmp(text_of(spec, "contrast", ""), contrast) == 0 &&
           cJSON_IsObject(json_member(spec, "priors"));
}

/* The first source in the order of the file. JSON of a lock is sorted by key, so a lock's plan
 * keeps that order in "order"; the tree of a program that was just read is in file order. */
static struct source source_of(const cJSON *plan, const char *contrast)
{
    const cJSON *all = json_member(plan, "instrument");
    const cJSON *order = json_member(json_member(plan, "order"), "instrument");
    bool listed = cJSON_IsArray(order);
    const cJSON *at = listed ? order->child : cJSON_IsObject(all) ? all->child : NULL;
    for (; at != NULL; at = at->next) {
        const char *name = !listed ? at->string : cJSON_IsString(at) ? at->valuestring : "";
        const cJSON *spec = json_member(all, name);
        if (is_source(spec, name, contrast)) {
            return (struct source){name, json_member(spec, "priors")};
        }
    }
    return (struct source){"", NULL};
}

/* Two absent priors are the same; one absent is a difference. */
static bool same_priors(const cJSON *a, const cJSON *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    cJSON *changes = amendment_changes(a, b);
    bool same = changes->child == NULL;
    cJSON_Delete(changes);
    return same;
}

/* ---- conditions that read bf10 ---- */

static bool reads_bf10(const cJSON *condition, const char *contrast)
{
    return cJSON_IsString(condition) && condition_reads_bf10(condition->valuestring, contrast);
}

/* The condition is the second member of each level: [name, condition]. */
static const char *find_input(const cJSON *plan, const char *contrast)
{
    const cJSON *input;
    cJSON_ArrayForEach(input, json_member(plan, "input"))
    {
        const cJSON *level;
        cJSON_ArrayForEach(level, json_member(input, "levels"))
        {
            const cJSON *condition = cJSON_GetArrayItem(level, 1);
            if (reads_bf10(condition, contrast)) {
                return condition->valuestring;
            }
        }
    }
    return NULL;
}

/* The same for the sections whose entries have a member "condition". */
static const char *find_in(const cJSON *section, const char *contrast)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, section)
    {
        const cJSON *condition = json_member(one, "condition");
        if (reads_bf10(condition, contrast)) {
            return condition->valuestring;
        }
    }
    return NULL;
}

static const char *find_binding(const cJSON *plan, const char *contrast)
{
    const char *found = find_input(plan, contrast);
    return found != NULL ? found : find_in(json_member(plan, "validity"), contrast);
}

static const char *find_forecast(const cJSON *plan, const char *contrast)
{
    return find_in(json_member(plan, "forecast"), contrast);
}

/* ---- both ---- */

/* Whether this change can be the cause of the other priors. A change of a third instrument cannot;
 * a change of the whole section, or of its order, can. */
static bool touches(const cJSON *change, const char *before, const char *after)
{
    const cJSON *path = json_member(change, "path");
    const cJSON *part = cJSON_GetArrayItem(path, 1);
    const cJSON *name = cJSON_GetArrayItem(path, 2);
    bool of_one = cJSON_IsString(part) && strcmp(part->valuestring, "instrument") == 0 &&
                  cJSON_IsString(name);
    return !of_one || strcmp(name->valuestring, before) == 0 ||
           strcmp(name->valuestring, after) == 0;
}

typedef const char *find_fn(const cJSON *plan, const char *contrast);

/* Compares the source of every contrast's bf10 before and after, and asks `find` for a reader of
 * those that differ, first in the plan before. */
static const char *find_reader(const cJSON *before, const cJSON *after, const cJSON *change,
                               find_fn *find)
{
    const cJSON *contrast;
    cJSON_ArrayForEach(contrast, json_member(before, "contrast"))
    {
        struct source was = source_of(before, contrast->string);
        struct source is = source_of(after, contrast->string);
        if (same_priors(was.priors, is.priors) || !touches(change, was.instrument, is.instrument)) {
            continue;
        }
        const char *reader = find(before, contrast->string);
        reader = reader != NULL ? reader : find(after, contrast->string);
        if (reader != NULL) {
            return reader;
        }
    }
    return NULL;
}

const char *amend_bf10_reader(const cJSON *before, const cJSON *after, const cJSON *change)
{
    return find_reader(before, after, change, find_binding);
}

const char *amend_forecast_reader(const cJSON *before, const cJSON *after, const cJSON *change)
{
    const cJSON *path = json_member(change, "path");
    const cJSON *part = cJSON_GetArrayItem(path, 1);
    const cJSON *name = cJSON_GetArrayItem(path, 2);
    bool of_one = cJSON_IsString(part) && strcmp(part->valuestring, "instrument") == 0 &&
                  cJSON_IsString(name);
    const cJSON *forecast;
    cJSON_ArrayForEach(forecast, json_member(before, "forecast"))
    {
        const cJSON *condition = json_member(forecast, "condition");
        if (of_one && cJSON_IsString(condition) &&
            condition_reads_instrument(condition->valuestring, name->valuestring)) {
            return condition->valuestring;
        }
    }
    return find_reader(before, after, change, find_forecast);
}

/* ---- measures and files ---- */

const char *amend_metric_owner(const cJSON *plan, const cJSON *change)
{
    const cJSON *own = cJSON_GetArrayItem(json_member(change, "path"), 2);
    const cJSON *metric = json_member(change, "to");
    const cJSON *measure;
    cJSON_ArrayForEach(measure, json_member(plan, "measure"))
    {
        if (cJSON_IsString(own) && cJSON_IsString(metric) &&
            strcmp(measure->string, own->valuestring) != 0 &&
            strcmp(text_of(measure, "metric", ""), metric->valuestring) == 0) {
            return measure->string;
        }
    }
    return NULL;
}

bool amend_names_model(const cJSON *plan, const char *file)
{
    const cJSON *check;
    cJSON_ArrayForEach(check, json_member(plan, "apparatus"))
    {
        if (strcmp(text_of(check, "model", ""), file) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_text(const cJSON *list, const char *text)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, list)
    {
        if (cJSON_IsString(one) && strcmp(one->valuestring, text) == 0) {
            return true;
        }
    }
    return false;
}

bool amend_names_file(const cJSON *plan, const char *file)
{
    const cJSON *stage;
    cJSON_ArrayForEach(stage, json_member(plan, "stage"))
    {
        if (has_text(json_member(stage, "command"), file)) {
            return true;
        }
    }
    return has_text(json_member(json_member(plan, "pin"), "files"), file) ||
           amend_names_model(plan, file);
}
