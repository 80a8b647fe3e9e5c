/*
 * Export and verify call the same functions here, so a receipt that an honest export made always
 * verifies. Lines of records and environment are written by hand in a fixed order of members; the
 * other files are json_pretty() of a tree. Nothing here may depend on the time, the machine or the
 * order of a folder's listing.
 */
#include "ctl/receipt/parts.h"

#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/evaluate/verdict_file.h"
#include "truthtable/evidence/task_coverage.h"

#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define PREDICATE_TYPE "urn:preregd:verdict:v1"

/* ---- records.jsonl ---- */

/* "key":"text", or null for an empty one. */
static void add_text(struct strbuf *out, const char *key, const char *text)
{
    strbuf_addf(out, "\"%s\":", key);
    if (text == NULL || text[0] == '\0') {
        strbuf_adds(out, "null");
    } else {
        json_add_string(out, text);
    }
}

/* A text member; NULL when it is absent or no text. */
static const char *text_member(const cJSON *o, const char *key)
{
    const cJSON *m = json_member(o, key);
    return cJSON_IsString(m) ? m->valuestring : NULL;
}

/* The artifact that "items" names: path, digest and size as the result states them. */
static void add_items(struct strbuf *out, const cJSON *result)
{
    const char *path = text_member(result, "items");
    const cJSON *a = NULL;
    if (path == NULL) {
        strbuf_adds(out, "\"items\":null");
        return;
    }
    const cJSON *found = NULL;
    cJSON_ArrayForEach(a, json_member(result, "artifacts"))
    {
        const char *its = text_member(a, "path");
        found = found == NULL && its != NULL && strcmp(its, path) == 0 ? a : found;
    }
    const cJSON *bytes = json_member(found, "bytes");
    strbuf_adds(out, "\"items\":{");
    add_text(out, "path", path);
    strbuf_addc(out, ',');
    add_text(out, "sha256", text_member(found, "sha256"));
    strbuf_adds(out, ",\"bytes\":");
    if (cJSON_IsNumber(bytes)) {
        char number[JSON_NUMBER_MAX];
        json_number_text(bytes->valuedouble, number);
        strbuf_adds(out, number);
    } else {
        strbuf_adds(out, "null");
    }
    strbuf_addc(out, '}');
}

/* The members are in a fixed order, which check_line() of verify_records.c reproduces byte for
 * byte. */
void parts_record(struct strbuf *out, const struct history *h, size_t task, const char *text,
                  const cJSON *result)
{
    const struct plan_program *p = h->program;
    const struct history_task *t = &h->tasks[task];
    char hex[DIGEST_HEX_SIZE] = "";
    if (t->state == TASK_DONE) {
        digest_hex(&t->result, hex);
    }
    strbuf_addc(out, '{');
    add_text(out, "cell", p->cells[task / p->n_stages].name);
    strbuf_addc(out, ',');
    add_text(out, "stage", p->stages[task % p->n_stages].name);
    strbuf_addc(out, ',');
    add_text(out, "end", task_state_name(t->state));
    strbuf_addc(out, ',');
    add_text(out, "cause", cause_name(t->cause));
    const char *narrower = history_narrower(h, task);
    if (narrower != NULL) {
        strbuf_addc(out, ',');
        add_text(out, "narrower", narrower);
    }
    if (t->state == TASK_DONE) {
        strbuf_addf(out, ",\"attempt\":%u", t->accepted);
    } else {
        strbuf_adds(out, ",\"attempt\":null");
    }
    strbuf_addf(out, ",\"attempts\":%u,\"resumes\":%u,", t->n_attempts, t->n_resumes);
    add_text(out, "sha256", hex);
    strbuf_addc(out, ',');
    add_text(out, "result", text);
    strbuf_addc(out, ',');
    add_items(out, result);
    strbuf_adds(out, "}\n");
}

/* ---- environment.jsonl ---- */

/* ,"key":value, or null when it is absent. */
static void add_value(struct strbuf *out, const char *key, const cJSON *v)
{
    struct err ignored;
    strbuf_addf(out, ",\"%s\":", key);
    if (v == NULL || json_line(v, out, &ignored) != 0) {
        strbuf_adds(out, "null"); /* what was parsed can be written: only absence comes here */
    }
}

