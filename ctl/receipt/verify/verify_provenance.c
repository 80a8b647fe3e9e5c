/* Checks provenance.json and environment.jsonl against lock, journal and results, and
 * instruments.json as far as other files determine it. Members that only the daemon could know
 * (hosts, kernels, memory) are not compared: verify_words.c lists them as not shown. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "truthtable/evaluate/verdict_file.h"

/* ---- attempts ---- */

/* A time as text; null for 0. */
static void put_time(cJSON *o, const char *key, struct wall_time t)
{
    char text[WALL_TEXT_SIZE];
    clock_wall_text(t, text);
    json_put_string(o, key, t.ms == 0 ? NULL : text);
}

/* A number, or null for a negative one: the journal's mark for "unknown". */
static void put_count(cJSON *o, const char *key, int64_t v)
{
    if (v < 0) {
        json_put_null(o, key);
    } else {
        json_put_int(o, key, v);
    }
}

static void put_text(cJSON *o, const char *key, const char *text)
{
    json_put_string(o, key, text[0] == '\0' ? NULL : text);
}

/* What the journal says of an attempt, in the members of provenance.json. */
static cJSON *expected_attempt(const struct attempt_row *a)
{
    cJSON *o = json_object();
    json_put_int(o, "no", a->no);
    json_put_string(o, "id", a->id);
    put_time(o, "started", a->started);
    put_time(o, "ended", a->ended);
    put_text(o, "cause", cause_name(a->cause));
    put_count(o, "code", a->code);
    put_count(o, "signal", a->signal == 0 ? -1 : a->signal);
    put_count(o, "resumed_from", a->resumed_from);
    put_count(o, "max_rss_bytes", a->max_rss_bytes);
    put_count(o, "user_ms", a->user_ms);
    put_count(o, "system_ms", a->system_ms);
    return o;
}

/* Each member of `expected` must be in `found` with that value; `found` may have more. */
static int check_members(struct verifying *v, const char *at, const cJSON *expected,
                         const cJSON *found)
{
    int rc = 0;
    for (const cJSON *m = expected->child; rc == 0 && m != NULL; m = m->next) {
        const cJSON *is = json_member(found, m->string);
        if (is == NULL) {
            rc = err_set(v->err, ERR_LOCK, "%s.%s is missing", at, m->string);
        } else if (mismatch_trees(v->err, "", m, is) != 0) { /* again, under its name */
            char *path = xasprintf("%s.%s", at, m->string);
            rc = mismatch_trees(v->err, path, m, is);
            free(path);
        }
    }
    return rc;
}

/* One text of the accepted attempt; what either side does not state is not compared. */
static int check_text(struct verifying *v, const char *path, const char *expected,
                      const cJSON *found)
{
    return expected == NULL || !cJSON_IsString(found) || strcmp(expected, found->valuestring) == 0
               ? 0
               : err_differs(v->err, path, expected, found->valuestring);
}

/* The same of a number; negative: not stated. */
static int check_number(struct verifying *v, const char *path, int64_t expected, const cJSON *found)
{
    char texts[2][JSON_NUMBER_MAX];
    if (expected < 0 || !cJSON_IsNumber(found) || (double)expected == found->valuedouble) {
        return 0;
    }
    json_number_text((double)expected, texts[0]);
    json_number_text(found->valuedouble, texts[1]);
    return err_differs(v->err, path, texts[0], texts[1]);
}

/* The environment of the accepted attempt must be what its result reports of it. */
static int check_place(struct verifying *v, const char *at, size_t task, const cJSON *attempt)
{
    const struct place_of_result *p = &v->places[task];
    const struct {
        const char *name;
        const char *text;
        int64_t number; /* without a text */
    } members[] = {{"blas", p->blas, -1},
                   {"threads", NULL, p->threads},
                   {"arithmetic", NULL, p->arithmetic},
                   {"instructions", p->instructions, -1}};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(members); i++) {
        const cJSON *found = json_member(attempt, members[i].name);
        char *path = xasprintf("%s.%s is not what the result says", at, members[i].name);
        rc = check_text(v, path, members[i].text, found);
        if (rc == 0) {
            rc = check_number(v, path, members[i].number, found);
        }
        free(path);
    }
    return rc;
}

