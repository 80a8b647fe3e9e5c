/*
 * A table of items by number, filled from several files. Each file adds its values with the sign of
 * its side, so a row ends up with the sum over arm a minus the sum over arm b. Two open-addressing
 * indices find items and cluster names; both double at half load. Their hash has a key that is
 * drawn for each table, because items may come from a stranger's receipt. Results are sorted by
 * item, so they depend neither on the key nor on the order in the files.
 */
#include "truthtable/instruments/items_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define EMPTY     SIZE_MAX
#define INDEX_MIN ((size_t)1024)

void items_table_init(struct items_table *t)
{
    *t = (struct items_table){.unclustered = -1, .key = hash_key_draw()};
}

/* Leaves an empty table that can be used again. */
void items_table_release(struct items_table *t)
{
    for (size_t i = 0; i < t->n_clusters; i++) {
        free(t->clusters[i]);
    }
    free(t->clusters);
    free(t->cluster_index);
    free(t->rows);
    free(t->index);
    items_table_init(t);
}

/* Files are counted, which shows an item that occurs twice in one. */
void items_table_begin(struct items_table *t, double sign)
{
    t->n_files++;
    t->sign = sign;
}

/* An index of n empty slots. */
static size_t *index_make(size_t n)
{
    size_t *index = xreallocarray(NULL, n, sizeof(*index));
    for (size_t i = 0; i < n; i++) {
        index[i] = EMPTY;
    }
    return index;
}

/* The place of the item, or of the empty slot where it belongs. */
static size_t *slot_of(struct items_table *t, int64_t item)
{
    size_t i = (size_t)keyed_hash(&t->key, &item, sizeof(item)) & (t->n_index - 1);
    while (t->index[i] != EMPTY && t->rows[t->index[i]].item != item) {
        i = (i + 1) & (t->n_index - 1);
        t->n_passed++;
    }
    return &t->index[i];
}

/* The place of a cluster's name, or the empty slot for it. */
static size_t *cluster_slot(struct items_table *t, const char *name)
{
    size_t i = (size_t)keyed_hash(&t->key, name, strlen(name)) & (t->n_cluster_index - 1);
    while (t->cluster_index[i] != EMPTY && strcmp(t->clusters[t->cluster_index[i]], name) != 0) {
        i = (i + 1) & (t->n_cluster_index - 1);
        t->n_passed++;
    }
    return &t->cluster_index[i];
}

/* Keeps the index at most half full. */
static void grow_items(struct items_table *t)
{
    if (2 * (t->n + 1) <= t->n_index) {
        return;
    }
    t->n_index = t->n_index == 0 ? INDEX_MIN : 2 * t->n_index;
    free(t->index);
    t->index = index_make(t->n_index);
    for (size_t i = 0; i < t->n; i++) {
        *slot_of(t, t->rows[i].item) = i;
    }
}

static void grow_clusters(struct items_table *t)
{
    if (2 * (t->n_clusters + 1) <= t->n_cluster_index) {
        return;
    }
    t->n_cluster_index = t->n_cluster_index == 0 ? INDEX_MIN : 2 * t->n_cluster_index;
    free(t->cluster_index);
    t->cluster_index = index_make(t->n_cluster_index);
    for (size_t i = 0; i < t->n_clusters; i++) {
        *cluster_slot(t, t->clusters[i]) = i;
    }
}

/* The number of the line's cluster, added if it is new; SIZE_MAX if it names none. */
static size_t cluster_of(struct items_table *t, const struct items_line *line)
{
    if (!line->has_cluster) {
        return SIZE_MAX;
    }
    grow_clusters(t);
    size_t *slot = cluster_slot(t, line->cluster);
    if (*slot == EMPTY) {
        ARRAY_GROW(t->clusters, t->n_clusters, t->cap_clusters);
        t->clusters[t->n_clusters] = xstrdup(line->cluster);
        *slot = t->n_clusters++;
    }
    return *slot;
}

/* The item's row, added if it is new; NULL with an error beyond ITEMS_MAX. */
static struct items_row *row_of(struct items_table *t, const struct items_line *line,
                                size_t cluster, struct err *err)
{
    grow_items(t);
    size_t *slot = slot_of(t, line->item);
    if (*slot != EMPTY) {
        return &t->rows[*slot];
    }
    if (t->n >= ITEMS_MAX) {
        (void)err_set(err, ERR_RANGE, "more than %zu items", ITEMS_MAX);
        return NULL;
    }
    ARRAY_GROW(t->rows, t->n, t->cap);
    t->rows[t->n] = (struct items_row){.item = line->item, .cluster = cluster};
    *slot = t->n++;
    return &t->rows[*slot];
}

/* The first item without a cluster, or with two, is remembered: clustered errors are then not
 * determined. */
int items_table_take(void *ctx, const struct items_line *line, struct err *err)
{
    struct items_table *t = ctx;
    size_t cluster = cluster_of(t, line);
    struct items_row *row = row_of(t, line, cluster, err);
    if (row == NULL) {
        return err->code;
    }
    if (row->file == t->n_files) {
        return err_set(err, ERR_SYNTAX, "item %lld stands twice", (long long)line->item);
    }
    row->file = t->n_files;
    if (t->unclustered < 0 && (cluster == SIZE_MAX || cluster != row->cluster)) {
        t->unclustered = line->item;
    }
    if (line->has_value) {
        row->sum += t->sign * line->value;
        row->n_values++;
    }
    return 0;
}

/* Rising, without subtraction that could overflow. */
static int by_item(const void *a, const void *b)
{
    const struct items_row *x = a;
    const struct items_row *y = b;
    return (x->item > y->item) - (x->item < y->item);
}

/* Keeps items with a value in every file: a paired difference needs both sides. */
size_t items_table_collect(const struct items_table *t, double divisor, double *diff,
                           size_t *cluster)
{
    struct items_row *sorted = xcalloc(t->n, sizeof(*sorted));
    size_t n = 0;
    if (t->n > 0) {
        memcpy(sorted, t->rows, t->n * sizeof(*sorted));
        qsort(sorted, t->n, sizeof(*sorted), by_item);
    }
    for (size_t i = 0; i < t->n; i++) {
        if (sorted[i].n_values == t->n_files) {
            diff[n] = sorted[i].sum / divisor;
            cluster[n++] = sorted[i].cluster;
        }
    }
    free(sorted);
    return n;
}
