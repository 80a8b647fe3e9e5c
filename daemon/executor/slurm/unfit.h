/*
 * Nodes that do not have what a shape's program pins: they are excluded for that shape alone, until
 * no other node is left. Private to the pure part of this room.
 */
#ifndef DAEMON_EXECUTOR_SLURM_UNFIT_H
#define DAEMON_EXECUTOR_SLURM_UNFIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

struct slurm_book;

struct unfit_node {
    uint16_t node;
    int64_t until_ms; /* excluded until then */
    char *has;        /* "NVIDIA T4" */
};

struct unfit_list {
    struct unfit_node *items;
    uint32_t n;
    uint32_t cap;
};

void unfit_release(struct unfit_list *list);

/* Excludes a node, by its number; true: it was not excluded before. `has`: what it has instead. */
bool unfit_add(struct slurm_book *b, uint32_t shape, uint16_t node, const char *has);
/* Appends those that no other failure excludes: "n1,n7", behind what is there. */
void unfit_add_excluded(const struct slurm_book *b, uint32_t shape, struct strbuf *out);
/* "n1 has NVIDIA T4, n2 has no GPU"; "" for none. */
void unfit_words(const struct slurm_book *b, uint32_t shape, struct strbuf *out);
/* All of them. */
void unfit_forget(struct slurm_book *b, uint32_t shape);

#endif
