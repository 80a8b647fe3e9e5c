/* Checks the records line by line, and then what follows from them: coverage and verdict are
 * computed again and compared byte for byte. A record contains its result.json as text, whose
 * digest is in the journal, so no file of the program's folder is needed. Lines are parsed into
 * one arena that is cleared for each, which bounds memory by the longest line. */
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/receipt/plan.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/program/run_change.h"
#include "truthtable/evaluate/verdict.h"
#include "truthtable/evaluate/verdict_file.h"
#include "truthtable/evidence/task_coverage.h"

/* A greater number is ignored as implausible. */
#define THREADS_MAX 65536

/* ---- executed programs ---- */

/* A text of a result; the memory of `before` if that is equal, as in most. NULL: not a text. */
static const char *keep_text(struct verifying *v, const cJSON *text, const char *before)
{
    if (!cJSON_IsString(text)) {
        return NULL;
    }
    return before != NULL && strcmp(before, text->valuestring) == 0
               ? before
               : arena_strdup(&v->arena, text->valuestring);
}

/* A whole number from 1 to max; -1 for all else. */
static int64_t keep_number(const cJSON *facts, const char *key, int64_t max)
{
    struct err ignored;
    int64_t n = 0;
    return json_get_int(facts, key, 1, max, &n, &ignored) == 0 ? n : -1;
}

/* Keeps what a result states of its environment for verify_provenance(). */
static void keep_place(struct verifying *v, size_t task, const cJSON *result)
{
    static const struct place_of_result none;
    const cJSON *facts = json_member(result, "facts");
    const struct place_of_result *before = task == 0 ? &none : &v->places[task - 1];
    struct place_of_result *p = &v->places[task];
    p->threads = keep_number(facts, "threads", THREADS_MAX);
    p->arithmetic = keep_number(facts, "arithmetic", INT32_MAX);
    p->blas = keep_text(v, json_member(facts, "blas"), before->blas);
    p->instructions = keep_text(v, json_member(facts, "instructions"), before->instructions);
}

/* Checks a result's digest against the journal, parses it, and adds it to the evidence. */
static int take_result(struct verifying *v, size_t task, const char *text, struct arena *arena,
                       cJSON **result)
{
    const size_t n_stages = v->program->n_stages;
    const struct digest found = digest_bytes(text, strlen(text));
    const struct digest *want = &v->history.tasks[task].result;
    if (!digest_equal(&found, want)) {
        char a[DIGEST_HEX_SIZE];
        char b[DIGEST_HEX_SIZE];
        digest_hex(want, a);
        digest_hex(&found, b);
        return err_differs(v->err, "the result is not the one that the journal accepted", a, b);
    }
    if (tree_parse(text, strlen(text), true, arena, result, v->err) != 0 ||
        evidence_add_result(&v->evidence, task / n_stages, task % n_stages, *result, v->err) != 0) {
        return mismatch_code(v->err);
    }
    keep_place(v, task, *result);
    int rc = verify_inputs(v, task, *result);
    rc = rc == 0 ? verify_same_work(v, task, *result) : rc;
    return rc == 0 ? verify_items(v, task, *result) : rc;
}

/* Rebuilds the line from the journal and the result's text, and compares it. */
static int check_line(struct verifying *v, size_t task, const cJSON *line, struct arena *arena,
                      const struct strbuf *found)
{
    struct strbuf expected = STRBUF_INIT;
    cJSON *result = NULL;
    const cJSON *text = json_member(line, "result");
    const bool done = v->history.tasks[task].state == TASK_DONE;
    const size_t at = v->err->line;
    int rc = 0;
    if (done && cJSON_IsString(text)) {
        rc = take_result(v, task, text->valuestring, arena, &result);
    }
    if (rc == 0) {
        parts_record(&expected, &v->history, task,
                     done && result != NULL ? text->valuestring : NULL, result);
        expected.buf[--expected.len] = '\0'; /* the newline */
        rc = mismatch_texts(v->err, &expected, found);
        v->err->line = at;
    }
    if (rc == 0 && done && result == NULL) {
        rc = err_set(v->err, ERR_LOCK, "the task is done, and its result is missing");
    }
    strbuf_release(&expected);
    return rc;
}

