#include "tests/unit/ctl/receipt/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/uuid.h"
#include "base/xalloc.h"
#include "ctl/receipt/history.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/lock_sign.h"
#include "state/store/store.h"
#include "truthtable/evaluate/verdict_file.h"

#define BATCH    3000
#define MODEL    ((size_t)0xabc000) /* digests of models begin here */
#define SNAPSHOT (MODEL + 0x800)    /* and those of snapshots */
#define BLAS     "OpenBLAS 0.3.21, core Haswell"

struct maker {
    const struct fixture *spec;
    char *source; /* where grid.toml was locked */
    char *state;
    char *folder; /* STATE/programs/<id> */
    struct plan_program *program;
    struct lock *lock;
    struct store *store;
    uint32_t no;
    struct state_row *rows;
    size_t n_rows;
    struct evidence evidence;
    struct err *err;
};

/* ---- the plan ---- */

static void add_evals(const struct fixture *f, struct strbuf *s)
{
    for (size_t e = 0; e < f->n_evals; e++) {
        strbuf_addf(s, "[stage.e%zu]\nafter = [\"train\"]\ncommand = [\"./%s\"]\n", e,
                    f->our_workers ? "prereg-eval" : "worker.sh");
    }
    strbuf_adds(s, "[measure]\n");
    for (size_t e = 0; e < f->n_evals; e++) {
        for (size_t m = 0; m < f->n_metrics; m++) {
            strbuf_addf(s,
                        "m%zu_%zu = { metric = \"e%zu.acc%zu\", items = 100, chance = 0.25, floor "
                        "= 0.3 }\n",
                        e, m, e, m);
        }
    }
}

static char *plan_text(const struct fixture *f)
{
    struct strbuf s = STRBUF_INIT;
    strbuf_adds(&s, "[program]\nname = \"made_up\"\nschema = 1\nquestion = \"Does it follow?\"\n"
                    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"
                    "[[factor]]\nname = \"seed\"\nreplicate = true\nlevels = [1");
    for (size_t i = 2; i <= f->n_seeds; i++) {
        strbuf_addf(&s, ",%zu", i);
    }
    strbuf_addf(&s,
                "]\n[data]\ncorpus = \"corpus.txt\"\n"
                "[stage.train]\ncommand = [\"./%s\"]\nparams = { data = \"corpus\", "
                "seed = \"$seed\" }\n[stage.train.when.arch]\nmoe = { experts = 4 }\n",
                f->our_workers ? "prereg-train" : "worker.sh");
    add_evals(f, &s);
    strbuf_adds(&s, "[contrast]\narch = { between = { arch = [\"moe\", \"dense\"] } }\n"
                    "[counter]\nk = { contrast = \"arch\", clears = \"every_cell\", binds = true "
                    "}\n[[input]]\nname = \"cleared\"\nlevels = [[\"yes\", \"counter.k >= 1\"], "
                    "[\"no\", \"otherwise\"]]\n[table]\ninputs = [\"cleared\"]\nrows = [[\"yes\", "
                    "\"O1\"], [\"no\", \"O2\"]]\n[outcome]\nO1 = { prior = 0.4, title = "
                    "\"cleared\" }\nO2 = { prior = 0.5, title = \"not\" }\n[exclusion]\nbudget = "
                    "0.5\n[run.train]\ncrashes = 7\n");
    return strbuf_detach(&s);
}

static int write_text(const char *folder, const char *name, const char *text, mode_t mode,
                      struct err *err)
{
    char *path = path_join(folder, name);
    int rc = file_write_atomic(path, text, strlen(text), mode, err);
    free(path);
    return rc;
}

