/*
 * Nodes that end attempts (rule 24): one that has ended attempts with NODE_FAIL, or has failed to
 * start them, for the second time is excluded from submissions for a while.
 */
#ifndef DAEMON_EXECUTOR_SLURM_NODES_H
#define DAEMON_EXECUTOR_SLURM_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "daemon/executor/slurm/intern.h"

#define NODES_BAD_TWICE  2
#define NODES_LISTED_MAX 64 /* of --exclude; the latest */
#define NODES_ONE_FAIL_MS                                                                          \
    60000 /* attempts that a node takes with it within this are one failure                        \
           */

struct node_record {
    int64_t failed_ms; /* the last time that counted */
    int64_t until_ms;  /* excluded until then */
    uint8_t n_bad;
};

struct node_table {
    struct intern names;
    struct node_record *records; /* by number */
    uint32_t cap;
};

void nodes_init(struct node_table *n);
void nodes_release(struct node_table *n);
uint16_t nodes_number(struct node_table *n, const char *name); /* 0: no node */
/* Counts a failure; true: it is excluded from now on until until_ms. each: also one that follows
 * another within NODES_ONE_FAIL_MS. */
bool nodes_count_failure(struct node_table *n, uint16_t node, int64_t now_ms, int64_t until_ms,
                         bool each);
/* Excludes none any more, and forgets their failures; false: none was. */
bool nodes_forgive(struct node_table *n, int64_t now_ms);
bool nodes_is_excluded(const struct node_table *n, uint16_t node, int64_t now_ms);
/* Appends "n1,n7": those that are excluded at now_ms; nothing when there is none. */
void nodes_add_excluded(const struct node_table *n, int64_t now_ms, struct strbuf *out);

#endif
