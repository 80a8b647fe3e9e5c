/*
 * Replays a journal as the daemon's own reader would, but trusts no line: form, number and hash
 * first (check_chain), then the row's meaning against the state that the rows before it left. All
 * state is derived from rows; nothing is taken from a row that an earlier one already determined.
 * The rules about attempts and levels of access are in history_rules.c, the questions to a history
 * in history_ask.c.
 */
#include "ctl/receipt/history.h"

#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/history_rules.h"
#include "prereg/program/apparatus_name.h"
#include "prereg/program/same_work.h"
#include "state/journal/chain.h"
#include "state/journal/line.h"

struct history_reading {
    struct history *h;
    const struct lock *lock;
    const char *id; /* "<name>-<first 8 hex of root>" */
    struct wall_time locked;
    struct wall_time last; /* of the row before; of the lock, before the first */
    struct digest prev;
    size_t n_open;        /* tasks of the grid that have not ended */
    struct strbuf again;  /* a line as it is written; reused */
    struct arena of_line; /* its tree; likewise */
    struct err *err;
};

/* ---- the chain ---- */

/* Number, form and hash of a row; keeps the hash. The form is checked because a row that is not
 * canonical JSON, byte for byte, was not written by the daemon. */
static int check_chain(struct history_reading *r, const struct journal_line *line)
{
    struct history *h = r->h;
    struct journal_chain chain = {(int64_t)h->n_rows, r->prev};
    struct journal_link link;
    char hex[DIGEST_HEX_SIZE];
    const enum journal_fault fault = journal_extend(&chain, line, &link, &r->again, r->err);
    if (fault == JOURNAL_MEMBER) {
        return mismatch_code(r->err);
    }
    if (fault == JOURNAL_NUMBER) {
        return err_differs_int(r->err, "the row's number (a row is missing, or out of order)",
                               (long long)h->n_rows + 1, link.seq);
    }
    if (!link.is_canonical) {
        return err_set(r->err, ERR_LOCK, "is not in the form in which the daemon writes a row");
    }
    if (fault == JOURNAL_HASH) {
        digest_hex(&link.hash, hex);
        return err_differs(r->err, "the row's hash does not follow from the row before and itself",
                           hex, link.said);
    }
    ARRAY_GROW(h->hashes, h->n_rows, h->cap_rows);
    h->hashes[h->n_rows++] = link.hash;
    r->prev = link.hash;
    return 0;
}

/* ---- [run] ---- */

/* Keeps the [run] settings that hold from this row on. */
static int take_run(struct history_reading *r, const cJSON *run)
{
    return run_record_set(r->h->record, (int64_t)r->h->n_rows, run, r->err) == 0
               ? 0
               : mismatch_code(r->err);
}

/* A change of [run] has the settings as text. */
static int take_other_run(struct history_reading *r, const cJSON *line)
{
    const char *text = NULL;
    cJSON *run = NULL;
    if (json_get_string(line, "detail", &text, r->err) != 0 ||
        tree_parse(text, strlen(text), false, &r->of_line, &run, r->err) != 0) {
        return mismatch_code(r->err);
    }
    return take_run(r, run);
}

/* ---- the first row ---- */

/* The first row names program, root and stages. A "detail" marks a journal that was rebuilt from
 * files. */
static int check_submitted(struct history_reading *r, const cJSON *line)
{
    const struct plan_program *p = r->h->program;
    cJSON *expected = json_object();
    cJSON *stages = json_array();
    const char *detail = NULL;
    json_put_int(expected, "cells", (int64_t)p->n_cells);
    json_put_string(expected, "head", r->lock->root);
    json_put_string(expected, "id", r->id);
    json_put_string(expected, "name", p->name);
    json_put_string(expected, "root", r->lock->root);
    for (size_t i = 0; i < p->n_stages; i++) {
        json_push_string(stages, p->stages[i].name);
    }
    json_put(expected, "stages", stages);
    const cJSON *found = json_member(line, "program");
    int rc = found == NULL ? err_set(r->err, ERR_LOCK, "names no program")
                           : mismatch_trees(r->err, "program", expected, found);
    cJSON_Delete(expected);
    if (rc == 0 && json_opt_string(line, "detail", &detail, r->err) != 0) {
        rc = mismatch_code(r->err);
    }
    r->h->unverified = detail != NULL;
    const cJSON *run = json_member(line, "run");
    return rc == 0 ? take_run(r, run) : rc;
}