static int make_plan(struct maker *k)
{
    struct diag diag;
    char *text = plan_text(k->spec);
    char *path = path_join(k->source, "grid.toml");
    diag_init(&diag, path);
    int rc = dir_make(k->source, 0700, k->err);
    if (rc != 0 || (rc = write_text(k->source, "grid.toml", text, 0600, k->err)) != 0 ||
        (rc = write_text(k->source, "corpus.txt", "Once upon a time.\n", 0600, k->err)) != 0 ||
        (rc = write_text(k->source, "worker.sh", "#!/bin/sh\n", 0700, k->err)) != 0 ||
        (rc = write_text(k->source, "prereg-train", "#!/bin/sh\n", 0700, k->err)) != 0 ||
        (rc = write_text(k->source, "prereg-eval", "#!/bin/sh\n", 0700, k->err)) != 0 ||
        (rc = program_load(path, &k->program, &diag, k->err)) != 0 ||
        (rc = lock_build(k->program, NULL, NULL, &k->lock, k->err)) != 0) {
        goto out;
    }
    if (k->spec->key != NULL) {
        rc = lock_sign(k->lock, k->spec->key, NULL, k->err);
    }
out:
    diag_release(&diag);
    free(path);
    free(text);
    return rc;
}

/* ---- the program's folder ---- */

static int make_folder(struct maker *k)
{
    char *id = lock_program_id(k->lock);
    struct digest root = {{0}};
    int rc = store_open(k->state, STORE_OWNER, &k->store, k->err);
    k->folder = xasprintf("%s/programs/%s", k->state, id);
    char *report = path_join(k->folder, "report");
    char *from = path_join(k->source, "grid.toml");
    char *to = path_join(k->folder, "grid.toml");
    char *lock = lock_path_of(to);
    rc = rc == 0 ? dir_make(report, 0700, k->err) : rc;
    rc = rc == 0 ? file_copy(from, to, 0600, k->err) : rc;
    rc = rc == 0 ? lock_write(k->lock, lock, false, k->err) : rc;
    rc = rc == 0 ? digest_from_hex(k->lock->root, &root, k->err) : rc;
    if (rc == 0) {
        const struct store_submission s = {id, root, clock_wall(), {0}};
        rc = store_program_create(k->store, k->program, &s, &k->no, k->err);
    }
    free(lock);
    free(to);
    free(from);
    free(report);
    free(id);
    return rc;
}

/* ---- results ---- */

static char *result_text(const struct maker *k, size_t task, const char *attempt)
{
    const size_t stage = task % k->program->n_stages;
    const size_t cell = task / k->program->n_stages;
    struct strbuf s = STRBUF_INIT;
    strbuf_addf(&s, "{\n  \"protocol\": 1,\n  \"attempt\": \"%s\",\n  \"metrics\": {", attempt);
    for (size_t m = 0; stage > 0 && m < k->spec->n_metrics; m++) {
        strbuf_addf(&s, "%s\n    \"acc%zu\": {\"value\": 0.%zu, \"n\": 100, \"se\": 0.045}",
                    m == 0 ? "" : ",", m, 31 + (cell * 7 + stage * 3 + m * 5) % 40);
    }
    strbuf_adds(&s, "},\n  \"facts\": {\"threads\": 1, \"blas\": \"" BLAS "\", \"arithmetic\": 2, "
                    "\"instructions\": \"" FIXTURE_INSTRUCTIONS "\"}");
    if (stage == 0) {
        strbuf_addf(&s,
                    ",\n  \"artifacts\": [{\"path\": \"model/model.bin\", \"sha256\": "
                    "\"%064zx\", \"bytes\": 99}",
                    MODEL + cell);
        if (k->spec->our_workers) {
            strbuf_addf(&s,
                        ", {\"path\": \"snapshot/0.5/model.bin\", \"sha256\": \"%064zx\", "
                        "\"bytes\": 99}",
                        SNAPSHOT + cell);
        }
        strbuf_adds(&s, "]");
        if (task == 0 && k->spec->other_data) {
            strbuf_addf(&s, ",\n  \"read\": {\"corpus\": \"%064zx\"}", MODEL);
        }
    } else {
        const size_t other = k->spec->our_workers ? SNAPSHOT - MODEL : 1;
        strbuf_addf(&s, ",\n  \"inputs\": {\"train\": \"%064zx\"}",
                    MODEL + cell + (task == 1 && k->spec->other_model ? other : 0));
        strbuf_addf(&s,
                    ",\n  \"artifacts\": [{\"path\": \"items.jsonl\", \"sha256\": \"%064zx\", "
                    "\"bytes\": 1234}],\n  \"items\": \"items.jsonl\"",
                    task);
    }
    strbuf_adds(&s, "\n}\n");
    return strbuf_detach(&s);
}

