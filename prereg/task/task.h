/*
 * task.json, the file that a worker gets (worker-protocol.md): built from program and lock, and the
 * attempt's own particulars.
 */
#ifndef PREREG_TASK_TASK_H
#define PREREG_TASK_TASK_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/files/digest.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

/* What an attempt of a task that is another name of a work accepts: the attempt that did the work.
 */
struct task_accepts {
    const char *folder; /* of that attempt; NULL: the task does its own work */
    const char *sha256; /* of its result.json, as accepted */
};

/* One attempt, as its task.json shows it. All borrowed. */
struct task_attempt {
    size_t cell;
    size_t stage;
    const struct plan_apparatus *apparatus; /* a check outside the grid: `cell` is ignored, and
                                          every input folder is the pinned model's; else NULL */
    const char *id;                         /* UUID; NULL under --describe */
    int64_t no;                             /* from 1 */
    const char *const *input_folders; /* one per `after` of the stage, in its order: the folder of
                                         the result; NULL under --describe */
    const char *const *resume;        /* earlier attempts' folders, newest first */
    size_t n_resume;
    int64_t memory_bytes; /* 0: no limit, the member is left out */
    int64_t deadline_ms;  /* 0: none, the member is left out */
    struct task_accepts accepts;
};

/* The whole object; the caller deletes it. "params" are program_task_params() with the solved ones
 * of the lock merged over them (`match` stays, and its solution is beside it). "data"
 * holds every entry of [data] with its locked digest. "checkpoint" is seconds or "auto" from
 * [run.STAGE]. A NULL lock means --describe: no digests, no inputs, and "peers" instead:
 *   {FACTOR:{LEVEL:{params}}}   the stage's params at every other level of each non-replicate
 *                               factor, the other factors as in this cell.
 * An apparatus check has "cell":null and "apparatus":{"name","model","expect"}; its params are
 * those of every cell, which loading has made sure of. */
cJSON *task_json_build(const struct plan_program *p, const struct lock *lock,
                       const struct task_attempt *attempt);

/* The params of a task as it will be run: level overrides, $factor, solved values. */
cJSON *task_params(const struct plan_program *p, const struct lock *lock, size_t cell,
                   size_t stage);

/* Calls fn for each variable of a worker's environment, whose attempt is in `folder`: this list
 * and the stage's own, locked one, which wins. */
typedef void task_variable_fn(void *ctx, const char *name, const char *value);
void task_environment(const struct plan_stage *s, const char *folder, task_variable_fn *fn,
                      void *ctx);
/* The same as texts "NAME=VALUE", NULL-terminated; for xfree_list(). */
char **task_environment_list(const struct plan_stage *s, const char *folder);

/* A cell's identity: SHA-256 of the canonical {"factors":{...},"root":HEX}, in hex. */
void task_cell_id(const struct plan_program *p, const char *root, size_t cell,
                  char hex[DIGEST_HEX_SIZE]);
/* An apparatus check's: SHA-256 of the canonical {"apparatus":NAME,"root":HEX,"stage":STAGE}. */
void task_apparatus_id(const struct plan_program *p, const char *root,
                       const struct plan_apparatus *a, char hex[DIGEST_HEX_SIZE]);
/* A task's: the same with "stage". */
void task_id(const struct plan_program *p, const char *root, size_t cell, size_t stage,
             char hex[DIGEST_HEX_SIZE]);

#endif
