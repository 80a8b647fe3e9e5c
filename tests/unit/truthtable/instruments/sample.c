#include "tests/unit/truthtable/instruments/sample.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "truthtable/evaluate/verdict_file.h"
#include "truthtable/instruments/instruments.h"

void sample_open(struct sample_program *t, const char *toml)
{
    struct diag diag;
    struct err err = {0};
    *t = (struct sample_program){0};
    diag_init(&diag, "grid.toml");
    if (program_parse(toml, strlen(toml), "grid.toml", &t->p, &diag, &err) != 0) {
        diag_print(&diag, stderr);
        fail_msg("program_parse: %s", err.msg);
    }
    diag_release(&diag);
    evidence_init(&t->e, t->p);
    for (size_t i = 0; i < program_n_tasks(t->p); i++) {
        evidence_set_task(&t->e, i / t->p->n_stages, i % t->p->n_stages, TASK_END_DONE, NULL);
    }
}

void sample_close(struct sample_program *t)
{
    evidence_release(&t->e);
    program_free(t->p);
}

void sample_metric(struct sample_program *t, const char *cell, const char *measure, double v)
{
    size_t m = program_find_measure(t->p, measure);
    size_t c = program_find_cell(t->p, cell);
    assert_true(m != INDEX_NONE && c != INDEX_NONE);
    struct evidence_value value = {.state = VALUE_KNOWN,
                                   .value = v,
                                   .has_n = t->p->measures[m].has_items,
                                   .n = t->p->measures[m].items};
    evidence_add_metric(&t->e, c, t->p->measures[m].stage, t->p->measures[m].metric, &value);
}

void sample_fact(struct sample_program *t, const char *cell, const char *fact, double v)
{
    struct evidence_value value = {.state = VALUE_KNOWN, .value = v};
    evidence_add_fact(&t->e, program_find_cell(t->p, cell), 0, fact, &value);
}

void sample_fact_null(struct sample_program *t, const char *cell, const char *fact, const char *why)
{
    struct evidence_value value = {.state = VALUE_NULL, .why = why};
    evidence_add_fact(&t->e, program_find_cell(t->p, cell), 0, fact, &value);
}

void sample_cells(struct sample_program *t, const char *measure, const double v[6])
{
    for (size_t i = 0; i < 6; i++) {
        sample_metric(t, t->p->cells[i].name, measure, v[i]);
    }
}

cJSON *sample_compute(const struct sample_program *t)
{
    struct lock lock = {0};
    struct table_verdict v;
    struct err err = {0};
    memset(lock.root, 'a', sizeof(lock.root) - 1);
    memset(lock.head, 'b', sizeof(lock.head) - 1);
    assert_int_equal(verdict_compute(&t->e, lock.root, lock.head, &v, &err), 0);
    const struct instruments_input in = {.folder = t->folder == NULL ? "nowhere" : t->folder,
                                         .program = t->p,
                                         .lock = &lock,
                                         .verdict = verdict_json(&v),
                                         .provenance = t->provenance,
                                         .amendments = t->amendments};
    cJSON *computed = instruments_of_evidence(&in, &t->e);
    verdict_release(&v);
    return computed;
}

static const cJSON *step(const cJSON *at, const char *key)
{
    const cJSON *o = NULL;
    if (cJSON_IsObject(at)) {
        return json_member(at, key);
    }
    if (key[0] >= '0' && key[0] <= '9') {
        return cJSON_GetArrayItem(at, (int)strtol(key, NULL, 10));
    }
    cJSON_ArrayForEach(o, at)
    {
        const cJSON *name = json_member(o, "name");
        if (cJSON_IsString(name) && strcmp(name->valuestring, key) == 0) {
            return o;
        }
    }
    return NULL;
}

const cJSON *sample_at(const cJSON *computed, const char *path)
{
    char *copy = xstrdup(path);
    char *rest = NULL;
    const cJSON *at = computed;
    for (char *key = strtok_r(copy, ".", &rest); key != NULL; key = strtok_r(NULL, ".", &rest)) {
        at = step(at, key);
        if (at == NULL) {
            print_message("%s\n", cJSON_PrintUnformatted(computed));
            fail_msg("%s: no \"%s\"", path, key);
        }
    }
    free(copy);
    return at;
}

static void differs(const char *path, const cJSON *at)
{
    fail_msg("%s is %s", path, cJSON_PrintUnformatted(at));
}

void sample_expect(const cJSON *computed, const char *path, double v, double relative)
{
    const cJSON *at = sample_at(computed, path);
    if (!cJSON_IsNumber(at) || !(fabs(at->valuedouble - v) <= relative * fabs(v))) {
        differs(path, at);
    }
}

void sample_expect_text(const cJSON *computed, const char *path, const char *text)
{
    const cJSON *at = sample_at(computed, path);
    if (!cJSON_IsString(at) || strcmp(at->valuestring, text) != 0) {
        differs(path, at);
    }
}

void sample_expect_truth(const cJSON *computed, const char *path, bool v)
{
    const cJSON *at = sample_at(computed, path);
    if (!cJSON_IsBool(at) || cJSON_IsTrue(at) != v) {
        differs(path, at);
    }
}

void sample_expect_null(const cJSON *computed, const char *path)
{
    if (!cJSON_IsNull(sample_at(computed, path))) {
        differs(path, sample_at(computed, path));
    }
}