/* Only the members that say where an attempt ran; its times and end are in the journal. */
void parts_environment(struct strbuf *out, const cJSON *task)
{
    static const char *const keys[] = {"no",  "id",   "started", "ended",   "host",  "kernel",
                                       "cpu", "core", "blas",    "threads", "worker"};
    static const char *const added[] = {"arithmetic", "instructions"};
    const cJSON *a = NULL;
    cJSON_ArrayForEach(a, json_member(task, "attempts"))
    {
        strbuf_addc(out, '{');
        add_text(out, "cell", text_member(task, "cell"));
        strbuf_addc(out, ',');
        add_text(out, "stage", text_member(task, "stage"));
        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
            add_value(out, keys[i], json_member(a, keys[i]));
        }
        for (size_t i = 0; i < ARRAY_LEN(added); i++) {
            if (json_member(a, added[i]) != NULL) { /* else an earlier version wrote it */
                add_value(out, added[i], json_member(a, added[i]));
            }
        }
        strbuf_adds(out, "}\n");
    }
}

/* ---- coverage.json ---- */

/* planned = done + blocked + never_run (+ no_record). */
static cJSON *tally_json(const struct tally *t)
{
    cJSON *o = json_object();
    json_put_int(o, "planned", (int64_t)t->planned);
    json_put_int(o, "done", (int64_t)t->done);
    json_put_int(o, "blocked", (int64_t)t->blocked);
    json_put_int(o, "never_run", (int64_t)t->never_run);
    if (t->pending > 0) { /* imported records may lack tasks */
        json_put_int(o, "no_record", (int64_t)t->pending);
    }
    if (t->reused > 0) {
        json_put_int(o, "reused", (int64_t)t->reused);
    }
    return o;
}

/* How many tasks ended for each cause. */
static cJSON *causes_json(const struct receipt *r)
{
    int64_t n[CAUSE_NR] = {0};
    cJSON *o = json_object();
    for (size_t i = 0; i < program_n_tasks(r->program); i++) {
        const char *name = r->evidence->tasks[i].cause;
        enum cause c = name == NULL ? CAUSE_NONE : cause_from_name(name);
        n[c < CAUSE_NR ? c : CAUSE_NONE]++;
    }
    for (int c = CAUSE_NONE + 1; c < CAUSE_NR; c++) {
        if (n[c] > 0) {
            json_put_int(o, cause_name((enum cause)c), n[c]);
        }
    }
    return o;
}

/* How many attempts without a result ended for each cause. */
static cJSON *ends_json(const struct history *h)
{
    int64_t n[CAUSE_NR] = {0};
    cJSON *o = json_object();
    for (size_t i = 0; i < h->n_attempts; i++) {
        n[h->attempts[i].row.cause]++;
    }
    for (int c = CAUSE_NONE + 1; c < CAUSE_NR; c++) {
        if (n[c] > 0) {
            json_put_int(o, cause_name((enum cause)c), n[c]);
        }
    }
    return o;
}

/* Attempts and resumes, in all and for each cell. */
static void add_attempts(const struct receipt *r, cJSON *o)
{
    const struct history *h = r->history;
    const size_t n_stages = r->program->n_stages;
    cJSON *attempts = json_object();
    cJSON *cells = json_array();
    int64_t resumes = 0;
    for (size_t c = 0; c < r->program->n_cells; c++) {
        cJSON *cell = json_object();
        int64_t n[2] = {0, 0};
        for (size_t s = 0; s < n_stages; s++) {
            n[0] += h->tasks[c * n_stages + s].n_attempts;
            n[1] += h->tasks[c * n_stages + s].n_resumes;
        }
        json_put_string(cell, "cell", r->program->cells[c].name);
        json_put_int(cell, "attempts", n[0]);
        json_put_int(cell, "resumes", n[1]);
        json_push(cells, cell);
        resumes += n[1];
    }
    json_put_int(attempts, "total", (int64_t)h->n_attempts);
    json_put_int(attempts, "resumed", resumes);
    json_put(attempts, "without_result", ends_json(h));
    json_put(o, "attempts", attempts);
    json_put(o, "cells", cells);
}

/* How far the journal goes: a journal that is cut at its end no longer matches. */
static void add_journal(const struct history *h, cJSON *o)
{
    char hex[DIGEST_HEX_SIZE];
    cJSON *journal = json_object();
    digest_hex(&h->hashes[h->n_rows - 1], hex);
    json_put_int(journal, "rows", (int64_t)h->n_rows);
    json_put_string(journal, "head", hex);
    json_put(o, "journal", journal);
}

/* The tree as the daemon writes files: indented, with a newline at the end. */
static int pretty(const cJSON *o, struct strbuf *out, struct err *err)
{
    int rc = json_pretty(o, out, err);
    strbuf_addc(out, '\n');
    return rc;
}

