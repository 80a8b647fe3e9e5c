/* What the store's tests share: a scratch state folder, a small program made by hand, rows. */
#ifndef TESTS_UNIT_STATE_SUPPORT_H
#define TESTS_UNIT_STATE_SUPPORT_H

#include "prereg/program/program.h"
#include "state/store/store.h"
#include "tests/unit/scratch.h"

#define SCRATCH_ID "little-00000000"

/* A fresh folder with programs/little-00000000/ in it; for scratch_remove(). */
char *state_folder_make(void);
char *scratch_path(const char *dir, const char *name); /* in the program's folder */

/* n_cells cells of two stages: train, and an evaluation after it whose results are sealed. */
struct plan_program *program_make(size_t n_cells);
void program_drop(struct plan_program *p);
struct digest root_make(const char *text);

/* Rows as the core would make them; each takes the task from `row->after` on. */
struct walker {
    struct store *store;
    uint32_t program;
    struct task_row tasks[64];
    struct attempt_row attempts[64];
    int64_t now_ms;
    unsigned n_ids;
};

void walker_init(struct walker *w, struct store *store, uint32_t program, size_t n_tasks);
struct state_row walker_start(struct walker *w, uint32_t task);
struct state_row walker_run(struct walker *w, uint32_t task);
struct state_row walker_fail(struct walker *w, uint32_t task, enum task_state to, enum cause cause);
struct state_row walker_done(struct walker *w, uint32_t task, const char *result);
struct state_row walker_ready(struct walker *w, uint32_t task);
struct state_row program_row_make(const struct walker *w, enum row_kind kind,
                                  struct program_row status);

/* One transaction; returns store's code. */
int commit_rows(struct store *store, const struct state_row *rows, size_t n, struct err *err);

/* Everything of a program that a reader can see, as text, for comparisons. */
char *dump(struct store *store, uint32_t program);

#endif
