/* Any bytes as items.jsonl, in pieces whose size is the first byte: refused with a message, or
 * items that stand once each. The pieces change nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/instruments/items_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static int feed(struct items_table *t, const uint8_t *data, size_t size, size_t piece)
{
    struct items_stream s;
    struct err err = {0};
    int rc = 0;
    items_table_init(t);
    items_table_begin(t, -1);
    items_stream_init(&s, "acc", "group", items_table_take, t);
    for (size_t i = 0; rc == 0 && i < size; i += piece) {
        rc =
            items_stream_add(&s, (const char *)data + i, size - i < piece ? size - i : piece, &err);
    }
    rc = rc != 0 ? rc : items_stream_end(&s, &err);
    must((rc == 0) == (err.msg[0] == '\0'));
    items_stream_release(&s);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct items_table a;
    struct items_table b;
    if (size == 0) {
        return 0;
    }
    int whole = feed(&a, data + 1, size - 1, size);
    int parts = feed(&b, data + 1, size - 1, (size_t)data[0] + 1);
    must(whole == parts && a.n == b.n && a.n_clusters == b.n_clusters);
    double *diff = xcalloc(a.n + 1, sizeof(*diff));
    size_t *cluster = xcalloc(a.n + 1, sizeof(*cluster));
    must(items_table_collect(&a, 1, diff, cluster) <= a.n);
    for (size_t i = 0; i < a.n; i++) {
        must(a.rows[i].item >= 0 && a.rows[i].n_values <= 1);
    }
    free(cluster);
    free(diff);
    items_table_release(&a);
    items_table_release(&b);
    return 0;
}
