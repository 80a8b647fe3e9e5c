/* One record for each node that was ever seen in an answer. A failure is forgotten once the node's
 * exclusion is over. */
#include "daemon/executor/slurm/nodes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void nodes_init(struct node_table *n)
{
    *n = (struct node_table){0};
    intern_init(&n->names);
}

void nodes_release(struct node_table *n)
{
    intern_release(&n->names);
    free(n->records);
    *n = (struct node_table){0};
}

uint16_t nodes_number(struct node_table *n, const char *name)
{
    uint16_t number = intern_add(&n->names, name);
    if (number >= n->cap) {
        uint32_t cap = n->cap == 0 ? 64 : n->cap * 2;
        n->records = xreallocarray(n->records, cap, sizeof(*n->records));
        memset(n->records + n->cap, 0, (cap - n->cap) * sizeof(*n->records));
        n->cap = cap;
    }
    return number;
}

bool nodes_count_failure(struct node_table *n, uint16_t node, int64_t now_ms, int64_t until_ms,
                         bool each)
{
    if (node == 0) {
        return false;
    }
    assert(node < n->cap && until_ms >= now_ms);
    struct node_record *r = &n->records[node];
    if (r->until_ms != 0 && r->until_ms <= now_ms) {
        *r = (struct node_record){0};
    }
    if (r->until_ms != 0 || (!each && r->n_bad > 0 && now_ms - r->failed_ms < NODES_ONE_FAIL_MS)) {
        return false;
    }
    r->n_bad++;
    r->failed_ms = now_ms;
    if (r->n_bad < NODES_BAD_TWICE) {
        return false;
    }
    r->until_ms = until_ms;
    return true;
}

bool nodes_forgive(struct node_table *n, int64_t now_ms)
{
    bool any = false;
    for (uint32_t i = 0; i < n->cap; i++) {
        any = any || n->records[i].until_ms > now_ms;
        n->records[i] = (struct node_record){0};
    }
    return any;
}

bool nodes_is_excluded(const struct node_table *n, uint16_t node, int64_t now_ms)
{
    return node < n->cap && n->records[node].until_ms > now_ms;
}

void nodes_add_excluded(const struct node_table *n, int64_t now_ms, struct strbuf *out)
{
    unsigned listed = 0;
    for (uint32_t i = n->names.n; i-- > 1 && listed < NODES_LISTED_MAX;) {
        if (nodes_is_excluded(n, (uint16_t)i, now_ms)) {
            strbuf_addf(out, "%s%s", listed > 0 ? "," : "", n->names.words[i]);
            listed++;
        }
    }
}
