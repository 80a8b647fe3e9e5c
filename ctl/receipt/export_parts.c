/*
 * Makes the files of a receipt that follow from others, in the order in which they rest on each
 * other: records and environment, coverage, VERIFY.md, the statement over all files so far,
 * SHA256SUMS over all of it. Records are written line by line, since all results together may not
 * fit into memory. The verdict is computed again here from the records, under the plan that it was
 * computed with.
 */
#include "ctl/receipt/export_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/parts.h"
#include "ctl/receipt/plan.h"
#include "truthtable/evaluate/verdict.h"

/* The state of making the parts; `err` is the caller's. */
struct making {
    const struct exporting *x;
    struct receipt_files files; /* the receipt's files so far */
    struct history history;
    const char *head;            /* of the verdict */
    struct plan_program *judged; /* by that head; NULL: the present one */
    struct evidence evidence;
    struct table_verdict verdict;
    struct err *err;
};

/* Writes a text as a file of the receipt. */
static int write_text(const struct making *m, const char *name, const struct strbuf *text)
{
    char *path = path_join(m->x->to, name);
    int rc = file_write_atomic(path, text->buf, text->len, 0644, m->err);
    free(path);
    return rc;
}

/* ---- records ---- */

/* The accepted result of a task in the program's folder. */
static char *result_path(const struct making *m, size_t task)
{
    const struct plan_program *p = m->x->program;
    return xasprintf("%s/" LAYOUT_CELLS "/%s/%s/" LAYOUT_RESULT, m->x->from,
                     p->cells[task / p->n_stages].folder, p->stages[task % p->n_stages].name);
}

/* Reads a result, which must have the digest in the journal, and adds it to the evidence. */
static int read_result(struct making *m, size_t task, struct strbuf *text, cJSON **result)
{
    char *path = result_path(m, task);
    const size_t n_stages = m->x->program->n_stages;
    int rc = file_read(path, LAYOUT_RESULT_MAX, text, m->err);
    if (rc != 0) {
        goto out;
    }
    const struct digest d = digest_bytes(text->buf, text->len);
    if (!digest_equal(&d, &m->history.tasks[task].result) || strlen(text->buf) != text->len) {
        rc = err_set(m->err, ERR_CORRUPT, "%s is not what was accepted", path);
        goto out;
    }
    rc = json_parse_lax(text->buf, text->len, result, m->err);
    if (rc == 0) {
        rc = evidence_add_result(&m->evidence, task / n_stages, task % n_stages, *result, m->err);
    }
out:
    free(path);
    return rc;
}

/* One task's line of records.jsonl, and its part of the evidence. */
static int add_record(struct making *m, size_t task, struct file_writer *w)
{
    struct strbuf text = STRBUF_INIT;
    cJSON *result = NULL;
    const struct history_task *t = &m->history.tasks[task];
    const size_t n_stages = m->x->program->n_stages;
    int rc = 0;
    enum task_end end = t->state == TASK_DONE      ? TASK_END_DONE
                        : t->state == TASK_BLOCKED ? TASK_END_BLOCKED
                                                   : TASK_END_NEVER_RUN;
    const char *narrower = history_narrower(&m->history, task);
    evidence_set_task(&m->evidence, task / n_stages, task % n_stages, end, cause_name(t->cause));
    if (narrower != NULL) {
        evidence_set_narrower(&m->evidence, task / n_stages, task % n_stages, narrower);
    }
    if (t->state == TASK_DONE) {
        rc = read_result(m, task, &text, &result);
    }
    if (rc == 0 && result != NULL && m->x->with_items) {
        char *path = result_path(m, task);
        rc = export_items(m->x, path, result, m->err);
        free(path);
    }
    if (rc == 0) {
        parts_record(&w->pending, &m->history, task, result == NULL ? NULL : text.buf, result);
        rc = file_writer_add(w, NULL, 0, m->err);
    }
    cJSON_Delete(result);
    strbuf_release(&text);
    return rc;
}

