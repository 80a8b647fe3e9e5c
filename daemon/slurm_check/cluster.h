/*
 * What a cluster says of itself: `scontrol show config`, `scontrol -o show partition` and `... show
 * node`, as data. Pure. Nothing here trusts its input: what is not understood is not known, and
 * what is not known forbids nothing.
 */
#ifndef DAEMON_SLURM_CHECK_CLUSTER_H
#define DAEMON_SLURM_CHECK_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "daemon/executor/slurm/command.h"

struct cluster_partition {
    const char *name;
    bool is_default;
    bool is_up;
    int64_t max_time_ms;     /* -1: none, as the next */
    int64_t default_time_ms; /* of a job that names no limit */
};

struct cluster_node {
    const char *name;
    const char *partitions; /* comma list */
    int64_t cores;          /* -1: not known, as the next two */
    int64_t memory_bytes;
    int64_t gpus;
    const char *state;  /* "IDLE", "MIXED+DRAIN", "DOWN*" */
    const char *reason; /* an administrator's, or Slurm's; "" none */
};

struct cluster { /* texts and lists are of the arena */
    struct arena arena;
    const char *name; /* "" not known, as the next two */
    const char *version;
    const char *accounting; /* AccountingStorageType */
    int64_t max_array;      /* -1: not known, as the next */
    int64_t max_jobs;
    struct cluster_partition *partitions;
    size_t n_partitions;
    struct cluster_node *nodes;
    size_t n_nodes;
};

void cluster_init(struct cluster *c);
void cluster_release(struct cluster *c);
void cluster_read_config(struct cluster *c, const char *text, size_t len);
void cluster_read_partitions(struct cluster *c, const char *text, size_t len);
void cluster_read_nodes(struct cluster *c, const char *text, size_t len);

/* Whether sacctmgr can be asked for limits. */
bool cluster_accounts(const struct cluster *c);
/* The name of the partition of jobs that name none; NULL: there is none. */
const char *cluster_default_partition(const struct cluster *c);
/* NULL when there is none of that name; the name ends at `len`. */
const struct cluster_partition *cluster_find_partition(const struct cluster *c, const char *name,
                                                       size_t len);
/* "gpu, main" */
void cluster_partition_names(const struct cluster *c, char *out, size_t size);
/* The first of a comma list that does not exist, into `name`; false: all do. */
bool cluster_lacks_partition(const struct cluster *c, const char *list, char *name, size_t size);

/* What the nodes of some partitions have at most, each figure for itself. */
struct cluster_most {
    size_t n_nodes;
    int64_t cores;
    int64_t memory_bytes;
    int64_t gpus;
    int64_t time_ms; /* -1: no limit */
};
void cluster_most(const struct cluster *c, const char *partitions, struct cluster_most *out);
/* Whether one node of these partitions has what is asked. */
bool cluster_has_node(const struct cluster *c, const char *partitions,
                      const struct slurm_request *r);

/* How many of the nodes that have what is asked can run nothing now, as they are down or drained;
 * `words` names the first and why: "n1 is DOWN* (Not responding)". */
size_t cluster_count_away(const struct cluster *c, const char *partitions,
                          const struct slurm_request *r, char *words, size_t size);

/* The largest limit among lines "ACCOUNT|N" of sacctmgr, of one account or (NULL) any; -1: none. */
int64_t cluster_max_submit(const char *text, size_t len, const char *account);

/* The number behind " KEY=" of a line of scontrol -o; -1 when it is not there. */
int64_t cluster_number(const char *text, size_t len, const char *key);

/* A limit of time as Slurm prints it, "1-00:30:00"; -1 for UNLIMITED and whatever else. */
int64_t cluster_time_ms(const char *text, size_t len);

#endif
