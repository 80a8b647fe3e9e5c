/* What the parts of the simulation offer each other. */
#ifndef TESTS_SIM_SLURM_PARTS_H
#define TESTS_SIM_SLURM_PARTS_H

#include "tests/sim/slurm/world.h"

void farm_fail(const struct farm *f, const char *fmt, ...) PRINTF_LIKE(2, 3)
    __attribute__((noreturn));
bool farm_chance(struct farm *f, unsigned per_ten_thousand); /* false while all is quiet */
int64_t farm_between(struct farm *f, int64_t low, int64_t high);
struct farm_item *farm_push(struct farm *f, int64_t delay_ms, enum farm_kind kind, uint32_t which);

/* daemon.c: the shell and a small core of tasks. */
void daemon_begin(struct farm *f);
void daemon_step(struct farm *f, const struct slurm_event *ev);
void daemon_dispatch(struct farm *f);
/* An attempt is committed; then it is handed to the book. */
void daemon_new_attempt(struct farm *f, uint32_t task, uint32_t no, const char *id);
void daemon_start(struct farm *f, uint32_t attempt);
void daemon_probe(struct farm *f, uint32_t attempt);
void daemon_die(struct farm *f);
void daemon_rise(struct farm *f);
void daemon_people(struct farm *f);

/* core.c: the real core, where it is used. */
void core_rise(struct farm *f);
void core_tell(struct farm *f, const struct core_event *ev);
void core_report(struct farm *f, const struct slurm_act *act);
void core_drain(struct farm *f);
void core_people(struct farm *f);
void core_release(struct farm *f);

/* cluster.c: the controller. */
void cluster_accept(struct farm *f, struct farm_plan *plan);
void cluster_sbatch(struct farm *f, const struct slurm_act *act, uint32_t batch);
void cluster_squeue(struct farm *f, const struct slurm_act *act);
void cluster_sacct(struct farm *f);
void cluster_scancel(struct farm *f, const struct slurm_act *act);
void cluster_pass(struct farm *f);
void cluster_move(struct farm *f, uint32_t job, enum slurm_state state);
void cluster_purge(struct farm *f, uint32_t job);
void cluster_node_fail(struct farm *f, uint32_t node);
void cluster_crash(struct farm *f);
void cluster_break_node(struct farm *f);
void cluster_wait(struct farm *f, uint32_t job); /* it is pending, again perhaps */
bool cluster_is_live(enum slurm_state s);

/* shim.c: processes and files. */
void shim_start(struct farm *f, uint32_t job);
void shim_end(struct farm *f, uint32_t job);
void shim_kill(struct farm *f, uint32_t job);
void shim_term(struct farm *f, uint32_t job);
void shim_look(struct farm *f, const struct attempt_key *key);

/* check.c */
void check_call(struct farm *f, const struct slurm_act *act);
void check_submit(struct farm *f, uint32_t attempt);
void check_cancelled(struct farm *f, uint32_t job);
void check_foreign(struct farm *f, const struct slurm_act *act, uint32_t job);
void check_ended(struct farm *f, uint32_t attempt, const struct slurm_act *act);
void check_look(struct farm *f, uint32_t attempt);
void check_step(struct farm *f);
void check_finish(struct farm *f);

void farm_run(const struct farm_config *config, struct farm *f);
void farm_release(struct farm *f);

static inline uint32_t farm_attempt_of(const struct farm *f, const struct attempt_key *key)
{
    uint32_t at = f->tasks[key->task].current;
    return at != NONE && f->attempts[at].no == key->no ? at : NONE;
}

#endif
