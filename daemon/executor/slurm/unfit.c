/* A node with another GPU than the pinned one will have it tomorrow, too: it is excluded from its
 * first refusal on, for the jobs of that shape. Other programs may use it. */
#include "daemon/executor/slurm/unfit.h"

#include <assert.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "daemon/executor/slurm/records.h"

bool unfit_add(struct slurm_book *b, uint32_t shape, uint16_t node, const char *has)
{
    struct unfit_list *l = &b->shapes[shape].unfit;
    uint32_t i = 0;
    assert(shape < b->n_shapes && node != 0);
    while (i < l->n && l->items[i].node != node) {
        i++;
    }
    const bool is_new = i == l->n;
    if (is_new) {
        ARRAY_GROW(l->items, l->n, l->cap);
        l->items[l->n++] = (struct unfit_node){.node = node};
    }
    free(l->items[i].has);
    l->items[i].has = xstrdup(has);
    l->items[i].until_ms = b->now_ms + b->config.exclude_ms;
    return is_new;
}

static bool holds(const struct slurm_book *b, const struct unfit_node *u)
{
    return u->until_ms > b->now_ms;
}

void unfit_add_excluded(const struct slurm_book *b, uint32_t shape, struct strbuf *out)
{
    const struct unfit_list *l = &b->shapes[shape].unfit;
    for (uint32_t i = 0; i < l->n; i++) {
        if (holds(b, &l->items[i]) && !nodes_is_excluded(&b->nodes, l->items[i].node, b->now_ms)) {
            strbuf_addf(out, "%s%s", out->len > 0 ? "," : "",
                        intern_word(&b->nodes.names, l->items[i].node));
        }
    }
}

void unfit_words(const struct slurm_book *b, uint32_t shape, struct strbuf *out)
{
    const struct unfit_list *l = &b->shapes[shape].unfit;
    const char *between = "";
    for (uint32_t i = 0; i < l->n; i++) {
        if (holds(b, &l->items[i])) {
            strbuf_addf(out, "%s%s has %s", between, intern_word(&b->nodes.names, l->items[i].node),
                        l->items[i].has);
            between = ", ";
        }
    }
}

static void clear(struct unfit_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        free(l->items[i].has);
    }
    l->n = 0;
}

void unfit_forget(struct slurm_book *b, uint32_t shape)
{
    clear(&b->shapes[shape].unfit);
}

void unfit_release(struct unfit_list *list)
{
    clear(list);
    free(list->items);
    *list = (struct unfit_list){0};
}
