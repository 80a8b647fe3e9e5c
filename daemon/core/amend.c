/* Amendments: how much of a program can have been seen, and the row that makes an amendment take
 * effect. What may change at which level is prereg's decision (prereg/amend/amend_rules.h). Here
 * the premises of that decision are checked again, since the program may have moved on meanwhile.
 */
#include "daemon/core/core.h"

#include <assert.h>

#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"

static struct core_access access_of(const struct core_program *p)
{
    struct core_access a = {.level = ACCESS_NOTHING_RUN};
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        bool of_grid = i / p->n_stages < p->n_cells;
        if (p->tasks[i].n_attempts == 0) {
            continue;
        }
        a.level = a.level == ACCESS_NOTHING_RUN ? ACCESS_NOTHING_SCORED : a.level;
        if (of_grid) {
            stage_set_add(&a.started, i % p->n_stages);
            a.n_done += p->tasks[i].state == TASK_DONE;
            /* However it ended: the scores of an evaluation that was killed are on a disk, and
             * reading them would leave no trace. */
            a.level = task_stage(p, i)->sealed ? ACCESS_SEALED : a.level;
        }
    }
    if (p->status.unsealed || p->status.unblinded || p->status.verdict) {
        a.level = ACCESS_SEEN;
    }
    return a;
}

/* Whether a stage has been started since that matters: one whose params change, or one whose
 * results are open, since metrics, forecasts and validity are judged by what could be seen. */
static bool is_overtaken(const struct core_program *p, const struct core_amendment *a,
                         const struct stage_set *started)
{
    for (uint32_t i = 0; i < p->n_stages; i++) {
        bool since = stage_set_has(started, i) && !stage_set_has(&a->access.started, i);
        if (since && (stage_set_has(&a->params_of, i) || !p->stages[i].sealed)) {
            return true;
        }
    }
    return false;
}

bool core_access_get(const struct core *c, uint32_t program, struct core_access *out)
{
    assert(c != NULL && out != NULL);
    const struct core_program *p = program < c->cap_programs ? c->programs[program] : NULL;
    if (p != NULL) {
        *out = access_of(p);
    }
    return p != NULL;
}

void program_amend(struct core *c, struct core_program *p, const struct core_event *ev)
{
    assert(c != NULL && p != NULL && ev != NULL && ev->kind == CORE_AMEND);
    const struct core_amendment *a = &ev->amendment;
    struct core_access now = access_of(p);
    if (now.level != a->access.level) {
        emit_refusal(c, "something has happened since: %s", access_level_words(now.level));
    } else if (is_overtaken(p, a, &now.started)) {
        emit_refusal(c, "a stage that it was judged by has been started since: amend again");
    } else if (a->by_results && now.n_done != a->access.n_done) {
        emit_refusal(c, "a task has ended since: amend again");
    } else if (p->stop_below > 0) {
        emit_refusal(c, "every task of it is being cancelled");
    } else if (p->verdict_asked) {
        emit_refusal(c, "its verdict is being computed: amend again");
    } else {
        struct state_row *row = emit_program_row(c, p, ROW_AMENDED, ev->text);
        row->amendment =
            (struct amendment_row){.number = a->number, .head = a->head, .level = now.level};
        if (a->plan != NULL) {
            apparatus_amend(c, p, a->plan);
        }
    }
}
