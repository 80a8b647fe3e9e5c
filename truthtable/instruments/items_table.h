/*
 * What several files of items add up to: for every item the sum of its values, each taken with the
 * sign of the file's side, and its cluster. An item counts when every file has a value
 * for it. Owns its memory.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_ITEMS_TABLE_H
#define TRUTHTABLE_INSTRUMENTS_ITEMS_TABLE_H

#include "base/keyed_hash.h"
#include "truthtable/instruments/items_file.h"

#define ITEMS_MAX ((size_t)1 << 24)

struct items_row {
    int64_t item;
    double sum;
    size_t n_values;
    size_t file;    /* the last that named it, from 1 */
    size_t cluster; /* into clusters; SIZE_MAX: none was named */
};

struct items_table {
    struct items_row *rows; /* in the order of first sight */
    size_t n;
    size_t cap;
    size_t *index; /* hash of items to rows; n_index is a power of two */
    size_t n_index;
    char **clusters;
    size_t n_clusters;
    size_t cap_clusters;
    size_t *cluster_index; /* hash of names */
    size_t n_cluster_index;
    struct hash_key key; /* of both */
    size_t n_passed;     /* slots of others that were passed while looking; what the hash costs */
    size_t n_files;
    double sign;         /* of the file that is being read */
    int64_t unclustered; /* the first item without a cluster, or in two; -1: none */
};

void items_table_init(struct items_table *t);
void items_table_release(struct items_table *t);
/* Before each file: +1 for arm a, -1 for arm b. */
void items_table_begin(struct items_table *t, double sign);
/* An items_take: ctx is the table. An item twice in a file is an error. */
int items_table_take(void *ctx, const struct items_line *line, struct err *err) MUST_CHECK;
/* Items with a value in every file: their sums divided by `divisor` and their clusters, in rising
 * order of items; arrays of t->n. Returns how many. */
size_t items_table_collect(const struct items_table *t, double divisor, double *diff,
                           size_t *cluster);

#endif