/* Not synced: there are thousands of them, and nobody pulls the plug. */
static int write_quickly(const char *folder, const char *name, const char *text, struct err *err)
{
    char *path = path_join(folder, name);
    FILE *file = fopen(path, "we");
    bool ok = file != NULL && fputs(text, file) >= 0;
    ok = file != NULL && fclose(file) == 0 && ok;
    free(path);
    return ok ? 0 : err_set(err, ERR_IO, "cannot write a result");
}

static int put_result(struct maker *k, size_t task, const char *attempt, struct digest *digest)
{
    const struct plan_program *p = k->program;
    const size_t n = p->n_stages;
    cJSON *result = NULL;
    char *text = result_text(k, task, attempt);
    char *folder =
        xasprintf("%s/cells/%s/%s", k->folder, p->cells[task / n].name, p->stages[task % n].name);
    *digest = digest_bytes(text, strlen(text));
    int rc = dir_make(folder, 0700, k->err);
    rc = rc == 0 ? write_quickly(folder, "result.json", text, k->err) : rc;
    rc = rc == 0 ? json_parse(text, strlen(text), &result, k->err) : rc;
    evidence_set_task(&k->evidence, task / n, task % n, TASK_END_DONE, NULL);
    rc = rc == 0 ? evidence_add_result(&k->evidence, task / n, task % n, result, k->err) : rc;
    cJSON_Delete(result);
    free(folder);
    free(text);
    return rc;
}

/* ---- rows ---- */

static int flush(struct maker *k)
{
    int rc = store_begin(k->store, k->err);
    rc = rc == 0 ? store_apply(k->store, k->rows, k->n_rows, k->err) : rc;
    k->n_rows = 0;
    return rc == 0 ? store_commit(k->store, k->err) : rc;
}

static void push(struct maker *k, struct state_row *row, enum row_kind kind, enum task_state to)
{
    row->kind = kind;
    row->from = row->after.state;
    row->after.state = to;
    k->rows[k->n_rows++] = *row;
}

/* Started, at work, and ended in `to`, for this cause. */
static void push_attempt(struct maker *k, struct state_row *row, enum task_state to,
                         enum cause cause)
{
    row->attempt.no = ++row->after.n_attempts;
    uuid_make(row->attempt.id);
    row->attempt.started = row->time;
    row->attempt.state = ATTEMPT_STARTING;
    push(k, row, ROW_ATTEMPT_STARTED, TASK_STARTING);
    row->attempt.state = ATTEMPT_RUNNING;
    push(k, row, ROW_ATTEMPT_RUNNING, TASK_RUNNING);
    row->attempt.state = ATTEMPT_ENDED;
    row->attempt.ended = row->time;
    row->attempt.cause = cause;
    row->attempt.reason = END_EXITED;
    row->attempt.code = cause == CAUSE_NONE ? 0 : 1;
    row->attempt.max_rss_bytes = 1000000;
    row->attempt.user_ms = 12;
    row->attempt.system_ms = 3;
    row->attempt.resumed_from = row->attempt.no > 1 ? 100 : -1;
    row->after.cause = to == TASK_BLOCKED ? cause : CAUSE_NONE;
    row->has_result = to == TASK_DONE;
    row->sealed = true;
}