/* ---- rows of tasks ---- */

/* Cell and stage in a row must be those of its task's number. */
static int check_names(const struct history_reading *r, const cJSON *line, size_t task)
{
    const struct plan_program *p = r->h->program;
    const cJSON *part = json_member(line, "task");
    const char *cell = NULL;
    const char *stage = NULL;
    if (json_get_string(part, "cell", &cell, r->err) != 0 ||
        json_get_string(part, "stage", &stage, r->err) != 0) {
        return mismatch_code(r->err);
    }
    const char *its_cell = p->cells[task / p->n_stages].name;
    const char *its_stage = p->stages[task % p->n_stages].name;
    if (strcmp(cell, its_cell) != 0) {
        return err_differs(r->err, "task.cell", its_cell, cell);
    }
    return strcmp(stage, its_stage) == 0 ? 0 : err_differs(r->err, "task.stage", its_stage, stage);
}

/* Whether the task can have got from `was` to `from` without a row: a waiting task became ready,
 * a started one ran. */
static bool moved_silently(enum task_state was, enum task_state from)
{
    return was == from || (was == TASK_WAITING && from == TASK_READY) ||
           (was == TASK_STARTING && from == TASK_RUNNING);
}

/* Whether the tasks of a cell may have been given up for one of the cell `lost`: it is that cell,
 * or has another name of a work there. */
static bool is_tied(const struct plan_program *p, size_t cell, size_t lost)
{
    bool tied = false;
    for (size_t s = 0; s < p->n_stages; s++) {
        tied = tied || program_is_same_work(p, s, cell, lost);
    }
    return tied;
}

/* Whether a task may be revived in the row just read. A program that is paused for failures revives
 * its tasks. After that pause was lifted, only a task whose attempt it answered is revived, in the
 * row after that attempt's end, and in the rows after it the later tasks of its cell, and other
 * names of their work, that were given up for it. */
static bool may_revive(const struct history *h, const struct state_row *row)
{
    const size_t n_stages = h->program->n_stages;
    const size_t answered = h->tasks[row->task].answered;
    if ((h->status.paused & PAUSE_FAILURES) != 0 || (answered > 0 && answered + 1 == h->n_rows)) {
        return true;
    }
    return h->revived_row > 0 && h->revived_row + 1 == h->n_rows && row->task > h->revived &&
           is_tied(h->program, row->task / n_stages, h->revived / n_stages) &&
           row->from == TASK_NEVER_RUN;
}

/* The move must start where the task was, be legal, and break no rule about retries after scores
 * were visible. */
static int check_move(const struct history_reading *r, const struct state_row *row)
{
    const struct history_task *t = &r->h->tasks[row->task];
    if (!moved_silently(t->state, row->from)) {
        return err_differs(r->err, "task.from is not where the task was", task_state_name(t->state),
                           task_state_name(row->from));
    }
    /* an unblinding before the first result shows nothing */
    bool seen = r->h->status.unsealed || (r->h->status.unblinded && r->h->n_accepted > 0);
    bool again = row->kind == ROW_TASK_RETRIED || row->kind == ROW_TASK_REVIVED;
    if (again && seen &&
        program_stage_is_counted(r->h->program, row->task % r->h->program->n_stages)) {
        return err_set(r->err, ERR_LOCK,
                       "a counted task is tried again after its scores could be seen");
    }
    if (row->kind == ROW_TASK_REVIVED && !may_revive(r->h, row)) {
        return err_set(r->err, ERR_LOCK,
                       "a task is revived, and its program was not paused for failures");
    }
    if (!state_row_is_legal(row)) {
        return err_set(r->err, ERR_LOCK, "%s: from %s to %s is not a legal move",
                       row_kind_name(row->kind), task_state_name(row->from),
                       task_state_name(row->after.state));
    }
    return 0;
}

