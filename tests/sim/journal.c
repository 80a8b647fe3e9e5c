/* The journal of some worlds, as the store would write it: every journalled row becomes a line and
 * is read back from it. At the end the lines alone must give what was committed. */
#include "base/xalloc.h"
#include "state/journal/line.h"
#include "tests/sim/parts.h"

struct sim_journal {
    struct task_row *tasks;
    uint32_t n_tasks;
    struct program_row status;
    uint32_t n_amended;
};

struct sim_journal *journal_new(void)
{
    return xcalloc(1, sizeof(struct sim_journal));
}

void journal_free(struct sim_journal *j)
{
    if (j != NULL) {
        free(j->tasks);
        free(j);
    }
}

static void take_task(struct sim *s, const struct sim_program *p, const struct state_row *row)
{
    struct sim_journal *j = p->journal;
    if (!state_row_is_legal(row)) {
        sim_fail(s, "the journal's %s of task %u is no legal move", row_kind_name(row->kind),
                 row->task);
    }
    if (j->n_tasks < p->n_tasks) {
        j->tasks = xreallocarray(j->tasks, p->n_tasks, sizeof(*j->tasks));
        for (; j->n_tasks < p->n_tasks; j->n_tasks++) {
            task_row_init(&j->tasks[j->n_tasks], TASK_WAITING);
        }
    }
    j->tasks[row->task] = row->after;
}

void journal_take(struct sim *s, const struct state_row *row)
{
    const struct sim_program *p = &s->programs[row->program - 1];
    if (p->journal == NULL || !row_kind_is_journalled(row->kind)) {
        return;
    }
    struct state_row named = *row;
    struct state_row read;
    struct err err;
    named.apparatus = row_kind_is_of_task(row->kind) && row->task >= p->n_grid ? "check" : NULL;
    cJSON *line = line_from_row(&named, "cell", "stage");
    if (line_to_row(line, row->program, &read, &err) != 0 || read.kind != row->kind) {
        sim_fail(s, "a line of the journal is not read back: %s", err.msg);
    }
    if (row_kind_is_of_task(row->kind)) {
        take_task(s, p, &read);
    } else {
        p->journal->status = read.status;
        p->journal->n_amended =
            row->kind == ROW_AMENDED ? read.amendment.number : p->journal->n_amended;
    }
    cJSON_Delete(line);
}

static bool same_task(const struct task_row *a, const struct task_row *b)
{
    return a->state == b->state && a->cause == b->cause && a->ending == b->ending &&
           a->n_attempts == b->n_attempts && a->spent == b->spent && a->crashes == b->crashes &&
           a->idle == b->idle && a->no_space == b->no_space && a->best_done == b->best_done &&
           a->best_checkpoint == b->best_checkpoint;
}

void journal_check(struct sim *s, const struct sim_program *p)
{
    const struct sim_journal *j = p->journal;
    if (j == NULL) {
        return;
    }
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct task_row *r = &p->tasks[i].row;
        if (task_state_is_terminal(r->state) && (i >= j->n_tasks || !same_task(&j->tasks[i], r))) {
            sim_fail(s, "task %u: the journal does not give what was committed", i);
        }
    }
    if (j->status.paused != p->row.paused ||
        j->status.failures_accepted != p->row.failures_accepted || !j->status.unsealed ||
        !j->status.verdict || !j->status.reported || j->status.unblinded != p->row.unblinded ||
        strcmp(j->status.outcome, p->row.outcome) != 0 || j->n_amended != p->n_amended) {
        sim_fail(s, "the journal does not give the program's state");
    }
}