/* The attempts of a task must be the journal's, one for one. */
static int check_attempts(struct verifying *v, size_t task, const cJSON *found)
{
    size_t n = 0;
    const struct history_attempt *a = history_attempts_of(&v->history, task, &n);
    const cJSON *list = json_member(found, "attempts");
    const cJSON *its = cJSON_IsArray(list) ? list->child : NULL;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n && its != NULL; i++, its = its->next) {
        char at[64];
        cJSON *expected = expected_attempt(&a[i].row);
        (void)snprintf(at, sizeof(at), "tasks[%zu].attempts[%zu]", task, i);
        rc = check_members(v, at, expected, its);
        if (rc == 0) {
            rc = verify_worker(v, at, task % v->program->n_stages, its);
        }
        if (rc == 0 && a[i].row.no == v->history.tasks[task].accepted) {
            rc = check_place(v, at, task, its);
        }
        cJSON_Delete(expected);
    }
    const size_t said = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    if (rc == 0 && said != n) {
        char what[64];
        (void)snprintf(what, sizeof(what), "tasks[%zu]: attempts", task);
        rc = err_differs_int(v->err, what, (long long)n, (long long)said);
    }
    return rc;
}

/* ---- tasks ---- */

/* How the task ended, in the words of provenance.json. */
static const char *end_name(const struct verifying *v, size_t task)
{
    static const char *const ends[] = {[TASK_END_PENDING] = "no_record",
                                       [TASK_END_DONE] = "done",
                                       [TASK_END_BLOCKED] = "blocked",
                                       [TASK_END_NEVER_RUN] = "never_run"};
    return v->imported ? ends[v->evidence.tasks[task].end]
                       : task_state_name(v->history.tasks[task].state);
}

/* One task: end, cause and attempts. */
static int check_task(struct verifying *v, size_t task, const cJSON *found)
{
    const struct plan_program *p = v->program;
    char at[40];
    cJSON *expected = json_object();
    json_put_string(expected, "cell", p->cells[task / p->n_stages].name);
    json_put_string(expected, "stage", p->stages[task % p->n_stages].name);
    json_put_string(expected, "end", end_name(v, task));
    json_put_string(expected, "cause", v->evidence.tasks[task].cause);
    if (v->evidence.tasks[task].narrower != NULL) {
        json_put_string(expected, "narrower", v->evidence.tasks[task].narrower);
    }
    (void)snprintf(at, sizeof(at), "tasks[%zu]", task);
    int rc = check_members(v, at, expected, found);
    const bool adds =
        json_member(found, "narrower") != NULL && json_member(expected, "narrower") == NULL;
    cJSON_Delete(expected);
    if (rc == 0 && adds) {
        rc = err_set(v->err, ERR_LOCK,
                     "%s.narrower: its limits were not narrower than those of others", at);
    }
    if (rc != 0) {
        return rc;
    }
    if (v->imported) {
        const cJSON *list = json_member(found, "attempts");
        return cJSON_GetArraySize(list) == 0 ? 0
                                             : err_set(v->err, ERR_LOCK, "%s: nothing was run", at);
    }
    return check_attempts(v, task, found);
}

/* One entry for each planned task, in the order of the tasks. */
static int check_tasks(struct verifying *v)
{
    const cJSON *list = json_member(v->provenance, "tasks");
    const cJSON *t = cJSON_IsArray(list) ? list->child : NULL;
    const size_t n = program_n_tasks(v->program);
    size_t i = 0;
    int rc = 0;
    for (; rc == 0 && i < n && t != NULL; i++, t = t->next) {
        rc = check_task(v, i, t);
    }
    if (rc == 0 && (i != n || t != NULL)) {
        rc = err_differs_int(v->err, "tasks", (long long)n, cJSON_GetArraySize(list));
    }
    return rc;
}

/* ---- the head of provenance.json ---- */

/* The changes of [run] up to the verdict's row. A later one may fall between the files of the
 * verdict, so it may be in the list or not. */
static cJSON *runs_of_verdict(const struct verifying *v, const cJSON *runs)
{
    const cJSON *run = NULL;
    cJSON *list = json_array();
    cJSON_ArrayForEach(run, runs)
    {
        const cJSON *row = json_member(run, "row");
        if (!cJSON_IsNumber(row) || row->valuedouble <= (double)v->history.verdict_row) {
            json_push(list, json_copy(run));
        }
    }
    return list;
}

/* Compares the changes of [run] with the journal's. The list may be absent when there was only
 * one, and in files of versions before VERDICT_ADDED. What was blocked under each does not
 * change after the verdict. */
static int check_runs(struct verifying *v)
{
    const cJSON *found = json_member(v->provenance, "runs");
    cJSON *expected = runs_of_verdict(v, v->history.runs);
    if (found == NULL) {
        const bool may_lack = cJSON_GetArraySize(expected) <= 1 || v->out->verdict_is_early;
        cJSON_Delete(expected);
        return may_lack ? 0 : err_set(v->err, ERR_LOCK, "runs is missing");
    }
    cJSON *said = runs_of_verdict(v, found);
    int rc = mismatch_trees(v->err, "runs", expected, said);
    cJSON_Delete(expected);
    cJSON_Delete(said);
    return rc;
}

