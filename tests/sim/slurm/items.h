/* What will happen in a simulated cluster, and when. */
#ifndef TESTS_SIM_SLURM_ITEMS_H
#define TESTS_SIM_SLURM_ITEMS_H

#include "daemon/core/core.h"
#include "daemon/executor/slurm/book.h"

enum farm_kind {
    FARM_ANSWER, /* an event for the book */
    FARM_ACCEPT,
    FARM_PASS, /* of the controller's scheduler */
    FARM_SHIM,
    FARM_JOB_END,
    FARM_STATE, /* job -> .state */
    FARM_PURGE,
    FARM_NODE_FAIL, /* the controller notices */
    FARM_NODE_BACK,
    FARM_TIMER,
    FARM_BREAK,  /* a node dies, and the next one later */
    FARM_PEOPLE, /* something is asked for, or breaks */
    FARM_RISE,   /* the daemon starts again */
    FARM_PROBE,
    FARM_CORE, /* an event for the core */
    FARM_CORE_TIMER,
    FARM_RESUME, /* a person lifts a pause */
    FARM_STOP,   /* a person cancels the program */
};

struct farm_item {
    int64_t at_ms;
    uint64_t seq;
    enum farm_kind kind;
    unsigned generation;
    uint32_t which; /* job, node, batch, attempt */
    enum slurm_state state;
    struct slurm_event ev;
    char *rows;                 /* QUEUE: squeue's text */
    struct farm_plan *plan;     /* ACCEPT */
    struct core_event *core_ev; /* CORE */
};

struct farm_plan { /* of one sbatch */
    uint32_t batch;
    uint32_t *attempts;
    uint32_t n;
    uint64_t excluded; /* the first 64 nodes, a bit each */
    bool late;
};

#endif
