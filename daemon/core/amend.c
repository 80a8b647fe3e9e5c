/* Amendments: how far anybody can have looked, and the row that makes one take effect. What may
 * change then is prereg's to say (prereg/amend_rules.h); here it is only made sure that what it was
 * judged by is still so. */
#include "daemon/core/amend.h"

#include "daemon/core/internal.h"

static struct core_access access_of(const struct program *p)
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
            /* Whatever became of it: what an evaluation that was killed had scored by then lies on
             * a disk, and looking at it would not be known. */
            a.level = task_stage(p, i)->sealed ? ACCESS_SEALED : a.level;
        }
    }
    if (p->status.unsealed || p->status.unblinded || p->status.verdict) {
        a.level = ACCESS_SEEN;
    }
    return a;
}

/* Of what has been started since: a stage whose params change, or one whose results lie open, for
 * metrics, forecasts and validity are judged by what could be looked at. */
static bool is_overtaken(const struct program *p, const struct core_amendment *a,
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
    const struct program *p = program < c->cap_programs ? c->programs[program] : NULL;
    if (p != NULL) {
        *out = access_of(p);
    }
    return p != NULL;
}

void program_amend(struct core *c, struct program *p, const struct core_event *ev)
{
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