static int run_task(struct maker *k, size_t task)
{
    const size_t n_stages = k->program->n_stages;
    const bool last = task + 1 == program_n_tasks(k->program);
    struct state_row row = {.program = k->no, .task = (uint32_t)task, .time = clock_wall()};
    int rc = 0;
    attempt_row_init(&row.attempt);
    task_row_init(&row.after, task % n_stages == 0 ? TASK_READY : TASK_WAITING);
    if (task % n_stages != 0) {
        push(k, &row, ROW_TASK_READY, TASK_READY);
    }
    if (task == 0 || last) {
        push_attempt(k, &row, last ? TASK_BLOCKED : TASK_READY, CAUSE_CRASH);
        push(k, &row, ROW_ATTEMPT_ENDED, last ? TASK_BLOCKED : TASK_READY);
    }
    if (last) {
        evidence_set_task(&k->evidence, task / n_stages, task % n_stages, TASK_END_BLOCKED,
                          cause_name(CAUSE_CRASH));
        return 0;
    }
    push_attempt(k, &row, TASK_DONE, CAUSE_NONE);
    rc = put_result(k, task, row.attempt.id, &row.result_digest);
    push(k, &row, ROW_ATTEMPT_ENDED, TASK_DONE);
    row.has_result = false;
    row.after.linked = true;
    push(k, &row, ROW_TASK_LINKED, TASK_DONE);
    return rc == 0 && k->n_rows >= BATCH ? flush(k) : rc;
}

static int push_status(struct maker *k, enum row_kind kind, const struct program_row *status)
{
    k->rows[k->n_rows++] =
        (struct state_row){.kind = kind, .program = k->no, .time = clock_wall(), .status = *status};
    return flush(k);
}

static int push_run(struct maker *k)
{
    if (k->spec->other_run == NULL) {
        return 0;
    }
    k->rows[k->n_rows++] = (struct state_row){.kind = ROW_RUN_SETTINGS,
                                              .program = k->no,
                                              .time = clock_wall(),
                                              .detail = k->spec->other_run};
    return flush(k);
}

/* ---- provenance ---- */

static void put_count(cJSON *o, const char *key, int64_t v)
{
    if (v < 0) {
        json_put_null(o, key);
    } else {
        json_put_int(o, key, v);
    }
}

static cJSON *attempt_json(const struct attempt_row *a, const char *worker)
{
    char time[WALL_TEXT_SIZE];
    cJSON *o = json_object();
    json_put_int(o, "no", a->no);
    json_put_string(o, "id", a->id);
    clock_wall_text(a->started, time);
    json_put_string(o, "started", time);
    clock_wall_text(a->ended, time);
    json_put_string(o, "ended", time);
    json_put_string(o, "cause", a->cause == CAUSE_NONE ? NULL : cause_name(a->cause));
    put_count(o, "code", a->code);
    put_count(o, "signal", a->signal == 0 ? -1 : a->signal);
    put_count(o, "resumed_from", a->resumed_from);
    json_put_string(o, "host", "vm");
    json_put_string(o, "cpu", "AMD EPYC");
    json_put_string(o, "blas", a->cause == CAUSE_NONE ? BLAS : NULL);
    put_count(o, "threads", a->cause == CAUSE_NONE ? 1 : -1);
    put_count(o, "arithmetic", a->cause == CAUSE_NONE ? 2 : -1);
    json_put_string(o, "instructions", a->cause == CAUSE_NONE ? FIXTURE_INSTRUCTIONS : NULL);
    json_put_string(o, "kernel", "Linux 6.1");
    json_put_string(o, "worker", worker);
    put_count(o, "max_rss_bytes", a->max_rss_bytes);
    put_count(o, "user_ms", a->user_ms);
    put_count(o, "system_ms", a->system_ms);
    return o;
}

