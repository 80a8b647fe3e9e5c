/*
 * The design of a program, as plain data: factors and their grid, pinned data, stages and how they
 * are run. Part of struct plan_program, which owns all of it (prereg/program/program.h).
 */
#ifndef PREREG_PROGRAM_DESIGN_H
#define PREREG_PROGRAM_DESIGN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prereg/program/executor_kind.h"

/* More is an error: 10^6 cells is a slip, not a plan. */
#define PROGRAM_CELLS_MAX ((size_t)100000)
#define INDEX_NONE        SIZE_MAX

struct place { /* where in grid.toml; line 0: unknown */
    unsigned line;
    unsigned column;
};

struct plan_level {
    const char *text;   /* as in cell names: "moe", "0.002", "42" */
    const cJSON *value; /* string, number or bool */
};

struct plan_factor {
    const char *name;
    struct plan_level *levels;
    size_t n_levels;
    bool replicate;
    struct place place;
};

struct data_input { /* [data]: a pinned file or folder */
    const char *name;
    const char *path;     /* as written */
    const char *abs_path; /* resolved against the file's folder */
    struct place place;
};

struct plan_hub { /* where the items are on the Hugging Face Hub: for exports, read by no worker */
    const char *dataset;  /* "cais/mmlu"; NULL: not stated */
    const char *task;     /* its id among the dataset's benchmark tasks */
    const char *revision; /* of the dataset, 40 hex digits; or NULL */
};

struct stage_run { /* [run] and [run.STAGE]: not locked */
    enum executor_kind executor;
    struct place executor_place; /* of a key that is unset: line 0, as in all of these */
    int64_t threads; /* cores that an attempt is given: at least the stage's own threads */
    struct place threads_place;
    int64_t memory_bytes; /* 0: unset */
    struct place memory_place;
    int64_t gpu_thousandths;  /* whole GPUs, or a share of one */
    int64_t gpu_memory_bytes; /* of each GPU; 0: unset */
    struct place gpus_place;
    int64_t time_ms; /* of one attempt, under Slurm; 0: the partition's limit */
    struct place time_place;
    int64_t crashes;        /* crash budget (default 3) */
    int64_t attempts;       /* all attempts (default 50) */
    int64_t deadline_ms[4]; /* by enum section of state/rows.h: setup, step, checkpoint, eval;
                               0: measured */
    int64_t checkpoint_ms;  /* 0: "auto" (Daly) */
};

/* What is kept of a task's attempts once it is done; its accepted result always is. */
enum run_keep {
    RUN_KEEP_ALL,  /* every checkpoint that is there */
    RUN_KEEP_LAST, /* the newest checkpoint */
    RUN_KEEP_NONE
};

struct slurm_settings { /* [run.slurm]; texts are NULL where unset */
    const char *partition;
    const char *account;
    const char *qos;
    const char *clusters;
    const char *shim;     /* absolute path of prereg-shim on the nodes; NULL: the daemon's own */
    int64_t max_queued;   /* jobs of the program that are in Slurm's queue or running */
    bool array;           /* many attempts in one submission */
    const char **options; /* of sbatch, as they are; none is one of ours */
    size_t n_options;
    const char **setup; /* lines of the job script before the shim */
    size_t n_setup;
    int64_t grace_ms;   /* from Slurm's last word on a job to its attempt being given up */
    int64_t poll_ms;    /* between two questions about the queue while few jobs are in it */
    struct place place; /* of [run.slurm] itself; of a key that is unset: line 0 */
    struct place partition_place;
    struct place account_place;
    struct place qos_place;
    struct place clusters_place;
    struct place shim_place;
    struct place max_queued_place;
    struct place *options_at; /* of each */
    struct place *setup_at;
};

struct run_settings { /* program-wide part of [run] */
    const char *work; /* absolute: folder for cells/; or NULL */
    struct place work_place;
    int64_t slots; /* 0: by cores, memory and GPUs */
    struct place slots_place;
    int64_t priority; /* of the program; more is earlier */
    enum run_keep keep;
    bool gpus_auto;    /* all that are visible; else the list, which may be empty */
    const char **gpus; /* UUIDs or indices, as text */
    size_t n_gpus;
    struct slurm_settings slurm;
    const cJSON *covered; /* the whole [run] table as JSON: journalled, printed, never locked */
};

struct param_place { /* of a parameter as it is written: "mix.stories" */
    const char *path;
    size_t factor; /* INDEX_NONE: in params; else under `when`, of the level */
    size_t level;
    struct place place;
};

struct plan_stage {
    const char *name;
    size_t *after; /* stage indices */
    size_t n_after;
    const char **command; /* argv as written; command[0] is the worker */
    size_t n_command;
    int64_t threads;
    const cJSON *params;          /* object, before `when` and $factor */
    const cJSON *when;            /* object factor -> level text -> params, or NULL */
    const cJSON *env;             /* object name -> string, or NULL */
    const char *environment;      /* as written, or NULL: a folder or an image */
    const char *environment_path; /* the folder of a Python environment, absolute, or NULL */
    const char *image;            /* the name of a container's image, or NULL */
    struct param_place *params_at;
    size_t n_params_at;
    bool describes;  /* its worker is asked with --describe; true by default */
    bool sealed;     /* a counted measure reads its metrics */
    bool counted;    /* sealed, or a counted stage waits for it */
    bool budgeted;   /* a counted measure or an input of the table reads it */
    bool excludable; /* budgeted, or an excludable stage waits for it */
    struct stage_run run;
    struct place place;
};

struct plan_cell {
    size_t index;
    size_t *levels; /* one level index per factor */
    const char
        *name; /* "arch=moe,lr=0.002,seed=43", also its folder's name (escaped when needed) */
    const char *folder;
    size_t condition; /* index of its condition */
};

struct plan_condition { /* a cell without its replicates */
    size_t *levels;     /* per factor; INDEX_NONE for replicates */
    const char *name;
    size_t first_cell;
};

#endif
