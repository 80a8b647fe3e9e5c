#include "tests/unit/truthtable/report/fixture.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/rng.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"
#include "truthtable/evaluate/verdict_file.h"

#define FIXTURES     TEST_SOURCE_DIR "/tests/unit/truthtable/report/fixtures"
#define ATTEMPT      "attempt-0002-00000000-0000-4000-8000-000000000002"
#define TORN_ATTEMPT "attempt-0001-00000000-0000-4000-8000-000000000001"
#define STEPS        400
#define RESUMED_AT   200

struct maker {
    const struct fixture *spec;
    const char *folder;
    struct plan_program *program;
    struct lock *lock;
    struct evidence evidence;
    struct err *err;
};

static double noise(size_t cell, size_t what)
{
    struct rng rng;
    rng_seed(&rng, cell * 1000 + what);
    return rng_unit(&rng) - 0.5;
}

static double score_of(const struct maker *k, size_t measure, size_t cell)
{
    const struct plan_measure *m = &k->program->measures[measure];
    size_t condition = k->program->cells[cell].condition;
    if (!m->has_floor) {
        return 1.8 - 0.02 * (double)condition + 0.01 * noise(cell, measure);
    }
    double chance = m->has_chance ? m->chance : 0;
    double span = m->floor - chance;
    double v =
        chance + span * (k->spec->height + 0.02 * (double)condition + 0.1 * noise(cell, measure));
    return round(v * (double)m->items) / (double)m->items;
}

static bool is_blocked(const struct maker *k, size_t cell, size_t stage)
{
    const char *name = k->spec->blocked_stage;
    return name != NULL && strcmp(name, k->program->stages[stage].name) == 0 &&
           cell < k->spec->n_blocked;
}

static cJSON *facts_of(const struct maker *k, size_t cell)
{
    bool is_moe = strstr(k->program->cells[cell].name, "arch=moe") != NULL;
    cJSON *facts = json_object();
    json_put_number(facts, "params_active", is_moe ? 34644480 : 34611712);
    json_put_number(facts, "step_seconds", (is_moe ? 1.07 : 1.0) + 0.02 * noise(cell, 99));
    static const char *const names[] = {"router_load", "router_kills", "router_occupancy",
                                        "router_entropy"};
    static const double values[] = {1.0, 0, 0.125, 0.77};
    for (size_t i = 0; i < 4; i++) {
        cJSON *fact = json_object();
        if (is_moe) {
            json_put_number(facts, names[i],
                            i == 3 ? values[i] + 0.05 * noise(cell, 7) : values[i]);
            cJSON_Delete(fact);
        } else {
            json_put_null(fact, "value");
            json_put_string(fact, "why", "dense");
            json_put(facts, names[i], fact);
        }
    }
    return facts;
}

static cJSON *result_of(const struct maker *k, size_t cell, size_t stage)
{
    cJSON *result = json_object();
    cJSON *metrics = json_object();
    json_put_int(result, "protocol", 1);
    for (size_t i = 0; i < k->program->n_measures; i++) {
        const struct plan_measure *m = &k->program->measures[i];
        if (m->stage != stage) {
            continue;
        }
        cJSON *v = json_object();
        if (strcmp(m->metric, "target_step") == 0) { /* censored: not reached by the end */
            json_put_null(v, "value");
            json_put_string(v, "why", "not_reached");
            json_put_string(v, "bound", ">400");
            json_put(metrics, m->metric, v);
            continue;
        }
        json_put_number(v, "value", score_of(k, i, cell));
        if (m->has_items) {
            json_put_int(v, "n", m->items);
        } else {
            json_put_number(v, "se", 0.004);
        }
        json_put(metrics, m->metric, v);
    }
    json_put(result, "metrics", metrics);
    json_put(result, "facts", stage == 0 ? facts_of(k, cell) : json_object());
    return result;
}

/* The first attempt dies after half its steps with a torn line; the second takes up the last
 * checkpoint. */
static int write_events(const struct maker *k, const char *attempt, size_t cell, bool second)
{
    struct strbuf text = STRBUF_INIT;
    int from = second ? RESUMED_AT : 0;
    int to = second ? STEPS : RESUMED_AT + 20;
    double rate = 0.6 + 0.05 * (double)k->program->cells[cell].condition;
    strbuf_adds(&text, "{\"type\":\"section\",\"name\":\"step\"}\nnot json at all\n");
    for (int i = from; i <= to; i += 5) {
        double loss = 1.7 + 6 * exp(-rate * sqrt((double)i) / 3) + 0.08 * noise(cell, (size_t)i);
        strbuf_addf(&text, "{\"type\":\"point\",\"step\":%d,\"name\":\"loss\",\"value\":%.6f}\n", i,
                    loss);
        strbuf_addf(&text, "{\"type\":\"point\",\"step\":%d,\"name\":\"lr\",\"value\":%.8f}\n", i,
                    1e-3);
    }
    strbuf_adds(&text, second ? "" : "{\"type\":\"point\",\"step\":230,\"name\":\"loss\",\"val");
    char *path = path_join(attempt, "events.jsonl");
    int rc = file_write_atomic(path, text.buf, text.len, 0644, k->err);
    free(path);
    strbuf_release(&text);
    return rc;
}

