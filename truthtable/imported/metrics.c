/*
 * From keys of a results file to metrics of a program: "acc,none" is acc,
 * "exact_match,strict-match" exact_match:strict, any other filter exact_match:FILTER; of a group
 * also every member's acc as acc:MEMBER, the group's own name and underscore taken off. The names
 * are those that prereg-eval gives.
 */
#include <string.h>

#include "base/json/json.h"
#include "base/strbuf.h"
#include "truthtable/imported/import.h"

/* The program's name of a metric and its filter. */
static void add_name(struct strbuf *out, const struct results_metric *m)
{
    const char *filter = m->filter;
    strbuf_adds(out, m->name);
    if (strcmp(filter, "none") == 0) {
        return;
    }
    if (strcmp(filter, "strict-match") == 0) {
        filter = "strict";
    } else if (strcmp(filter, "flexible-extract") == 0) {
        filter = "flexible";
    }
    strbuf_addf(out, ":%s", filter);
}

/* Adds a metric, unless the map has named it already. A metric without a number keeps its
 * reason. */
static void put_value(cJSON *metrics, const char *name, const struct results_entry *e,
                      const struct results_metric *m)
{
    if (json_member(metrics, name) != NULL) {
        return;
    }
    cJSON *v = json_object();
    if (m->has_value) {
        json_put_number(v, "value", m->value);
    } else {
        json_put_null(v, "value");
        json_put_string(v, "why", "no number in the results file");
    }
    if (e->has_n && e->n > 0) {
        json_put_int(v, "n", e->n);
    }
    if (m->has_se) {
        json_put_number(v, "se", m->se);
    }
    json_put(metrics, name, v);
}

/* All metrics of an entry; `suffix` is the member's name within a group. */
static void put_entry(cJSON *metrics, const struct results_entry *e, const char *suffix)
{
    for (size_t i = 0; i < e->n_metrics; i++) {
        struct strbuf name = STRBUF_INIT;
        add_name(&name, &e->metrics[i]);
        if (suffix != NULL) {
            strbuf_addf(&name, ":%s", suffix);
        }
        put_value(metrics, name.buf, e, &e->metrics[i]);
        strbuf_release(&name);
    }
}

/* "mmlu_anatomy" under "mmlu" is "anatomy". */
static const char *member_name(const char *group, const char *member)
{
    const size_t n = strlen(group);
    return strncmp(group, member, n) == 0 && member[n] == '_' && member[n + 1] != '\0'
               ? member + n + 1
               : member;
}

/* A group's groups once; cycles were refused when its leaves were counted. */
static void put_groups(cJSON *metrics, const struct import_task *t, const struct results_entry *g)
{
    for (size_t i = 0; i < g->n_members; i++) {
        const struct results_entry *m = results_find(t->results, g->members[i]);
        if (m != NULL && m->n_members > 0) {
            put_entry(metrics, m, member_name(t->entry->task, m->task));
            put_groups(metrics, t, m);
        }
    }
}

/* "metrics" of the map: names of the program for keys of the file. */
static int put_named(const struct import *im, const struct import_task *t, cJSON *metrics,
                     struct err *err)
{
    const cJSON *named = NULL;
    cJSON_ArrayForEach(named, map_metrics(im->map, t->stage))
    {
        const struct results_metric *m = NULL;
        for (size_t i = 0; m == NULL && i < t->entry->n_metrics; i++) {
            m = strcmp(t->entry->metrics[i].key, named->valuestring) == 0 ? &t->entry->metrics[i]
                                                                          : NULL;
        }
        if (m == NULL) {
            return err_set(err, ERR_NOT_FOUND,
                           "%s: %.60s has no \"%.60s\" (metrics.%.40s of the map)",
                           t->results->path, t->entry->task, named->valuestring,
                           im->program->stages[t->stage].name);
        }
        put_value(metrics, named->string, t->entry, m);
    }
    return 0;
}

/* The number of shots is the one fact that a results file states about the run. */
static void put_facts(const struct import_task *t, cJSON *record)
{
    const struct results_entry *leaf = t->leaves[0];
    const cJSON *shots = json_member(json_member(t->results->json, "n-shot"), leaf->task);
    cJSON *facts = json_object();
    if (cJSON_IsNumber(shots)) {
        json_put_number(facts, "shots", shots->valuedouble);
    }
    json_put(record, "facts", facts);
}

/* Names of the map come first and take precedence over the derived ones. */
int metrics_put(const struct import *im, const struct import_task *t, cJSON *record,
                struct err *err)
{
    cJSON *metrics = json_object();
    json_put(record, "metrics", metrics);
    int rc = put_named(im, t, metrics, err);
    put_entry(metrics, t->entry, NULL);
    if (t->entry->n_members > 0) {
        for (size_t i = 0; i < t->n_leaves; i++) {
            put_entry(metrics, t->leaves[i], member_name(t->entry->task, t->leaves[i]->task));
        }
        put_groups(metrics, t, t->entry);
    }
    put_facts(t, record);
    return rc;
}
