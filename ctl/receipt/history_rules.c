/*
 * Rules of order between rows, each with a fault of its own. They prove that the daemon followed
 * its protocol: scores were opened when it allows, and every amendment states at least the access
 * there was.
 */
#include "ctl/receipt/history_rules.h"

#include "base/xalloc.h"

/* ---- attempts ---- */

/* The fault for a time that differs, with both as text. */
static int wrong_time(struct err *err, const char *what, struct wall_time expected,
                      struct wall_time found)
{
    char a[WALL_TEXT_SIZE];
    char b[WALL_TEXT_SIZE];
    clock_wall_text(expected, a);
    clock_wall_text(found, b);
    return err_differs(err, what, a, b);
}

int history_check_attempt(const struct history *h, struct wall_time locked,
                          const struct state_row *row, const struct attempt_row *started,
                          struct err *err)
{
    const struct wall_time t = row->attempt.started;
    if (t.ms < locked.ms && !(h->unverified && t.ms == 0)) {
        return wrong_time(err, "attempt.started is before the lock's time", locked, t);
    }
    return started == NULL || h->unverified || started->started.ms == t.ms
               ? 0
               : wrong_time(err, "attempt.started", started->started, t);
}

void history_note_start(struct history *h, const struct state_row *row)
{
    const struct plan_program *p = h->program;
    const struct wall_time started = row->attempt.started;
    struct wall_time t = row->time;
    if (started.ms != 0 && started.ms < t.ms) {
        t = started;
    }
    if (h->first_start.ms == 0 || t.ms < h->first_start.ms) {
        h->first_start = t;
    }
    const bool is_sealed =
        row->task < h->n_tasks && program_stage_is_sealed(p, row->task % p->n_stages);
    const enum access_level level = is_sealed ? ACCESS_SEALED : ACCESS_NOTHING_SCORED;
    h->access = h->access < level ? level : h->access;
}

/* ---- rows of the program ---- */

/* A flag may appear only in the row of its kind, and that row must set it. Scores are opened once,
 * and a verdict is given once: each looks at every task. */
static int check_flags(const struct history *h, const struct state_row *row, struct err *err)
{
    const struct program_row *was = &h->status;
    const struct program_row *now = &row->status;
    const struct {
        const char *name;
        bool was;
        bool now;
        bool once;
        enum row_kind by;
    } flags[] = {{"unsealed", was->unsealed, now->unsealed, true, ROW_UNSEALED},
                 {"unblinded", was->unblinded, now->unblinded, false, ROW_UNBLINDED},
                 {"verdict", was->verdict, now->verdict, true, ROW_VERDICT},
                 {"reported", was->reported, now->reported, false, ROW_REPORTED},
                 {"removed", was->removed, now->removed, true, ROW_REMOVED}};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        const bool is_by = row->kind == flags[i].by;
        if (is_by && !flags[i].now) {
            return err_set(err, ERR_LOCK, "a row \"%s\" whose status is not %s",
                           row_kind_name(row->kind), flags[i].name);
        }
        if (is_by && flags[i].was && flags[i].once) {
            return err_set(err, ERR_LOCK, "a second row \"%s\"", row_kind_name(row->kind));
        }
        if (!is_by && flags[i].now && !flags[i].was) {
            return err_set(err, ERR_LOCK, "status.%s: no row says that it came to that",
                           flags[i].name);
        }
    }
    return 0;
}

/* Scores open when every counted task has ended. */
static int check_unsealing(const struct history *h, struct err *err)
{
    const struct plan_program *p = h->program;
    for (size_t i = 0; i < h->n_tasks; i++) {
        if (program_stage_is_counted(p, i % p->n_stages) &&
            !task_state_is_terminal(h->tasks[i].state)) {
            return err_set(err, ERR_LOCK, "scores are opened while counted task %zu is %s", i,
                           task_state_name(h->tasks[i].state));
        }
    }
    return 0;
}

/* The level in an amendment is at least what the rows before it amount to. */
static int check_level(const struct history *h, const struct state_row *row, struct err *err)
{
    const struct program_row *s = &row->status;
    const bool seen = s->unsealed || s->unblinded || s->verdict;
    const enum access_level is = seen ? ACCESS_SEEN : h->access;
    return row->amendment.level >= is
               ? 0
               : err_differs(err,
                             "amendment.level: by the rows before more could be seen than it says",
                             access_level_name(is), access_level_name(row->amendment.level));
}

int history_check_program(const struct history *h, const struct state_row *row, struct err *err)
{
    if (h->unverified) {
        return 0;
    }
    int rc = check_flags(h, row, err);
    if (rc == 0 && row->kind == ROW_UNSEALED) {
        rc = check_unsealing(h, err);
    }
    if (rc == 0 && row->kind == ROW_REMOVED && !h->status.reported) {
        rc = err_set(err, ERR_LOCK, "its cells are removed before its verdict was reported");
    }
    return rc == 0 && row->kind == ROW_AMENDED ? check_level(h, row, err) : rc;
}