static int make_attempts(const struct maker *k, const char *task, size_t cell, const cJSON *result)
{
    char *first = path_join(task, TORN_ATTEMPT);
    char *second = path_join(task, ATTEMPT);
    char *path = path_join(second, "result.json");
    char *link = path_join(task, "result.json");
    int rc = dir_make(first, 0755, k->err);
    if (rc == 0) {
        rc = dir_make(second, 0755, k->err);
    }
    if (rc == 0 && !k->spec->no_curves) {
        rc = write_events(k, first, cell, false);
    }
    if (rc == 0 && !k->spec->no_curves) {
        rc = write_events(k, second, cell, true);
    }
    if (rc == 0) {
        rc = json_write_file(path, result, 0644, k->err);
    }
    if (rc == 0 && symlink(ATTEMPT "/result.json", link) != 0) {
        rc = err_set(k->err, ERR_IO, "link %s", link);
    }
    free(first);
    free(second);
    free(path);
    free(link);
    return rc;
}

static int make_task(struct maker *k, size_t cell, size_t stage)
{
    const struct plan_program *p = k->program;
    if (is_blocked(k, cell, stage)) {
        evidence_set_task(&k->evidence, cell, stage, TASK_END_BLOCKED, k->spec->blocked_cause);
        return 0;
    }
    char *cells = path_join(k->folder, "cells");
    char *cell_folder = path_join(cells, p->cells[cell].folder);
    char *task = path_join(cell_folder, p->stages[stage].name);
    cJSON *result = result_of(k, cell, stage);
    evidence_set_task(&k->evidence, cell, stage, TASK_END_DONE, NULL);
    int rc = evidence_add_result(&k->evidence, cell, stage, result, k->err);
    if (rc == 0) {
        rc = stage == 0 ? make_attempts(k, task, cell, result) : dir_make(task, 0755, k->err);
    }
    if (rc == 0 && stage > 0) {
        char *path = path_join(task, "result.json");
        rc = json_write_file(path, result, 0644, k->err);
        free(path);
    }
    cJSON_Delete(result);
    free(task);
    free(cell_folder);
    free(cells);
    return rc;
}

static int copy_in(const struct maker *k, const char *from, const char *to, mode_t mode)
{
    char *source = path_join(FIXTURES, from);
    char *target = path_join(k->folder, to);
    int rc = file_copy(source, target, mode, k->err);
    free(source);
    free(target);
    return rc;
}

static cJSON *describe_of(const struct plan_program *p)
{
    cJSON *all = json_object();
    for (size_t c = 0; c < p->n_conditions; c++) {
        bool is_moe = strstr(p->conditions[c].name, "arch=moe") != NULL;
        cJSON *facts = json_object();
        json_put_number(facts, "params_total", is_moe ? 62956032 : 34611712);
        json_put_number(facts, "params_active", is_moe ? 34644480 : 34611712);
        json_put_number(facts, "active_ffn", 768);
        if (is_moe) {
            json_put_number(facts, "tokens_per_expert", 2560000);
        }
        json_put_number(facts, "tokens", 10240000);
        json_put_number(facts, "steps", 5000);
        json_put_number(facts, "memory_bytes", is_moe ? 1.9e9 : 1.1e9);
        cJSON *train = json_object();
        json_put(train, "facts", facts);
        cJSON *condition = json_object();
        json_put(condition, "train", train);
        json_put(all, p->conditions[c].name, condition);
    }
    return all;
}

static int make_lock(struct maker *k)
{
    char *path = path_join(k->folder, "grid.toml");
    char *lock_path = lock_path_of(path);
    struct diag diag;
    diag_init(&diag, path);
    int rc = program_load(path, &k->program, &diag, k->err);
    diag_print(&diag, stderr);
    if (rc == 0) {
        cJSON *describe = describe_of(k->program);
        rc = lock_build(k->program, describe, NULL, &k->lock, k->err);
        cJSON_Delete(describe);
    }
    if (rc == 0) {
        rc = lock_write(k->lock, lock_path, false, k->err);
    }
    diag_release(&diag);
    free(lock_path);
    free(path);
    return rc;
}

