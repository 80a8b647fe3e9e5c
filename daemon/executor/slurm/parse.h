/*
 * What Slurm's commands print, as data. Text, never JSON (rule 14). Nothing here trusts its input:
 * a line that is not understood is counted, and an answer with one proves no job absent. Only jobs
 * whose name is a UUID may be ours; the others are skipped.
 */
#ifndef DAEMON_EXECUTOR_SLURM_PARSE_H
#define DAEMON_EXECUTOR_SLURM_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/uuid.h"
#include "daemon/executor/slurm/states.h"

#define SLURM_QUEUE_FORMAT "%i|%A|%T|%r|%j|%V|%N|%S|%e"
#define SLURM_SACCT_FORMAT "JobID,State,JobName,Submit,NodeList,ExitCode"
#define SLURM_INDEX_NONE   UINT32_MAX

/* One job, or one task of an array. */
struct slurm_row {
    char name[UUID_TEXT_SIZE];
    uint32_t index; /* of its array; SLURM_INDEX_NONE: a single job */
    enum slurm_state state;
    int64_t submit_s;   /* seconds since 1970; -1 unknown */
    const char *id;     /* as scancel takes it: "123", "123_4" */
    const char *word;   /* its state as printed */
    const char *reason; /* "" none */
    const char *node;   /* the first of its nodes; "" none: it has never had one */
};

struct slurm_rows {
    struct slurm_row *rows;
    size_t n;
    size_t n_foreign; /* lines about no job with a UUID as its name */
    size_t n_odd;     /* others that were not understood: what is absent may only be hidden */
};

/* Reads `sbatch --parsable`'s stdout: true and the id when exactly one line of it is a job id with
 * or without ";cluster" and no other line looks like one (rule 5). */
bool slurm_parse_submitted(const char *text, size_t len, int64_t *id);

/* Reads lines of squeue in SLURM_QUEUE_FORMAT, of `-r`; "CLUSTER: x" lines are skipped. The rows
 * and their texts are of `arena`. */
void slurm_parse_queue(const char *text, size_t len, struct arena *arena, struct slurm_rows *out);
/* Likewise of `sacct -X -n -P` in SLURM_SACCT_FORMAT. */
void slurm_parse_accounting(const char *text, size_t len, struct arena *arena,
                            struct slurm_rows *out);

/* How a command of Slurm failed, from its exit status and stderr. */
enum slurm_refusal {
    SLURM_REFUSED_UNKNOWN, /* nothing is proved: it may have been accepted */
    SLURM_REFUSED_FULL,    /* back-pressure: the same is accepted later (rule 11) */
    SLURM_REFUSED_NEVER,   /* this request is never accepted here */
    SLURM_REFUSED_NODES,   /* no node can run it: of sbatch, never; of --test-only, also when the
                              nodes that could are down or drained, for which sbatch would wait */
    SLURM_REFUSED_ABSENT,  /* of queries: no such job */
    SLURM_REFUSED_NO_ACCOUNTING,
};
enum slurm_refusal slurm_parse_refusal(const char *text, size_t len);
/* The line of stderr that says why, without "sbatch: error: "; plain text. */
void slurm_parse_why(const char *text, size_t len, char *why, size_t size);

/* Reads MaxArraySize of `scontrol show config`; -1 when it is not there. */
int64_t slurm_parse_max_array(const char *text, size_t len);

#endif