/* An attempt starts: numbers of a task's attempts have no gaps. */
static int take_start(struct history_reading *r, const struct state_row *row)
{
    struct history *h = r->h;
    struct history_task *t = &h->tasks[row->task];
    if (row->attempt.no != t->n_attempts + 1) {
        return err_differs_int(r->err, "attempt.no", (long long)t->n_attempts + 1, row->attempt.no);
    }
    t->n_attempts++;
    t->lifts = h->n_lifts;
    ARRAY_GROW(h->attempts, h->n_attempts, h->cap_attempts);
    h->attempts[h->n_attempts++] = (struct history_attempt){.task = row->task, .row = row->attempt};
    t->live = h->n_attempts;
    return 0;
}

/* Notes whether the attempt that ends was at work when a pause for failures was lifted, in a stage
 * that had no result then: it belongs to that pause whenever it ends. */
static void note_answered(struct history *h, uint32_t task)
{
    const struct history_stage *s = &h->stages[task % h->program->n_stages];
    const size_t lifts = s->n_accepted == 0 ? h->n_lifts : s->lifts;
    h->tasks[task].answered = lifts > h->tasks[task].lifts ? h->n_rows : 0;
}

/* Counts an accepted result of the grid. */
static void count_accepted(struct history *h, uint32_t task)
{
    struct history_stage *s = &h->stages[task % h->program->n_stages];
    if (s->n_accepted == 0) {
        s->lifts = h->n_lifts;
    }
    s->n_accepted++;
    h->n_accepted++;
}

/* The attempt at work ends; a result is accepted with its digest. */
static int take_end(struct history_reading *r, const struct state_row *row)
{
    struct history_task *t = &r->h->tasks[row->task];
    struct history_attempt *a = t->live == 0 ? NULL : &r->h->attempts[t->live - 1];
    if (a == NULL || a->row.no != row->attempt.no) {
        return err_set(r->err, ERR_LOCK,
                       "attempt %u is not at work: it never started, or has ended",
                       row->attempt.no);
    }
    if (strcmp(a->row.id, row->attempt.id) != 0) {
        return err_differs(r->err, "attempt.id", a->row.id, row->attempt.id);
    }
    int rc = history_check_attempt(r->h, r->locked, row, &a->row, r->err);
    if (rc != 0) {
        return rc;
    }
    a->row = row->attempt;
    t->live = 0;
    note_answered(r->h, row->task);
    t->n_resumes += row->attempt.resumed_from >= 0 ? 1 : 0;
    if (row->has_result) {
        t->accepted = row->attempt.no;
        count_accepted(r->h, row->task);
        t->result = row->result_digest;
    }
    return 0;
}

/* A row of a task of the grid: checks it and moves the task. */
static int take_task_row(struct history_reading *r, const cJSON *line, const struct state_row *row)
{
    struct history *h = r->h;
    int rc = check_names(r, line, row->task);
    if (rc != 0 || (rc = check_move(r, row)) != 0) {
        return rc;
    }
    if (row->kind == ROW_ATTEMPT_STARTED) {
        rc = take_start(r, row);
    } else if (row->kind == ROW_ATTEMPT_ENDED) {
        rc = take_end(r, row);
    } else if (row->kind == ROW_RESULT_LOST) {
        h->tasks[row->task].accepted = 0;
    } else if (row->kind == ROW_TASK_REVIVED) {
        h->revived_row = h->n_rows;
        h->revived = row->task;
    }
    if (rc != 0) {
        return rc;
    }
    struct history_task *t = &h->tasks[row->task];
    if (row->after.n_attempts != t->n_attempts) {
        return err_differs_int(r->err, "task.attempts", t->n_attempts, row->after.n_attempts);
    }
    if (h->verdict_row != 0 && row->kind != ROW_TASK_ENDING) {
        return err_set(r->err, ERR_LOCK, "a task moves after the verdict (row %zu)",
                       h->verdict_row);
    }
    run_record_take(h->record, line, row);
    r->n_open -= task_state_is_terminal(t->state) ? 0 : 1;
    r->n_open += task_state_is_terminal(row->after.state) ? 0 : 1;
    t->state = row->after.state;
    t->cause = row->after.cause;
    return 0;
}

