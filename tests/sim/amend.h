/*
 * Amendments and apparatus checks of a simulated program.
 *
 * A check is a task beyond the grid. What it asks has a version; what an attempt was asked is the
 * version of the moment it began. A hopeless one fails until it is amended. A measure reads one of
 * a few metrics, and not every result has all of them.
 *
 * A person prepares an amendment and the daemon commits it some time later: what it was judged by
 * may be over by then. The number of amendments stands for the head: heads are a chain.
 */
#ifndef TESTS_SIM_AMEND_H
#define TESTS_SIM_AMEND_H

#include "daemon/core/core.h"

#define SIM_CHECKS_MAX 8u
#define SIM_METRICS    3u

struct sim_check {
    uint32_t stage; /* whose work it does */
    bool again;     /* the second run of check 0 */
    bool declared;
    bool hopeless;
    uint32_t version;
};

enum sim_amend_kind { AMEND_METRIC, AMEND_CHECKS, AMEND_PARAMS, AMEND_POST_HOC, SIM_AMEND_NR };

struct sim_amend {
    enum sim_amend_kind kind;
    uint32_t program;
    uint32_t based_on; /* the program's head then */
    struct core_access access;
    struct stage_set params_of;
    uint32_t metric;
    struct sim_check checks[SIM_CHECKS_MAX]; /* as they are then */
    uint32_t n_checks;
};

/* What happened at all, over all worlds. */
struct sim_amend_totals {
    uint64_t n_taken[SIM_AMEND_NR];
    uint64_t n_refused[SIM_AMEND_NR];
    uint64_t n_while_verifying; /* of metrics */
    uint64_t n_again;
    uint64_t n_stale;
    uint64_t n_unexpected;
    uint64_t n_held;
    uint64_t n_repeated; /* second runs that held */
};

struct sim;
struct sim_program;
struct sim_attempt;
struct state_row;

/* The core's words for the checks as they stand; names live as long as the program. */
void amend_plan_checks(const struct sim_check *checks, const struct sim_check *before, uint32_t n,
                       struct core_apparatus *out);
void amend_draw_checks(struct sim *s, struct sim_program *p);

void amend_ask(struct sim *s, uint32_t program);
/* One that changes instruments alone, about now: the verdict is being computed, say. */
void amend_ask_late(struct sim *s, uint32_t program);
/* The program waits for its apparatus: some day somebody makes it again, mends it or gives up. */
void amend_see_pause(struct sim *s, uint32_t program);
/* At the moment of delivery. False: the daemon refuses it, the core hears nothing of it. */
bool amend_deliver(struct sim *s, struct core_event *ev, struct core_plan *plan,
                   struct core_apparatus *checks);
/* The core refused it: there must be a reason. */
void amend_check_refusal(struct sim *s, const struct core_event *ev);
/* A result is judged by the program as it is when the core hears of it. */
void amend_judge(struct sim *s, struct core_event *ev);

/* Checked against what the simulation knows, then it takes effect. */
void amend_take_row(struct sim *s, const struct state_row *row);
void amend_check_start(struct sim *s, const struct sim_program *p, const struct state_row *row);
void amend_check_result(struct sim *s, const struct sim_program *p, const struct state_row *row,
                        const struct sim_attempt *a);
/* Whether a second run has something to repeat and something to guard. */
bool amend_again_is_of_use(const struct sim_program *p);
/* Nothing is to come of the second runs any more. */
bool amend_is_settled(const struct sim_program *p);
bool amend_holds(const struct sim_program *p); /* every declared check, as asked now */
bool amend_is_held(const struct sim_program *p, uint32_t task);

#endif