static cJSON *tasks_json(const struct maker *k, const struct history *h)
{
    const struct plan_program *p = k->program;
    const char *worker = lock_file_digest(k->lock, "./worker.sh");
    cJSON *list = json_array();
    for (size_t i = 0; i < h->n_tasks; i++) {
        size_t n = 0;
        const struct history_attempt *a = history_attempts_of(h, i, &n);
        cJSON *o = json_object();
        cJSON *attempts = json_array();
        json_put_string(o, "cell", p->cells[i / p->n_stages].name);
        json_put_string(o, "stage", p->stages[i % p->n_stages].name);
        json_put_string(o, "end", task_state_name(h->tasks[i].state));
        json_put_string(o, "cause", h->tasks[i].state == TASK_BLOCKED ? "crash" : NULL);
        for (size_t k_attempt = 0; k_attempt < n; k_attempt++) {
            json_push(attempts, attempt_json(&a[k_attempt].row, worker));
        }
        json_put(o, "attempts", attempts);
        json_push(list, o);
    }
    return list;
}

static int write_provenance(struct maker *k, const struct history *h, const struct table_verdict *v)
{
    char hex[DIGEST_HEX_SIZE];
    cJSON *o = json_object();
    cJSON *journal = json_object();
    char *path = path_join(k->folder, "report/provenance.json");
    digest_hex(&h->hashes[h->n_rows - 1], hex);
    json_put_string(journal, "head", hex);
    json_put_int(journal, "rows", (int64_t)h->n_rows);
    json_put_int(o, "schema", 1);
    json_put_string(o, "program", k->program->name);
    json_put_string(o, "root", k->lock->root);
    json_put_string(o, "head", k->lock->head);
    json_put(o, "journal", journal);
    json_put_string(o, "history", "verified");
    json_put_string(o, "assurance", "self-consistent");
    const cJSON *run =
        k->spec->other_run != NULL ? history_run_at(h, h->n_rows) : k->program->run.covered;
    json_put(o, "run", run != NULL ? json_copy(run) : json_object());
    json_put(o, "validity_timing", json_copy(verdict_timing(v)));
    json_put(o, "runs", json_copy(h->runs));
    json_put(o, "unblindings", json_array());
    json_put(o, "tasks", tasks_json(k, h));
    int rc = json_write_file(path, o, 0600, k->err);
    cJSON_Delete(o);
    free(path);
    return rc;
}

/* The journal's own folder has files that no receipt has: its history is read from a copy. */
static int provenance(struct maker *k, const struct table_verdict *v)
{
    struct receipt_files files = {.fd = -1};
    struct history h = {0};
    struct err f = {0};
    char *from = path_join(k->folder, "journal.jsonl");
    char *folder = xasprintf("%s.journal", k->folder);
    char *to = path_join(folder, "journal.jsonl");
    int rc = dir_make(folder, 0700, k->err);
    rc = rc == 0 ? file_copy(from, to, 0600, k->err) : rc;
    if (rc == 0 && (files_open(&files, folder, &f) != 0 ||
                    history_read(&h, k->program, k->lock, &files, &f) != 0)) {
        rc = err_join(&f, k->err);
    }
    rc = rc == 0 ? write_provenance(k, &h, v) : rc;
    rc = rc == 0 ? dir_remove(folder, k->err) : rc;
    history_release(&h);
    files_release(&files);
    free(to);
    free(folder);
    free(from);
    return rc;
}

/* ---- the end ---- */

static int write_instruments(const struct maker *k)
{
    cJSON *o = json_object();
    cJSON *list = json_array();
    cJSON *one = json_object();
    char *path = path_join(k->folder, "report/instruments.json");
    json_put_string(one, "kind", "detectable");
    json_put_number(one, "difference", 0.125);
    json_push(list, one);
    json_put_int(o, "schema", 1);
    json_put_string(o, "program", k->program->name);
    json_put_string(o, "root", k->lock->root);
    json_put_string(o, "head", k->lock->head);
    json_put_bool(o, "binds", false);
    json_put(o, "instruments", list);
    int rc = json_write_file(path, o, 0600, k->err);
    cJSON_Delete(o);
    free(path);
    return rc;
}