/* ---- rows of the program ---- */

/* "TIME: REASON", as provenance.json lists it. */
static void take_text(cJSON *list, const cJSON *line)
{
    const cJSON *time = json_member(line, "time");
    const cJSON *detail = json_member(line, "detail");
    char *text =
        xasprintf("%s: %s", time->valuestring, cJSON_IsString(detail) ? detail->valuestring : "");
    json_push_string(list, text);
    free(text);
}

/* Flags of the program's status never go back, and a verdict never changes. */
static int check_status(const struct history_reading *r, const struct program_row *now)
{
    const struct program_row *was = &r->h->status;
    if ((was->unsealed && !now->unsealed) || (was->unblinded && !now->unblinded) ||
        (was->verdict && !now->verdict) || (was->reported && !now->reported) ||
        (was->removed && !now->removed)) {
        return err_set(r->err, ERR_LOCK, "status takes back what was so in a row before");
    }
    if (was->verdict && (strcmp(was->outcome, now->outcome) != 0 ||
                         !digest_equal(&was->verdict_digest, &now->verdict_digest))) {
        return err_set(r->err, ERR_LOCK, "status names another verdict than row %zu",
                       r->h->verdict_row);
    }
    return 0;
}

/* A row of the program: its status, [run], amendments, the verdict. */
static int take_program_row(struct history_reading *r, const cJSON *line,
                            const struct state_row *row)
{
    struct history *h = r->h;
    int rc = check_status(r, &row->status);
    if (rc != 0 || (rc = history_check_program(h, row, r->err)) != 0) {
        return rc;
    }
    if (row->kind == ROW_UNBLINDED || row->kind == ROW_TAKEN_OVER) {
        take_text(row->kind == ROW_UNBLINDED ? h->unblindings : h->takeovers, line);
    }
    rc = row->kind == ROW_RUN_SETTINGS ? take_other_run(r, line) : 0;
    if (rc != 0) {
        return rc;
    }
    /* no task may be open when the verdict is given */
    const bool is_given = row->kind == ROW_VERDICT && h->verdict_row == 0;
    for (size_t i = 0; is_given && i < h->n_tasks; i++) {
        if (!task_state_is_terminal(h->tasks[i].state)) {
            return err_set(r->err, ERR_LOCK, "a verdict while task %zu is %s", i,
                           task_state_name(h->tasks[i].state));
        }
    }
    /* the row's own number is ours to add; a member of that name in the line is refused */
    const cJSON *amendment = json_member(line, "amendment");
    if (amendment != NULL && (row->kind != ROW_AMENDED || json_member(amendment, "row") != NULL)) {
        return err_set(r->err, ERR_LOCK, "\"amendment\" is not what a row says of one");
    }
    if (amendment != NULL) {
        cJSON *copy = json_copy(amendment);
        json_put_int(copy, "row", (int64_t)h->n_rows);
        json_push(h->amended, copy);
    }
    if (row->status.verdict && !h->status.verdict) {
        h->verdict_row = h->n_rows;
    }
    if ((h->status.paused & PAUSE_FAILURES) != 0 && (row->status.paused & PAUSE_FAILURES) == 0) {
        h->n_lifts++;
    }
    h->status = row->status;
    return 0;
}

/* Keeps the result of an attempt at an apparatus check that was judged, whether it held or not. */
static void take_check_result(struct history_reading *r, const cJSON *line,
                              const struct state_row *row, cJSON *results)
{
    const cJSON *detail = json_member(line, "detail");
    if (row->kind != ROW_ATTEMPT_ENDED ||
        (row->after.state != TASK_DONE && row->after.cause != CAUSE_APPARATUS)) {
        return;
    }
    cJSON *one = json_object();
    json_put_int(one, "row", (int64_t)r->h->n_rows);
    json_put_int(one, "attempt", row->attempt.no);
    json_put_string(one, "text", cJSON_IsString(detail) ? detail->valuestring : NULL);
    json_push(results, one);
}