/* records.jsonl: a line for each task, in the order of the tasks. */
static int write_records(struct making *m)
{
    struct file_writer w;
    char *path = path_join(m->x->to, RECEIPT_RECORDS);
    int rc = file_writer_open(&w, path, 0644, m->err);
    for (size_t i = 0; rc == 0 && i < m->history.n_tasks; i++) {
        rc = add_record(m, i, &w);
    }
    parts_check_ends(&m->evidence, &m->history);
    if (rc == 0) {
        rc = file_writer_publish(&w, m->err);
    }
    file_writer_release(&w);
    free(path);
    return rc;
}

/* The records of an imported program. */
static int read_given(struct making *m)
{
    cJSON *given = NULL;
    char *path = path_join(m->x->to, RECEIPT_GIVEN);
    int rc = json_read_file(path, LAYOUT_RECORDS_MAX, &given, m->err);
    if (rc == 0) {
        rc = evidence_read_records(&m->evidence, given, m->err);
    }
    cJSON_Delete(given);
    free(path);
    return rc;
}

/* ---- environment, apparatus ---- */

/* A line for each attempt, as provenance.json has it. */
static int write_environment(struct making *m, const cJSON *provenance)
{
    struct file_writer w;
    const cJSON *t = NULL;
    char *path = path_join(m->x->to, RECEIPT_ENVIRONMENT);
    int rc = file_writer_open(&w, path, 0644, m->err);
    if (rc != 0) {
        goto out;
    }
    cJSON_ArrayForEach(t, json_member(provenance, "tasks"))
    {
        parts_environment(&w.pending, t);
        rc = file_writer_add(&w, NULL, 0, m->err);
        if (rc != 0) {
            goto out;
        }
    }
    rc = file_writer_publish(&w, m->err);
out:
    file_writer_release(&w);
    free(path);
    return rc;
}

/* A file for each apparatus check, as provenance.json has it. */
static int write_apparatus(struct making *m, const cJSON *provenance)
{
    const cJSON *a = NULL;
    char *folder = path_join(m->x->to, LAYOUT_APPARATUS);
    int rc = 0;
    cJSON_ArrayForEach(a, json_member(provenance, "apparatus"))
    {
        const char *name = NULL;
        if ((rc = json_get_string(a, "name", &name, m->err)) != 0 ||
            (rc = dir_make(folder, 0755, m->err)) != 0) {
            break;
        }
        char *path = xasprintf("%s/%s.json", folder, name);
        rc = json_write_file(path, a, 0644, m->err);
        free(path);
        if (rc != 0) {
            break;
        }
    }
    free(folder);
    return rc;
}

/* environment.jsonl and apparatus/, from the provenance.json in which hosts are hidden already. */
static int write_places(struct making *m)
{
    cJSON *provenance = NULL;
    char *path = path_join(m->x->to, RECEIPT_PROVENANCE);
    int rc = json_read_file(path, (size_t)RECEIPT_WHOLE_MAX, &provenance, m->err);
    if (rc != 0 || (rc = write_environment(m, provenance)) != 0) {
        goto out;
    }
    rc = write_apparatus(m, provenance);
out:
    cJSON_Delete(provenance);
    free(path);
    return rc;
}

/* ---- statement and sums ---- */

/* Lists the folder again, with the files made since. */
static int list_again(struct making *m)
{
    struct err f = {0};
    files_release(&m->files);
    return files_open(&m->files, m->x->to, &f) == 0 ? 0 : err_join(&f, m->err);
}

/* Lists the folder again and appends SHA256SUMS over all of it to `text`. */
static int sum_again(struct making *m, struct strbuf *text)
{
    struct err f = {0};
    int rc = list_again(m);
    if (rc != 0) {
        return rc;
    }
    return sums_make(&m->files, text, &f) == 0 ? 0 : err_join(&f, m->err);
}