/* provenance.json states how many rows the journal had when it was written; the journal must
 * still have them, with the same head, amendments and [run]. */
static int check_journal(struct verifying *v)
{
    const cJSON *part = json_member(v->provenance, "journal");
    const char *head = NULL;
    int64_t rows = 0;
    char hex[DIGEST_HEX_SIZE];
    if (json_get_int(part, "rows", 1, JSON_INT_MAX, &rows, v->err) != 0 ||
        json_get_string(part, "head", &head, v->err) != 0) {
        return mismatch_code(v->err);
    }
    /* rows that provenance.json counted are missing at the end */
    if ((size_t)rows > v->history.n_rows) {
        return err_differs_int(v->err, "journal.rows: journal.jsonl was cut at its end", rows,
                               (long long)v->history.n_rows);
    }
    if ((size_t)rows < v->history.verdict_row) {
        return err_set(v->err, ERR_LOCK, "journal.rows: it was written before the verdict");
    }
    digest_hex(&v->history.hashes[rows - 1], hex);
    if (strcmp(hex, head) != 0) {
        return err_differs(v->err, "journal.head", hex, head);
    }
    const char *expected = history_head_at(&v->history, v->lock, (size_t)rows);
    const char *said = NULL;
    if (json_get_string(v->provenance, "head", &said, v->err) != 0) {
        return mismatch_code(v->err);
    }
    if (strcmp(said, expected) != 0) {
        return err_differs(v->err, "head", expected, said);
    }
    const cJSON *run = history_run_at(&v->history, (size_t)rows);
    const cJSON *its = json_member(v->provenance, "run");
    int rc = run == NULL || its == NULL ? 0 : mismatch_trees(v->err, "run", run, its);
    return rc == 0 ? check_runs(v) : rc;
}

/* An "unverified" history claims less than the journal shows, which is reported and not a fault.
 * A "verified" one whose journal was rebuilt is a fault. */
static int check_history(struct verifying *v)
{
    const cJSON *said = json_member(v->provenance, "history");
    const bool unverified = cJSON_IsString(said) && strcmp(said->valuestring, "unverified") == 0;
    if (v->history.unverified && !unverified) {
        return err_set(v->err, ERR_LOCK,
                       "history is not \"unverified\", but the first row of the journal says that "
                       "it was rebuilt from the cells' files");
    }
    v->history.unverified |= unverified;
    return 0;
}

/* The members before the tasks. */
static int check_head(struct verifying *v)
{
    int early = v->imported ? 0 : check_history(v);
    if (early != 0) {
        return early;
    }
    cJSON *expected = json_object();
    const cJSON *history = json_member(v->provenance, "history");
    /* The daemon may know of lost rows that the remaining journal cannot show. */
    if (cJSON_IsString(history) && strcmp(history->valuestring, "unverified") == 0) {
        v->history.unverified = true;
    }
    if (!v->imported) {
        json_put_string(expected, "program", v->program->name);
        json_put_string(expected, "root", v->lock->root);
        json_put(expected, "unblindings", json_copy(v->history.unblindings));
        if (cJSON_GetArraySize(v->history.takeovers) > 0 ||
            json_member(v->provenance, "takeovers") != NULL) {
            json_put(expected, "takeovers", json_copy(v->history.takeovers));
        }
        json_put_string(expected, "history", v->history.unverified ? "unverified" : "verified");
        json_put_string(expected, "assurance", "self-consistent");
    } else {
        json_put_string(expected, "history", "imported");
        json_put_string(expected, "assurance", "self-consistent, of imported records");
    }
    json_put_int(expected, "schema", 1);
    int rc = 0;
    for (const cJSON *m = expected->child; rc == 0 && m != NULL; m = m->next) {
        const cJSON *is = json_member(v->provenance, m->string);
        rc = is == NULL ? err_set(v->err, ERR_LOCK, "%s is missing", m->string)
                        : mismatch_trees(v->err, m->string, m, is);
    }
    cJSON_Delete(expected);
    const cJSON *timing = json_member(v->provenance, "validity_timing");
    size_t n_near = 0;
    if (rc == 0 && timing == NULL) {
        rc = err_set(v->err, ERR_LOCK, "validity_timing is missing");
    } else if (rc == 0) {
        rc = mismatch_trees_near(v->err, "validity_timing", verdict_timing(&v->verdict), timing,
                                 &n_near);
    }
    return rc == 0 && !v->imported ? check_journal(v) : rc;
}