/* How the task ended, for coverage and verdict. */
static void set_end(struct verifying *v, size_t task)
{
    const struct history_task *t = &v->history.tasks[task];
    const size_t n_stages = v->program->n_stages;
    enum task_end end = t->state == TASK_DONE        ? TASK_END_DONE
                        : t->state == TASK_BLOCKED   ? TASK_END_BLOCKED
                        : t->state == TASK_NEVER_RUN ? TASK_END_NEVER_RUN
                                                     : TASK_END_PENDING;
    evidence_set_task(&v->evidence, task / n_stages, task % n_stages, end,
                      end == TASK_END_DONE || end == TASK_END_PENDING ? NULL
                                                                      : cause_name(t->cause));
    const char *narrower = history_narrower(&v->history, task);
    if (narrower != NULL) {
        evidence_set_narrower(&v->evidence, task / n_stages, task % n_stages, narrower);
    }
}

/* Checks whose line it is first, so that a missing or misplaced line is reported as that. */
static int check_task(struct verifying *v, size_t task, const cJSON *line)
{
    const struct plan_program *p = v->program;
    const char *const names[2][2] = {{"cell", p->cells[task / p->n_stages].name},
                                     {"stage", p->stages[task % p->n_stages].name}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const cJSON *is = json_member(line, names[i][0]);
        const char *found = cJSON_IsString(is) ? is->valuestring : NULL;
        if (found == NULL || strcmp(found, names[i][1]) != 0) {
            return err_differs(v->err, names[i][0], names[i][1], found);
        }
    }
    return 0;
}

/* Parses one line into the cleared arena and checks it. */
static int take_line(struct verifying *v, size_t task, struct arena *arena, char *text, size_t len)
{
    cJSON *line = NULL;
    const struct strbuf found = {.buf = text, .len = len, .cap = 0};
    if (task >= v->history.n_tasks) {
        return err_set(v->err, ERR_LOCK, "a line more than the %zu tasks of the plan",
                       v->history.n_tasks);
    }
    arena_clear(arena);
    if (tree_parse(text, len, false, arena, &line, v->err) != 0) {
        return mismatch_code(v->err);
    }
    set_end(v, task);
    int rc = check_task(v, task, line);
    return rc == 0 ? check_line(v, task, line, arena, &found) : rc;
}

/* All lines of records.jsonl: as many as there are tasks. */
static int executed_records(struct verifying *v)
{
    struct receipt_lines l;
    const char *text = NULL;
    size_t len = 0;
    size_t task = 0;
    struct arena of_line;
    arena_init(&of_line);
    v->places = xcalloc(v->history.n_tasks, sizeof(*v->places));
    int rc = lines_open(&l, &v->files, RECEIPT_RECORDS, RECEIPT_LINE_MAX, v->err);
    while (rc == 0) {
        rc = lines_next(&l, &text, &len, v->err);
        if (rc != 0 || text == NULL) {
            break;
        }
        rc = take_line(v, task++, &of_line, l.buf.buf + (text - l.buf.buf), len);
    }
    if (rc == 0 && task != v->history.n_tasks) {
        rc = err_differs_int(v->err, "lines, one for each planned task",
                             (long long)v->history.n_tasks, (long long)task);
    }
    rc = rc == 0 ? verify_items_end(v) : rc;
    if (rc == 0 && v->artifacts.n_named > 0) {
        verifying_says(v,
                       "%zu %s of the stages before them, and each is an artifact of the accepted "
                       "result",
                       v->artifacts.n_named,
                       text_plural((int64_t)v->artifacts.n_named, "result names what it read",
                                   "results name what they read"));
    }
    parts_check_ends(&v->evidence, &v->history);
    lines_release(&l);
    arena_release(&of_line);
    return rc;
}

/* ---- imported programs ---- */

