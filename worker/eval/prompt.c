#include "worker/eval/prompt.h"

#include "base/xalloc.h"
#include "worker/eval/pyrandom.h"

/* Writes the item's picks: the first of `candidates` that do not equal the item itself. */
static void keep_others(struct prompts *p, size_t item, const uint32_t *candidates, size_t n)
{
    size_t *picks = p->picks + item * p->shots;
    size_t kept = 0;
    for (size_t i = 0; i < n && kept < p->shots; i++)
        if (!item_equal(&p->pool->items[candidates[i]], &p->set->items[item]))
            picks[kept++] = candidates[i];
    while (kept < p->shots)
        picks[kept++] = SIZE_MAX;
}

/* MMLU: the first examples of the item's subject, the same for all its items. */
static int pick_first(struct prompts *p, struct err *err)
{
    uint32_t *candidates = xcalloc(p->shots, sizeof(*candidates));
    int rc = 0;
    for (size_t g = 0; g < p->set->n_groups && rc == 0; g++) {
        const struct item_group *group = &p->set->groups[g];
        const struct item_group *from = NULL;
        for (size_t k = 0; k < p->pool->n_groups; k++)
            if (strcmp(p->pool->groups[k].description, group->description) == 0)
                from = &p->pool->groups[k];
        if (from == NULL || from->n < p->shots) {
            rc = err_set(err, ERR_INVALID, "%zu examples wanted, %zu there, for: %.100s", p->shots,
                         from == NULL ? 0 : from->n, group->description);
            break;
        }
        for (size_t i = 0; i < p->shots; i++)
            candidates[i] = (uint32_t)(from->first + i);
        for (size_t i = 0; i < group->n; i++)
            keep_others(p, group->first + i, candidates, p->shots);
    }
    free(candidates);
    return rc;
}

static int pick_drawn(struct prompts *p, bool one_more, struct err *err)
{
    const size_t n_draw = p->shots + (one_more ? 1 : 0);
    if (p->pool->n < n_draw || p->pool->n > UINT32_MAX)
        return err_set(err, ERR_INVALID, "%zu examples wanted of %zu", n_draw, p->pool->n);
    uint32_t *candidates = xcalloc(n_draw, sizeof(*candidates));
    struct pyrandom random;
    pyrandom_seed(&random, PROMPT_SEED);
    for (size_t i = 0; i < p->set->n; i++) {
        pyrandom_sample(&random, (uint32_t)p->pool->n, (uint32_t)n_draw, candidates);
        keep_others(p, i, candidates, n_draw);
    }
    free(candidates);
    return 0;
}

int prompts_init(struct prompts *p, const struct task_def *def, const struct item_set *set,
                 const struct item_set *pool, size_t shots, struct err *err)
{
    memset(p, 0, sizeof(*p));
    p->set = set;
    p->pool = pool;
    p->shots = shots;
    if (shots == 0)
        return 0;
    p->picks = xcalloc(set->n * shots, sizeof(*p->picks));
    if ((def->forms & 1u << FORM_MMLU) != 0)
        return pick_first(p, err);
    return pick_drawn(p, def->draws_one_more || pool == set, err);
}

void prompts_release(struct prompts *p)
{
    free(p->picks);
    memset(p, 0, sizeof(*p));
}

void prompts_add_prefix(const struct prompts *p, size_t item, struct strbuf *out)
{
    strbuf_adds(out, p->set->groups[p->set->items[item].group].description);
    for (size_t i = 0; i < p->shots; i++) {
        size_t pick = p->picks[item * p->shots + i];
        if (pick == SIZE_MAX)
            continue;
        item_add_example(&p->pool->items[pick], out);
        strbuf_adds(out, "\n\n");
    }
}