/* ---- environment.jsonl ---- */

/* Compares the next line with the expected one; line NULL: the file must end here. */
static int next_environment(struct verifying *v, struct receipt_lines *l, const char *line)
{
    const char *text = NULL;
    size_t len = 0;
    int rc = lines_next(l, &text, &len, v->err);
    const size_t at = v->err->line;
    if (rc != 0) {
        return rc;
    }
    if (text == NULL || line == NULL) {
        return text == NULL && line == NULL
                   ? 0
                   : err_set(v->err, ERR_LOCK,
                             text == NULL ? "ends before the attempts do"
                                          : "a line more than there are attempts");
    }
    struct strbuf expected = STRBUF_INIT;
    const struct strbuf found = {.buf = l->buf.buf + (text - l->buf.buf), .len = len, .cap = 0};
    strbuf_adds(&expected, line);
    rc = mismatch_texts(v->err, &expected, &found);
    v->err->line = at;
    strbuf_release(&expected);
    return rc;
}

/* environment.jsonl must be what parts_environment() makes of provenance.json, line by line. */
static int check_environment(struct verifying *v)
{
    struct receipt_lines l;
    struct strbuf lines = STRBUF_INIT;
    const cJSON *t = NULL;
    int rc = lines_open(&l, &v->files, RECEIPT_ENVIRONMENT, RECEIPT_LINE_MAX, v->err);
    cJSON_ArrayForEach(t, json_member(v->provenance, "tasks"))
    {
        strbuf_clear(&lines);
        parts_environment(&lines, t);
        char *save = NULL;
        for (char *line = strtok_r(lines.buf, "\n", &save); rc == 0 && line != NULL;
             line = strtok_r(NULL, "\n", &save)) {
            rc = next_environment(v, &l, line);
        }
    }
    if (rc == 0) {
        rc = next_environment(v, &l, NULL);
    }
    strbuf_release(&lines);
    lines_release(&l);
    return rc;
}

/* ---- instruments ---- */

/* The head that instruments.json may have: that of provenance.json or a later one, since
 * instruments may be amended after the report, which need not be written again. For any other
 * the last is expected. */
static const char *instruments_head(const struct verifying *v, const cJSON *instruments)
{
    const cJSON *said = json_member(instruments, "head");
    const cJSON *rows = json_member(json_member(v->provenance, "journal"), "rows");
    if (v->imported || !cJSON_IsString(said)) {
        return v->lock->head;
    }
    const char *head = history_head_at(&v->history, v->lock, (size_t)rows->valuedouble);
    bool found = strcmp(head, said->valuestring) == 0;
    const cJSON *a = NULL;
    cJSON_ArrayForEach(a, v->history.amended)
    {
        const char *its = json_member(a, "head")->valuestring; /* the chain's: verify_amended() */
        bool later = json_member(a, "row")->valuedouble > rows->valuedouble;
        found = found || (later && strcmp(its, said->valuestring) == 0);
    }
    return found ? said->valuestring : v->lock->head;
}

/* Only the members that say what it belongs to; verify_instruments() computes the figures again
 * where the receipt has what they rest on. */
static int check_instruments(struct verifying *v)
{
    cJSON *found = NULL;
    if (!files_have(&v->files, RECEIPT_INSTRUMENTS)) {
        return 0;
    }
    int rc = files_read_json(&v->files, RECEIPT_INSTRUMENTS, &found, v->err);
    cJSON *expected = json_object();
    json_put_string(expected, "program", v->program->name);
    json_put_string(expected, "root", v->lock->root);
    json_put_string(expected, "head", instruments_head(v, found));
    json_put_bool(expected, "binds", false);
    for (const cJSON *m = expected->child; rc == 0 && m != NULL; m = m->next) {
        const cJSON *is = json_member(found, m->string);
        rc = is == NULL ? err_set(v->err, ERR_LOCK, "%s is missing", m->string)
                        : mismatch_trees(v->err, m->string, m, is);
    }
    cJSON_Delete(expected);
    cJSON_Delete(found);
    return rc;
}

int verify_provenance(struct verifying *v)
{
    int rc = files_read_tree(&v->files, RECEIPT_PROVENANCE, &v->arena, &v->provenance, v->err);
    if (rc != 0 || (rc = check_head(v)) != 0 || (rc = check_tasks(v)) != 0) {
        return rc;
    }
    if (!v->imported && ((rc = check_environment(v)) != 0 || (rc = verify_apparatus(v)) != 0)) {
        return rc;
    }
    rc = check_instruments(v);
    return rc == 0 ? verify_instruments(v) : rc;
}