static cJSON *attempt_of(int no, bool resumed)
{
    cJSON *a = json_object();
    json_put_int(a, "no", no);
    json_put_string(a, "id", "00000000-0000-4000-8000-000000000001");
    json_put_string(a, "started", "2026-11-21T03:00:00.000Z");
    json_put_string(a, "ended", "2026-11-21T03:01:00.000Z");
    json_put_string(a, "cause", resumed ? NULL : "silent_death");
    json_put(a, "code", resumed ? cJSON_CreateNumber(0) : cJSON_CreateNull());
    json_put_null(a, "signal");
    json_put_string(a, "resumed_from", resumed ? "00000000-0000-4000-8000-000000000001" : NULL);
    json_put_string(a, "host", "bench");
    json_put_string(a, "cpu", "Example CPU");
    json_put_string(a, "blas", "OpenBLAS 0.3.21 Haswell");
    json_put_int(a, "threads", 1);
    json_put_number(a, "max_rss_bytes", 734003200);
    json_put_int(a, "user_ms", 61200);
    json_put_int(a, "system_ms", 800);
    return a;
}

static cJSON *tasks_of(const struct maker *k)
{
    const struct plan_program *p = k->program;
    cJSON *tasks = json_array();
    for (size_t i = 0; i < program_n_tasks(p); i++) {
        bool blocked = is_blocked(k, i / p->n_stages, i % p->n_stages);
        cJSON *task = json_object();
        cJSON *attempts = json_array();
        json_put_string(task, "cell", p->cells[i / p->n_stages].name);
        json_put_string(task, "stage", p->stages[i % p->n_stages].name);
        json_put_string(task, "end", blocked ? "blocked" : "done");
        json_put_string(task, "cause", blocked ? k->spec->blocked_cause : NULL);
        if (i % p->n_stages == 0) {
            json_push(attempts, attempt_of(1, false));
        }
        if (!blocked) {
            json_push(attempts, attempt_of(2, true));
        }
        json_put(task, "attempts", attempts);
        json_push(tasks, task);
    }
    return tasks;
}

static int write_provenance(const struct maker *k, const cJSON *validity)
{
    cJSON *o = json_object();
    cJSON *journal = json_object();
    cJSON *unblindings = json_array();
    json_put_int(o, "schema", 1);
    json_put_string(o, "program", k->program->name);
    json_put_string(o, "root", k->lock->root);
    json_put_string(journal, "head", k->lock->root);
    json_put_int(journal, "rows", 421);
    json_put(o, "journal", journal);
    json_put_string(o, "history", k->spec->unverified ? "unverified" : "verified");
    json_put_string(o, "assurance", "self-consistent");
    json_put(o, "validity_timing", json_copy(validity));
    json_put(o, "run",
             k->program->run.covered == NULL ? json_object() : json_copy(k->program->run.covered));
    if (k->spec->unblinded) {
        json_push_string(unblindings, "2026-11-21T02:00:00.000Z by uid 1000: impatience");
    }
    json_put(o, "unblindings", unblindings);
    json_put(o, "tasks", tasks_of(k));
    char *path = path_join(k->folder, "report/provenance.json");
    int rc = json_write_file(path, o, 0644, k->err);
    free(path);
    cJSON_Delete(o);
    return rc;
}

static int write_verdict(struct maker *k)
{
    struct table_verdict v;
    char *folder = path_join(k->folder, "report");
    char *path = path_join(folder, "verdict.json");
    int rc = verdict_compute(&k->evidence, k->lock->root, k->lock->root, &v, k->err);
    if (rc == 0) {
        rc = dir_make(folder, 0755, k->err);
    }
    if (rc == 0) {
        rc = json_write_file(path, verdict_json(&v), 0644, k->err);
    }
    if (rc == 0 && !k->spec->no_provenance) {
        rc = write_provenance(k, verdict_timing(&v));
    }
    verdict_release(&v);
    free(path);
    free(folder);
    return rc;
}

static int make_files(const struct maker *k)
{
    int rc = dir_make(k->folder, 0755, k->err);
    if (rc == 0) {
        rc = copy_in(k, k->spec->toml, "grid.toml", 0644);
    }
    if (rc == 0) {
        rc = copy_in(k, "worker.sh", "worker.sh", 0755);
    }
    return rc == 0 ? copy_in(k, "items.txt", "items.txt", 0644) : rc;
}

int fixture_make(const struct fixture *f, const char *folder, struct err *err)
{
    struct maker k = {.spec = f, .folder = folder, .err = err};
    int rc = make_files(&k);
    if (rc == 0) {
        rc = make_lock(&k);
    }
    if (rc == 0) {
        evidence_init(&k.evidence, k.program);
        for (size_t i = 0; rc == 0 && i < program_n_tasks(k.program); i++) {
            rc = make_task(&k, i / k.program->n_stages, i % k.program->n_stages);
        }
        if (rc == 0) {
            rc = write_verdict(&k);
        }
        evidence_release(&k.evidence);
    }
    lock_free(k.lock);
    program_free(k.program);
    return rc;
}