/* The second run of a check starts, and is accepted, when no task of the grid is open. Counted, not
 * searched: a stranger's journal may have any number of such rows. */
static int check_grid_ended(const struct history_reading *r, const char *name)
{
    size_t i = 0;
    if (r->n_open == 0) {
        return 0;
    }
    while (task_state_is_terminal(r->h->tasks[i].state)) {
        i++;
    }
    return err_set(r->err, ERR_LOCK, "apparatus/%.60s while task %zu is %s", name, i,
                   task_state_name(r->h->tasks[i].state));
}

/* A row of an apparatus check, which is not a task of the grid: keeps its present state by its
 * name. */
static int take_check_row(struct history_reading *r, const cJSON *line, const struct state_row *row)
{
    const char *name = NULL;
    if (row->task < r->h->n_tasks) {
        return err_set(r->err, ERR_LOCK, "an apparatus check in the place of a task of the grid");
    }
    if (json_get_string(json_member(line, "task"), "apparatus", &name, r->err) != 0) {
        return mismatch_code(r->err);
    }
    if (!state_row_is_legal(row)) {
        return err_set(r->err, ERR_LOCK, "%s: from %s to %s is not a legal move",
                       row_kind_name(row->kind), task_state_name(row->from),
                       task_state_name(row->after.state));
    }
    if (apparatus_name_is_end(name) &&
        (row->kind == ROW_ATTEMPT_STARTED || row->after.state == TASK_DONE)) {
        int rc = check_grid_ended(r, name);
        if (rc != 0) {
            return rc;
        }
    }
    if (json_member(r->h->checks, name) == NULL &&
        cJSON_GetArraySize(r->h->checks) >= HISTORY_CHECKS_MAX) {
        return err_set(r->err, ERR_LOCK, "more than %d checks of the apparatus",
                       HISTORY_CHECKS_MAX);
    }
    /* the check's entry is replaced, its results are kept */
    cJSON *was = cJSON_DetachItemFromObjectCaseSensitive(r->h->checks, name);
    cJSON *results = cJSON_DetachItemFromObjectCaseSensitive(was, "results");
    results = results != NULL ? results : json_array();
    take_check_result(r, line, row, results);
    cJSON *now = json_object();
    json_put_string(now, "state", task_state_name(row->after.state));
    json_put_string(now, "cause",
                    row->after.cause == CAUSE_NONE ? NULL : cause_name(row->after.cause));
    json_put_int(now, "attempts", row->after.n_attempts);
    json_put(now, "results", results);
    json_put(r->h->checks, name, now);
    cJSON_Delete(was);
    return 0;
}

/* Checks the row's time: not before the lock, and, where the row says that the clock was behind,
 * equal to the time of the row before it (of the lock, when it is the first). */
static int check_time(struct history_reading *r, const struct state_row *row, const char *said)
{
    char text[WALL_TEXT_SIZE];
    struct wall_time when;
    if (!clock_wall_parse(said, &when)) {
        return err_set(r->err, ERR_LOCK, "\"time\" is not a time");
    }
    if (when.ms < r->locked.ms) {
        clock_wall_text(r->locked, text);
        return err_differs(r->err, "the row's time is before the lock's", text, said);
    }
    if (row->behind_ms > 0 && when.ms != r->last.ms) {
        clock_wall_text(r->last, text);
        return err_differs(r->err,
                           "the row names a clock that was behind, and then has the time of the "
                           "row before it",
                           text, said);
    }
    r->last = when;
    return 0;
}