/* The given records, and an imported.json that names this program, root and label. */
static int imported_records(struct verifying *v)
{
    cJSON *given = NULL;
    cJSON *imported = NULL;
    int rc = files_read_json(&v->files, RECEIPT_GIVEN, &given, v->err);
    if (rc != 0) {
        goto out;
    }
    if (evidence_read_records(&v->evidence, given, v->err) != 0) {
        rc = mismatch_code(v->err);
        goto out;
    }
    if ((rc = files_read_json(&v->files, RECEIPT_IMPORTED, &imported, v->err)) != 0) {
        goto out;
    }
    cJSON *expected = json_object();
    cJSON *found = json_object();
    json_put_string(expected, "program", v->program->name);
    json_put_string(expected, "root", v->lock->root);
    json_put_string(expected, "label", v->evidence.label);
    for (const cJSON *m = expected->child; m != NULL; m = m->next) {
        const cJSON *is = json_member(imported, m->string);
        json_put(found, m->string, is == NULL ? cJSON_CreateNull() : json_copy(is));
    }
    rc = mismatch_trees(v->err, "", expected, found);
    cJSON_Delete(expected);
    cJSON_Delete(found);
out:
    cJSON_Delete(given);
    cJSON_Delete(imported);
    return rc;
}

/* The head of the plan when the verdict was computed. */
static const char *verdict_head(const struct verifying *v)
{
    return v->imported ? v->lock->head
                       : history_head_at(&v->history, v->lock, v->history.verdict_row);
}

/* Reads the records under the plan that the verdict was computed with: its Bayes factors follow
 * from priors, which may have been amended since. */
int verify_records(struct verifying *v)
{
    int rc = plan_at_head(&v->files, v->lock, verdict_head(v), &v->judged, v->err);
    if (rc != 0) {
        return rc;
    }
    evidence_init(&v->evidence, v->judged != NULL ? v->judged : v->program);
    v->has_evidence = true;
    return v->imported ? imported_records(v) : executed_records(v);
}

/* ---- coverage and verdict ---- */

/* A file of the receipt must have exactly these bytes. */
static int compare_file(struct verifying *v, const char *name, const struct strbuf *expected)
{
    struct strbuf found = STRBUF_INIT;
    int rc = files_read(&v->files, name, &found, v->err);
    if (rc == 0) {
        rc = mismatch_texts(v->err, expected, &found);
    }
    strbuf_release(&found);
    return rc;
}

/* The journal must have the digest of these bytes, and the outcome. */
static int check_journalled(struct verifying *v, const struct strbuf *found)
{
    const struct program_row *said = &v->history.status;
    const struct table_verdict *d = &v->verdict;
    char want[DIGEST_HEX_SIZE];
    char have[DIGEST_HEX_SIZE];
    const char *outcome = verdict_word(d, v->program);
    err_at(v->err, RECEIPT_JOURNAL, v->history.verdict_row);
    if (v->history.verdict_row == 0) {
        return err_set(v->err, ERR_LOCK, "has no row of the verdict: it is not whole");
    }
    const struct digest digest = digest_bytes(found->buf, found->len);
    if (!digest_equal(&digest, &said->verdict_digest)) {
        digest_hex(&digest, want);
        digest_hex(&said->verdict_digest, have);
        return err_differs(v->err, "status.verdict_digest", want, have);
    }
    return strcmp(outcome, said->outcome) == 0
               ? 0
               : err_differs(v->err, "status.outcome", outcome, said->outcome);
}

/* Computes the verdict again and compares it. One of an earlier version has fewer members, or one
 * sentence in another form; whatever it has is compared. Figures may differ beyond the twelfth
 * digit, which is reported. */
static int check_verdict(struct verifying *v)
{
    struct strbuf expected = STRBUF_INIT;
    struct strbuf found = STRBUF_INIT;
    size_t n_near = 0;
    const struct receipt r = verifying_receipt(v);
    int rc = files_read(&v->files, RECEIPT_VERDICT, &found, v->err);
    const struct verdict_form form = rc == 0 ? verdict_form_of(&found) : (struct verdict_form){0};
    v->out->verdict_is_early = form.lacks_added;
    if (rc != 0) {
        goto out;
    }
    if (parts_verdict(&r, form, &expected, v->err) != 0) {
        rc = mismatch_code(v->err);
        goto out;
    }
    if (mismatch_texts_near(v->err, &expected, &found, &n_near) != 0) {
        rc = v->err->code;
        verifying_versions(v);
        goto out;
    }
    if (!v->imported && (rc = check_journalled(v, &found)) != 0) {
        goto out;
    }
    if (v->out->verdict_is_early) {
        verifying_says(v, "verdict.json lacks " VERDICT_ADDED
                          ", as earlier versions wrote it; what it has follows");
    }
    if (n_near > 0) {
        verifying_says(v,
                       "%zu %s from what is computed here beyond the twelfth digit, as on another "
                       "processor or with another library",
                       n_near,
                       text_plural((int64_t)n_near, "figure of verdict.json differs",
                                   "figures of verdict.json differ"));
    }
out:
    strbuf_release(&expected);
    strbuf_release(&found);
    return rc;
}

