/* Carries a program to its end: requests the unsealing of its scores, the verdict and the report,
 * each as soon as it is due and once. A program with a damaged row is shut down here. program_add.c
 * creates programs, pause.c pauses them. */
#include "daemon/core/gpus.h"

#include "daemon/core/apparatus.h"
#include "daemon/core/internal.h"
#include <assert.h>

struct core_program *program_of(struct core *c, uint32_t no)
{
    assert(c != NULL);
    return no < c->cap_programs ? c->programs[no] : NULL;
}

/* S3: an attempt that may be alive holds its slot until its end is known. It is left to run: its
 * result stays in its folder, where a rebuild finds it. One that is being verified has ended. One
 * that starts is probed at once: the act that was to start it may have been dropped with its row.
 */
void program_damaged(struct core *c, struct core_program *p)
{
    assert(c != NULL && p != NULL);
    if (p->damaged) {
        return;
    }
    p->damaged = true;
    p->stop_below = 0;
    p->retry_from = NOWHERE;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        struct live *l = live_of(c, p, i);
        if (l != NULL && l->phase == LIVE_VERIFYING) {
            live_free(c, l);
        } else if (l != NULL) {
            p->tasks[i].ending = CAUSE_STOPPED; /* no result is verified */
            if (l->phase == LIVE_STARTING) {
                attempt_timer(c, l);
            }
        }
    }
}

void program_unseal(struct core *c, struct core_program *p)
{
    assert(!p->damaged);
    if (p->status.unsealed) {
        return;
    }
    p->status.unsealed = true;
    (void)emit_program_row(c, p, ROW_UNSEALED, NULL);
}

/* Scores open when all counted tasks are terminal and the apparatus checks have been run again: a
 * person who knew the scores could stop those runs for them. While nothing was ever accepted there
 * is nothing to open, so that what failed may be tried again: the verdict opens them then. The
 * verdict waits for the uncounted tasks too: it states the coverage of all tasks, and must be the
 * same bytes whatever order they ended in. Each of the three comes once (S7). */
void program_advance(struct core *c, struct core_program *p)
{
    assert(p->n_counted_open <= p->n_counted);
    struct program_row *s = &p->status;
    if (p->damaged) {
        return;
    }
    again_advance(c, p);
    bool counted_ended = p->n_counted_open == 0 && (p->n_counted > 0 || program_n_open(p) == 0) &&
                         again_is_settled(p);
    if (counted_ended && p->n_accepted > 0) {
        program_unseal(c, p);
    }
    if (!counted_ended || program_n_open(p) + apparatus_n_open(p) > 0 || p->n_unlinked > 0) {
        return;
    }
    if (!s->verdict && !p->verdict_asked && !p->verdict_failed) {
        p->verdict_asked = true;
        emit_act(c, ACT_VERDICT, p);
    }
    if (s->verdict && !s->reported && !p->report_asked) {
        p->report_asked = true;
        emit_act(c, ACT_REPORT, p);
    }
}

void program_free_all(struct core *c)
{
    assert(c != NULL);
    for (uint32_t i = 0; i < c->cap_programs; i++) {
        if (c->programs[i] != NULL) {
            apparatus_free(c->programs[i]);
            same_work_free(c->programs[i]);
            for (uint32_t s = 0; s < c->programs[i]->n_stages; s++) {
                free(c->programs[i]->stages[s].name);
            }
            free(c->programs[i]->slice_text);
            free(c->programs[i]->stages);
            free(c->programs[i]->tasks);
            ready_free(c->programs[i]);
            gpus_free_limits(c->programs[i]);
            free(c->programs[i]);
        }
    }
    free(c->programs);
}