/* Dispatches a row by its kind. */
static int take_row(struct history_reading *r, const cJSON *line)
{
    struct state_row row;
    const char *time = NULL;
    if (line_to_row(line, 1, &row, r->err) != 0 ||
        json_get_string(line, "time", &time, r->err) != 0) {
        return mismatch_code(r->err);
    }
    int rc = check_time(r, &row, time);
    if (rc != 0) {
        return rc;
    }
    if ((row.kind == ROW_SUBMITTED) != (r->h->n_rows == 1)) {
        return err_set(r->err, ERR_LOCK, "the submission is the first row, and no other");
    }
    if (row.kind == ROW_SUBMITTED) {
        return check_submitted(r, line);
    }
    if (!row_kind_is_of_task(row.kind)) {
        return take_program_row(r, line, &row);
    }
    if (row.kind == ROW_ATTEMPT_STARTED) {
        rc = history_check_attempt(r->h, r->locked, &row, NULL, r->err);
        if (rc != 0) {
            return rc;
        }
        history_note_start(r->h, &row);
    }
    if (json_member(json_member(line, "task"), "apparatus") != NULL) {
        return take_check_row(r, line, &row);
    }
    if (row.task >= r->h->n_tasks) {
        return err_set(r->err, ERR_LOCK, "task %u: the plan has %zu", row.task, r->h->n_tasks);
    }
    return take_task_row(r, line, &row);
}

/* One line: chain, then meaning. */
static int take_line(struct history_reading *r, const char *text, size_t len)
{
    cJSON *line = NULL;
    arena_clear(&r->of_line);
    if (tree_parse(text, len, false, &r->of_line, &line, r->err) != 0) {
        return mismatch_code(r->err);
    }
    int rc = check_chain(r, &(struct journal_line){text, len, line});
    return rc == 0 ? take_row(r, line) : rc;
}

/* Tasks without dependencies begin ready; the first row's moves rest on that. */
static void init_tasks(struct history *h)
{
    const struct plan_program *p = h->program;
    h->tasks = xcalloc(h->n_tasks, sizeof(*h->tasks));
    h->stages = xcalloc(p->n_stages, sizeof(*h->stages));
    for (size_t i = 0; i < h->n_tasks; i++) {
        h->tasks[i].state = program_task_waits(p, i) ? TASK_WAITING : TASK_READY;
    }
}

/* Orders attempts by task and number, for history_attempts_of(). */
static int by_task(const void *a, const void *b)
{
    const struct history_attempt *x = a;
    const struct history_attempt *y = b;
    if (x->task != y->task) {
        return x->task < y->task ? -1 : 1;
    }
    return x->row.no < y->row.no ? -1 : x->row.no > y->row.no;
}

/* On a fault the history is filled up to that row, and may be released. */
int history_read(struct history *h, const struct plan_program *p, const struct lock *lock,
                 const struct receipt_files *files, struct err *err)
{
    struct receipt_lines l;
    const char *text = NULL;
    size_t len = 0;
    char *id = lock_program_id(lock);
    struct history_reading r = {.h = h, .lock = lock, .id = id, .again = STRBUF_INIT, .err = err};
    const cJSON *time = json_member(lock->json, "time");
    *h = (struct history){.program = p, .n_tasks = program_n_tasks(p)};
    h->amended = json_array();
    h->unblindings = json_array();
    h->takeovers = json_array();
    h->checks = json_object();
    h->record = run_record_create(p);
    arena_init(&r.of_line);
    init_tasks(h);
    r.n_open = h->n_tasks;
    err_at(err, RECEIPT_LOCK, 0);
    int rc = cJSON_IsString(time) && clock_wall_parse(time->valuestring, &r.locked)
                 ? 0
                 : err_set(err, ERR_LOCK, "\"time\" is not a time");
    r.last = r.locked;
    l = (struct receipt_lines){.fd = -1, .buf = STRBUF_INIT};
    if (rc == 0) {
        rc = lines_open(&l, files, RECEIPT_JOURNAL, JOURNAL_LINE_MAX, err);
    }
    while (rc == 0) {
        rc = lines_next(&l, &text, &len, err);
        if (rc != 0 || text == NULL) {
            break;
        }
        rc = take_line(&r, text, len);
    }
    if (rc == 0 && h->n_rows == 0) {
        rc = err_set(err, ERR_LOCK, "is empty");
    }
    if (h->n_attempts > 0) {
        qsort(h->attempts, h->n_attempts, sizeof(*h->attempts), by_task);
    }
    h->runs = run_record_json(h->record);
    lines_release(&l);
    arena_release(&r.of_line);
    strbuf_release(&r.again);
    free(id);
    return rc;
}