/* As prereg-report does, of all files that are there. */
static int write_report_sums(const struct maker *k)
{
    struct name_list names = {0};
    struct strbuf sums = STRBUF_INIT;
    char *report = path_join(k->folder, "report");
    int rc = dir_list(report, &names, k->err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        struct digest d;
        char hex[DIGEST_HEX_SIZE];
        char *path = path_join(report, names.names[i]);
        rc = digest_file(path, &d, NULL, k->err);
        digest_hex(&d, hex);
        strbuf_addf(&sums, "%s  %s\n", hex, names.names[i]);
        free(path);
    }
    rc = rc == 0 ? write_text(k->folder, "report/SHA256SUMS", sums.buf, 0600, k->err) : rc;
    name_list_release(&names);
    strbuf_release(&sums);
    free(report);
    return rc;
}

static int finish(struct maker *k)
{
    struct table_verdict v = {0};
    struct strbuf text = STRBUF_INIT;
    struct program_row status = {.unsealed = true};
    char *path = path_join(k->folder, "report/verdict.json");
    int rc = push_run(k);
    if (rc != 0 || (rc = push_status(k, ROW_UNSEALED, &status)) != 0 ||
        (rc = push_status(k, ROW_PAUSED, &status)) != 0 ||
        (rc = verdict_compute(&k->evidence, k->lock->root, k->lock->head, &v, k->err)) != 0 ||
        (rc = verdict_pretty(&v, &text, k->err)) != 0) {
        goto out;
    }
    strbuf_addc(&text, '\n');
    status.verdict = true;
    status.verdict_digest = digest_bytes(text.buf, text.len);
    (void)snprintf(status.outcome, sizeof(status.outcome), "%s",
                   v.kind == VERDICT_BOUND  ? k->program->outcomes[v.outcome].name
                   : v.kind == VERDICT_VOID ? "VOID"
                                            : "INDETERMINATE");
    if ((rc = push_status(k, ROW_VERDICT, &status)) != 0 ||
        (rc = file_write_atomic(path, text.buf, text.len, 0600, k->err)) != 0 ||
        (rc = provenance(k, &v)) != 0 || (rc = write_instruments(k)) != 0) {
        goto out;
    }
    status.reported = true;
    if ((rc = push_status(k, ROW_REPORTED, &status)) != 0 ||
        (rc = write_text(k->folder, "report/report.md", "# a report\n", 0600, k->err)) != 0) {
        goto out;
    }
    rc = write_report_sums(k);
out:
    if (v.file != NULL) {
        verdict_release(&v);
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

static int run_all(struct maker *k)
{
    int rc = 0;
    evidence_init(&k->evidence, k->program);
    for (size_t i = 0; rc == 0 && i < program_n_tasks(k->program); i++) {
        rc = run_task(k, i);
    }
    rc = rc == 0 ? flush(k) : rc;
    rc = rc == 0 ? finish(k) : rc;
    evidence_release(&k->evidence);
    return rc;
}

int fixture_make(const struct fixture *f, const char *folder, char **program, struct err *err)
{
    struct maker k = {.spec = f, .err = err};
    k.source = path_join(folder, "source");
    k.state = path_join(folder, "state");
    k.rows = xcalloc(BATCH + 16, sizeof(*k.rows));
    int rc = make_plan(&k);
    rc = rc == 0 ? make_folder(&k) : rc;
    rc = rc == 0 ? run_all(&k) : rc;
    store_close(k.store);
    lock_free(k.lock);
    program_free(k.program);
    free(k.rows);
    free(k.source);
    free(k.state);
    *program = k.folder;
    return rc;
}
