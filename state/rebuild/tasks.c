/* Tasks held against their folders, task by task in the program's order, so that what a cell's
 * later stages rest on is known before they are checked. */
#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "prereg/program/same_work.h"
#include "state/rebuild/internal.h"
#include "state/store/apparatus.h"

static const char *task_name(const struct rebuilding *r, uint32_t task, char *out, size_t size)
{
    const struct plan_program *p = r->program;
    const struct rebuilding_check *check = rebuild_check_of(r, task);
    if (check != NULL) {
        (void)snprintf(out, size, "apparatus/%s", check->name);
        return out;
    }
    (void)snprintf(out, size, "%s/%s", p->cells[task / p->n_stages].name,
                   p->stages[task % p->n_stages].name);
    return out;
}

static int set_linked(struct rebuilding *r, uint32_t task, struct err *err)
{
    struct state_row row = {
        .kind = ROW_TASK_LINKED, .program = r->no, .task = task, .from = TASK_DONE};
    attempt_row_init(&row.attempt);
    r->tasks[task].linked = true;
    row.after = r->tasks[task];
    return apply_row(r->store, &row, err);
}

/* The result of a task that is done, against its digest; then its link. */
static int check_done(struct rebuilding *r, uint32_t task, const struct found_task *f,
                      struct err *err)
{
    struct digest accepted;
    char name[256];
    bool found = false;
    int rc = store_result_digest(r->store, r->no, task, &accepted, &found, err);
    if (rc == 0 && !found) {
        rc = err_set(err, ERR_CORRUPT, "task %u is done without a result", task);
    }
    if (rc != 0 || f->linked == SIZE_MAX) {
        return rc; /* no link: the daemon died before it made it, and the next one will */
    }
    if (!f->has_result || !digest_equal(&accepted, &f->digest)) {
        rebuild_note(r, "the result of %s is not the one that was verified",
                     task_name(r, task, name, sizeof(name)));
        return 0;
    }
    /* what a reference model scored is not a record */
    if (rebuild_check_of(r, task) == NULL &&
        (r->scores_open || !program_stage_is_sealed(r->program, task % r->program->n_stages))) {
        r->n_records++;
    }
    return set_linked(r, task, err);
}

/* What the journal did not say although the files show it. */
static int check_history(struct rebuilding *r, uint32_t task, const struct found_task *f,
                         struct err *err)
{
    const struct task_row *t = &r->tasks[task];
    char name[256];
    uint32_t newest = f->n > 0 ? f->attempts[f->n - 1].name.no : 0;
    /* A check that was amended keeps the link of what held before. */
    bool unknown_result =
        f->has_result && t->state != TASK_DONE && t->cause != CAUSE_LOST &&
        (rebuild_check_of(r, task) == NULL || f->attempts[f->linked].name.no > t->n_attempts);
    if (newest <= t->n_attempts && !unknown_result) {
        return 0;
    }
    rebuild_note(r, "the files of %s show more than its journal",
                 task_name(r, task, name, sizeof(name)));
    return found_take_in(r, task, f, err);
}

/* Where the journal did not say it: what waits for something that will never be, was never run. */
static int check_dependencies(struct rebuilding *r, uint32_t task, struct err *err)
{
    const struct plan_program *p = r->program;
    const struct plan_stage *s = &p->stages[task % p->n_stages];
    uint32_t first = task - task % (uint32_t)p->n_stages;
    struct state_row row = {.program = r->no, .task = task, .from = r->tasks[task].state};
    bool all_done = true;
    bool dead = false;
    if (r->tasks[task].state != TASK_WAITING) {
        return 0;
    }
    for (size_t i = 0; i < s->n_after; i++) {
        enum task_state d = r->tasks[first + s->after[i]].state;
        all_done = all_done && d == TASK_DONE;
        dead = dead || d == TASK_BLOCKED || d == TASK_NEVER_RUN;
    }
    const size_t worker = program_worker_of(p, task);
    if (worker != task) { /* an earlier task, so what its files show is known */
        enum task_state d = r->tasks[worker].state;
        all_done = all_done && d == TASK_DONE;
        dead = dead || d == TASK_BLOCKED || d == TASK_NEVER_RUN;
    }
    if (!all_done && !dead) {
        return 0;
    }
    attempt_row_init(&row.attempt);
    row.kind = dead ? ROW_TASK_ENDED : ROW_TASK_READY;
    row.after = r->tasks[task];
    row.after.state = dead ? TASK_NEVER_RUN : TASK_READY;
    row.after.cause = dead ? CAUSE_DEPENDENCY : CAUSE_NONE;
    r->tasks[task] = row.after;
    return apply_row(r->store, &row, err);
}

static int take_check(void *ctx, const struct store_apparatus *a, struct err *err)
{
    struct rebuilding *r = ctx;
    (void)err;
    r->checks = xreallocarray(r->checks, r->n_checks + 1, sizeof(*r->checks));
    r->checks[r->n_checks++] = (struct rebuilding_check){
        .name = xstrdup(a->name), .stage = program_find_stage(r->program, a->stage)};
    return 0;
}