/* sum_again() is called for the digests that it leaves in the listing; its text is discarded. */
static int write_statement(struct making *m, const struct receipt *r)
{
    struct strbuf text = STRBUF_INIT;
    int rc = sum_again(m, &text);
    if (rc != 0) {
        goto out;
    }
    strbuf_clear(&text);
    rc = parts_statement(r, &m->files, PREREGD_VERSION, &text, m->err);
    if (rc == 0) {
        rc = write_text(m, RECEIPT_STATEMENT, &text);
    }
out:
    strbuf_release(&text);
    return rc;
}

/* Last of all files: it covers the statement, too. */
static int write_sums(struct making *m)
{
    struct strbuf text = STRBUF_INIT;
    int rc = sum_again(m, &text);
    if (rc == 0) {
        rc = write_text(m, RECEIPT_SUMS, &text);
    }
    strbuf_release(&text);
    return rc;
}

/* Computes the verdict from the evidence and writes what follows from it. */
static int write_rest(struct making *m)
{
    struct strbuf text = STRBUF_INIT;
    const struct receipt r = {.program = m->x->program,
                              .lock = m->x->lock,
                              .history = m->x->imported ? NULL : &m->history,
                              .evidence = &m->evidence,
                              .verdict = &m->verdict};
    const struct lock *lock = m->x->lock;
    int rc = verdict_compute(&m->evidence, lock->root, m->head, &m->verdict, m->err);
    if (rc != 0 || (rc = parts_coverage(&r, &text, m->err)) != 0 ||
        (rc = write_text(m, RECEIPT_COVERAGE, &text)) != 0) {
        goto out;
    }
    strbuf_clear(&text);
    verify_md(&text, &r);
    if ((rc = write_text(m, RECEIPT_VERIFY, &text)) != 0 || (rc = write_statement(m, &r)) != 0) {
        goto out;
    }
    rc = write_sums(m);
out:
    strbuf_release(&text);
    return rc;
}

/* Reads the journal's copy, and refuses a program that is sealed or has no verdict. */
static int read_history(struct making *m)
{
    struct err f = {0};
    int rc = list_again(m);
    if (rc != 0) {
        return rc;
    }
    if (history_read(&m->history, m->x->program, m->x->lock, &m->files, &f) != 0) {
        return err_join(&f, m->err);
    }
    const struct program_row *s = &m->history.status;
    if (!s->unsealed && !s->unblinded) {
        return err_set(m->err, ERR_REFUSED,
                       "the scores are sealed: nothing of them leaves before all counted tasks "
                       "have ended");
    }
    return s->verdict ? 0 : err_set(m->err, ERR_REFUSED, "there is no verdict yet");
}

/* Reads the plan that the verdict was computed with: instruments may be amended after it. */
static int read_judged(struct making *m)
{
    struct err f = {0};
    const struct lock *lock = m->x->lock;
    m->head =
        m->x->imported ? lock->head : history_head_at(&m->history, lock, m->history.verdict_row);
    return plan_at_head(&m->files, lock, m->head, &m->judged, &f) == 0 ? 0 : err_join(&f, m->err);
}

/* Evidence from results or given records, then everything that follows. */
static int write_all(struct making *m)
{
    evidence_init(&m->evidence, m->judged != NULL ? m->judged : m->x->program);
    int rc = m->x->imported ? read_given(m) : write_records(m);
    if (rc != 0 || (!m->x->imported && (rc = write_places(m)) != 0)) {
        return rc;
    }
    return write_rest(m);
}

/* The order matters: history, then the plan at the verdict's row, then the records under that
 * plan. */
int export_parts(const struct exporting *x, struct err *err)
{
    struct making m = {.x = x, .files = {.fd = -1}, .err = err};
    int rc = x->imported ? 0 : read_history(&m);
    if (rc != 0 || (rc = read_judged(&m)) != 0) {
        goto out;
    }
    rc = write_all(&m);
out:
    if (m.verdict.file != NULL) {
        verdict_release(&m.verdict);
    }
    evidence_release(&m.evidence);
    program_free(m.judged);
    history_release(&m.history);
    files_release(&m.files);
    return rc;
}
