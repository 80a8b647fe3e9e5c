/* Apparatus checks within the core: their first runs, which held stages wait for, and their second
 * ones after the grid. For the files of daemon/core only. */
#ifndef DAEMON_CORE_APPARATUS_H
#define DAEMON_CORE_APPARATUS_H

#include "daemon/core/model.h"

/* The name and standing of one check; its work is described by a stage entry of its own. */
struct apparatus_slot {
    char *name;
    bool again; /* a second run, whose first one is at `first`; it waits for the grid's end */
    uint32_t first;
    bool declared;
};

/* apparatus.c */
bool task_is_apparatus(const struct core_program *p, uint32_t task);
/* False for a check that an amendment removed. */
bool apparatus_is_declared(const struct core_program *p, uint32_t task);
/* Whether a task may be queued: true of the grid; a check must be declared, and the second run of
 * one waits for the end of the grid. */
bool apparatus_is_wanted(const struct core_program *p, uint32_t task);
bool task_is_held(const struct core_program *p,
                  uint32_t task); /* ready, and not to be started yet */
/* Sets the checks as the plan declares them: known ones stay, new ones are appended. The caller
 * makes their tasks. */
void apparatus_set(struct core_program *p, const struct core_plan *plan);
bool apparatus_holds(const struct core_program *p); /* every declared first run is done */
/* Declared first runs that have not ended. */
uint32_t apparatus_n_open(const struct core_program *p);
uint32_t apparatus_n_ready(const struct core_program *p); /* in the ready queue */
void apparatus_free(struct core_program *p);
bool task_is_again(const struct core_program *p, uint32_t task); /* the second run of a check */
/* Whether its score was not that of the first run: that is final. */
bool again_has_failed(const struct core_program *p, uint32_t task);
/* Whether nothing is to come of the second runs any more: scores and verdict wait for it. */
bool again_is_settled(const struct core_program *p);

/* apparatus_changes.c */
/* An amendment: changed checks are repeated, and a pause that has lost its reason ends. */
void apparatus_amend(struct core *c, struct core_program *p, const struct core_plan *plan);
/* Pauses the program for a declared check that is blocked, unless it was stopped. */
void apparatus_blocked(struct core *c, struct core_program *p, uint32_t task, const char *text);
/* Makes blocked checks ready again, on a resume. */
void apparatus_revive(struct core *c, struct core_program *p);

/* apparatus_again.c: starts the second runs when the grid has ended, and takes them back when it
 * goes on. */
void again_advance(struct core *c, struct core_program *p);

#endif