static int take_task(struct rebuilding *r, uint32_t task, struct err *err)
{
    struct found_task f;
    if (r->removed && rebuild_check_of(r, task) == NULL) {
        return r->tasks[task].state == TASK_DONE ? set_linked(r, task, err) : 0;
    }
    int rc = found_task_read(r, task, &f, err);
    if (rc == 0) {
        rc = check_history(r, task, &f, err);
    }
    if (rc == 0 && rebuild_check_of(r, task) == NULL) {
        rc = check_dependencies(r, task, err);
    }
    if (rc == 0 && r->tasks[task].state == TASK_DONE) {
        rc = check_done(r, task, &f, err);
    }
    found_task_release(&f);
    return rc;
}

static int read_status(struct rebuilding *r, struct err *err)
{
    char sql[80];
    int64_t open = 0;
    int64_t removed = 0;
    (void)snprintf(sql, sizeof(sql), "SELECT unsealed OR unblinded FROM programs WHERE no=%u",
                   r->no);
    int rc = sql_int(r->store->db, sql, &open, err);
    r->scores_open = open != 0;
    (void)snprintf(sql, sizeof(sql), "SELECT removed FROM programs WHERE no=%u", r->no);
    if (rc == 0) {
        rc = sql_int(r->store->db, sql, &removed, err);
    }
    r->removed = removed != 0;
    return rc;
}

/* ---- what was noted apart from the journal ---- */

static int check_noted_head(struct rebuilding *r, struct err *err)
{
    struct heads heads;
    bool same = true;
    int rc = heads_read(r->store->dir, &heads, err);
    const struct journal_head *h = rc == 0 ? heads_find(&heads, r->id) : NULL;
    if (h != NULL && h->unverified) {
        rebuild_note(r, "its history was found unverified before (" HEADS_FILE ")");
    } else if (h != NULL) {
        rc = heads_compare(r->store, r->no, h, &same, err);
        if (rc == 0 && !same) {
            rebuild_note(r,
                         HEADS_FILE " has row %lld of its journal, which is not there: rows "
                                    "were lost, cut off or replaced",
                         (long long)h->rows);
        }
    }
    heads_release(&heads);
    return rc;
}

/* provenance.json was written after the row of the verdict, with the journal's head of then. */
static int check_provenance(struct rebuilding *r, struct err *err)
{
    cJSON *o = NULL;
    const cJSON *journal = NULL;
    const char *hex = NULL;
    struct journal_head h = {0};
    struct err unread;
    bool same = true;
    int rc = 0;
    char *path = path_join(r->folder, LAYOUT_IN_REPORT(LAYOUT_PROVENANCE));
    if (file_kind_at(path) == FILE_REGULAR &&
        json_read_file(path, LAYOUT_REPORT_MAX, &o, &unread) == 0 &&
        json_get_object(o, "journal", &journal, &unread) == 0 &&
        json_get_string(journal, "head", &hex, &unread) == 0 &&
        json_get_int(journal, "rows", 1, JSON_INT_MAX, &h.rows, &unread) == 0 &&
        digest_from_hex(hex, &h.head, &unread) == 0) {
        rc = heads_compare(r->store, r->no, &h, &same, err);
        if (rc == 0 && !same) {
            rebuild_note(r,
                         "report/provenance.json has row %lld of its journal, which is not "
                         "there: rows were lost, cut off or replaced",
                         (long long)h.rows);
        }
    }
    cJSON_Delete(o);
    free(path);
    return rc;
}

/* verdict.json is written after the row that has its digest. */
static int check_verdict(struct rebuilding *r, struct err *err)
{
    char sql[80];
    int64_t has_verdict = 0;
    char *path = path_join(r->folder, LAYOUT_IN_REPORT(LAYOUT_VERDICT));
    (void)snprintf(sql, sizeof(sql), "SELECT verdict FROM programs WHERE no=%u", r->no);
    int rc = sql_int(r->store->db, sql, &has_verdict, err);
    if (rc == 0 && has_verdict == 0 && file_kind_at(path) == FILE_REGULAR) {
        rebuild_note(r, "report/verdict.json is there, but its journal has no verdict: rows were "
                        "lost or cut off");
    }
    free(path);
    return rc;
}

int rebuild_check_noted(struct rebuilding *r, struct err *err)
{
    assert(r != NULL);
    int rc = check_noted_head(r, err);
    if (rc != 0 || (rc = check_provenance(r, err)) != 0) {
        return rc;
    }
    return check_verdict(r, err);
}

int rebuild_from_files(struct rebuilding *r, struct err *err)
{
    assert(r != NULL);
    size_t n = 0;
    int rc = store_task_rows(r->store, r->no, &r->tasks, &n, err);
    if (rc != 0 || (rc = store_apparatus(r->store, r->no, take_check, r, err)) != 0 ||
        (rc = read_status(r, err)) != 0) {
        return rc;
    }
    if (n != program_n_tasks(r->program) + r->n_checks) {
        return err_set(err, ERR_CORRUPT, "the journal makes %zu tasks, the program has %zu", n,
                       program_n_tasks(r->program) + r->n_checks);
    }
    rc = store_begin(r->store, err);
    if (rc != 0) {
        return rc;
    }
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        rc = take_task(r, i, err);
    }
    if (rc != 0) {
        store_rollback(r->store);
        return rc;
    }
    return store_commit(r->store, err);
}

void rebuild_note(struct rebuilding *r, const char *fmt, ...)
{
    assert(r != NULL && fmt != NULL);
    char text[256];
    va_list args;
    r->unverified = true;
    if (r->note.len > 0) {
        return; /* the first reason is the one to look at */
    }
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    strbuf_adds(&r->note, text);
}