/* Puts into words what a reader could miss: lost tasks, and those that a person gave up. */
static void say_coverage(struct verifying *v)
{
    struct coverage c;
    struct arena arena;
    size_t n_cancelled = 0;
    size_t n_lost = 0;
    size_t n_narrower = 0;
    arena_init(&arena);
    coverage_init(&c, &v->evidence, &arena);
    for (size_t i = 0; i < program_n_tasks(v->program); i++) {
        const char *cause = v->evidence.tasks[i].cause;
        n_cancelled += cause != NULL && strcmp(cause, cause_name(CAUSE_CANCELLED)) == 0 ? 1 : 0;
        n_narrower += v->evidence.tasks[i].narrower != NULL ? 1 : 0;
        n_lost += cause != NULL && strcmp(cause, cause_name(CAUSE_LOST)) == 0 ? 1 : 0;
    }
    verifying_says(v,
                   "planned %zu = done %zu + blocked %zu + never run %zu%s; of %zu counted tasks "
                   "%zu are excluded (budget %zu)%s%s",
                   c.tasks.planned, c.tasks.done, c.tasks.blocked, c.tasks.never_run,
                   c.tasks.pending > 0 ? " + without a record" : "", c.counted.planned,
                   c.n_excluded, c.budget,
                   n_cancelled > 0 ? "; tasks were cancelled by a person" : "",
                   n_lost > 0 ? "; accepted results were lost, and given up by a person" : "");
    for (size_t i = 0; i < program_n_tasks(v->program) && n_narrower > 0; i++) {
        const struct evidence_task *t = &v->evidence.tasks[i];
        if (t->narrower != NULL) {
            verifying_says(v,
                           "%zu %s lost under narrower limits of [run] than others had, by a "
                           "person's choice, and not excluded; the first is %.80s/%.64s: %.200s",
                           n_narrower, text_plural((int64_t)n_narrower, "task was", "tasks were"),
                           v->program->cells[i / v->program->n_stages].name,
                           v->program->stages[i % v->program->n_stages].name, t->narrower);
            break;
        }
    }
    arena_release(&arena);
}

/* Reports every change of [run], and what was blocked under it: it is not locked, and its limits
 * can end a chosen cell. */
static void say_runs(struct verifying *v)
{
    const cJSON *run = NULL;
    if (v->imported || cJSON_GetArraySize(v->history.runs) < 2) {
        return;
    }
    cJSON_ArrayForEach(run, v->history.runs)
    {
        struct strbuf text = STRBUF_INIT;
        run_change_line(run, &text);
        verifying_says_whole(v, text.buf);
        strbuf_release(&text);
    }
}

/* Computes the verdict from the evidence, then compares coverage and verdict with it. */
int verify_verdict(struct verifying *v)
{
    struct strbuf text = STRBUF_INIT;
    err_at(v->err, RECEIPT_VERDICT, 0);
    if (verdict_compute(&v->evidence, v->lock->root, verdict_head(v), &v->verdict, v->err) != 0) {
        return mismatch_code(v->err);
    }
    const struct receipt r = verifying_receipt(v);
    int rc = parts_coverage(&r, &text, v->err) != 0 ? mismatch_code(v->err) : 0;
    if (rc != 0 || (rc = compare_file(v, RECEIPT_COVERAGE, &text)) != 0 ||
        (rc = check_verdict(v)) != 0) {
        goto out;
    }
    say_coverage(v);
    say_runs(v);
out:
    strbuf_release(&text);
    return rc;
}