/* Journal and attempts only of an executed program: an imported one has none. */
int parts_coverage(const struct receipt *r, struct strbuf *out, struct err *err)
{
    struct arena arena;
    struct coverage c;
    arena_init(&arena);
    coverage_init(&c, r->evidence, &arena);
    cJSON *o = json_object();
    cJSON *counted = tally_json(&c.counted);
    json_put_int(o, "schema", RECEIPT_SCHEMA);
    json_put_string(o, "program", r->program->name);
    json_put_string(o, "root", r->lock->root);
    json_put_string(o, "head", r->lock->head);
    json_put(o, "tasks", tally_json(&c.tasks));
    json_put(o, "records", tally_json(&c.records));
    json_put_int(counted, "excluded", (int64_t)c.n_excluded);
    json_put_int(counted, "budget", (int64_t)c.budget);
    json_put(o, "counted", counted);
    json_put(o, "causes", causes_json(r));
    if (r->history != NULL) {
        add_journal(r->history, o);
        add_attempts(r, o);
    }
    int rc = pretty(o, out, err);
    cJSON_Delete(o);
    arena_release(&arena);
    return rc;
}

/* ---- statement.json ---- */

/* Every summed file but the statement itself, with its digest. */
static cJSON *subjects_json(const struct receipt_files *files)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < files->n; i++) {
        const struct receipt_file *file = &files->items[i];
        if (!layout_is_summed(file->name) || strcmp(file->name, RECEIPT_STATEMENT) == 0) {
            continue;
        }
        char hex[DIGEST_HEX_SIZE];
        cJSON *subject = json_object();
        cJSON *digest = json_object();
        digest_hex(&file->digest, hex);
        json_put_string(subject, "name", file->name);
        json_put_string(digest, "sha256", hex);
        json_put(subject, "digest", digest);
        json_push(list, subject);
    }
    return list;
}

/* What the statement states: program, root, kind and outcome of the verdict. */
static cJSON *predicate_json(const struct receipt *r, const char *tool)
{
    const struct table_verdict *v = r->verdict;
    cJSON *o = json_object();
    cJSON *by = json_object();
    json_put_int(o, "schema", RECEIPT_SCHEMA);
    json_put_string(by, "name", "preregd");
    json_put_string(by, "version", tool);
    json_put(o, "tool", by);
    json_put_string(o, "program", r->program->name);
    json_put_string(o, "question", r->program->question);
    json_put_string(o, "root", r->lock->root);
    json_put_string(o, "head", r->lock->head);
    json_put_string(o, "records", r->history == NULL ? r->evidence->label : "executed");
    json_put_string(o, "kind", verdict_kind_name(v->kind));
    json_put_string(o, "outcome",
                    v->kind == VERDICT_BOUND ? r->program->outcomes[v->outcome].name : NULL);
    json_put_string(o, "title",
                    v->kind == VERDICT_BOUND ? r->program->outcomes[v->outcome].title : NULL);
    json_put_string(o, "why", v->why);
    if (r->history != NULL) {
        add_journal(r->history, o);
    }
    return o;
}

int parts_statement(const struct receipt *r, const struct receipt_files *files, const char *tool,
                    struct strbuf *out, struct err *err)
{
    cJSON *o = json_object();
    json_put_string(o, "_type", STATEMENT_TYPE);
    json_put(o, "subject", subjects_json(files));
    json_put_string(o, "predicateType", PREDICATE_TYPE);
    json_put(o, "predicate", predicate_json(r, tool));
    int rc = pretty(o, out, err);
    cJSON_Delete(o);
    return rc;
}

int parts_verdict(const struct receipt *r, struct verdict_form form, struct strbuf *out,
                  struct err *err)
{
    int rc = verdict_pretty_as(r->verdict, form, out, err);
    strbuf_addc(out, '\n');
    return rc;
}

enum task_end parts_end_of(const cJSON *row)
{
    const cJSON *is = json_member(row, "state");
    const char *state = cJSON_IsString(is) ? is->valuestring : "";
    return strcmp(state, task_state_name(TASK_DONE)) == 0        ? TASK_END_DONE
           : strcmp(state, task_state_name(TASK_BLOCKED)) == 0   ? TASK_END_BLOCKED
           : strcmp(state, task_state_name(TASK_NEVER_RUN)) == 0 ? TASK_END_NEVER_RUN
                                                                 : TASK_END_PENDING;
}

void parts_check_ends(struct evidence *e, const struct history *h)
{
    for (size_t i = 0; i < e->program->n_apparatus; i++) {
        const cJSON *row = json_member(h->checks, e->program->apparatus[i].name);
        const cJSON *cause = json_member(row, "cause");
        evidence_set_check(e, i, parts_end_of(row),
                           cJSON_IsString(cause) ? cause->valuestring : NULL);
    }
}
