/*
 * Two tasks: drawing examples, once, for all items of the set in order, and composing the texts of
 * a request. Three samplers follow their references' use of random numbers exactly, including the
 * draws for items that are not asked. The two request functions are the styles: the harness joins
 * examples and context into one string, llm-foundry keeps them apart.
 */
#include "worker/eval/prompt/prompt.h"

#include "base/xalloc.h"
#include "worker/eval/prompt/dclm_sample.h"
#include "worker/eval/prompt/pyrandom.h"
#include "worker/eval/task/pytext.h"

/* One group's draws: the candidates from the pool's group for each of its items. */
struct draw {
    struct prompts *p;
    const struct item_group *group;
    const struct item_group *from;
    size_t shots;
    size_t n_draw;
    bool drops_equals;
};

/* Writes the item's picks: the first of `candidates` that do not equal the item itself. */
static void keep_others(const struct draw *d, size_t item, const uint32_t *candidates)
{
    size_t *picks = d->p->picks + item * d->p->shots;
    size_t kept = 0;
    for (size_t i = 0; i < d->n_draw && kept < d->shots; i++) {
        const size_t pick = d->from->first + candidates[i];
        if (!d->drops_equals || !item_equal(&d->p->pool->items[pick], &d->p->set->items[item]))
            picks[kept++] = pick;
    }
}

/* The first of the pool, the same for all items. */
static void pick_first(const struct draw *d, uint32_t *candidates)
{
    for (size_t i = 0; i < d->n_draw; i++)
        candidates[i] = (uint32_t)i;
    for (size_t i = 0; i < d->group->n; i++)
        keep_others(d, d->group->first + i, candidates);
}

/* Drawn afresh for every item, from one stream. */
static void pick_drawn(const struct draw *d, uint32_t *candidates)
{
    struct pyrandom random;
    pyrandom_seed(&random, d->group->spec->seed);
    for (size_t i = 0; i < d->group->n; i++) {
        pyrandom_sample(&random, (uint32_t)d->from->n, (uint32_t)d->n_draw, candidates);
        keep_others(d, d->group->first + i, candidates);
    }
}

/* Drawn from one stream in the order of a Python set; no item is its own example. */
static void pick_dclm(const struct draw *d, uint32_t *candidates)
{
    const uint32_t n = (uint32_t)d->from->n;
    struct pyrandom random;
    pyrandom_seed(&random, d->group->spec->seed);
    for (size_t i = 0; i < d->group->n; i++) {
        const uint32_t own = d->p->pool == d->p->set ? (uint32_t)i : n;
        dclm_sample(&random, n, (uint32_t)d->shots, own, candidates);
        keep_others(d, d->group->first + i, candidates);
    }
}

static void (*const samplers[SAMPLER_NR])(const struct draw *, uint32_t *) = {
    [SAMPLER_RANDOM] = pick_drawn,
    [SAMPLER_FIRST] = pick_first,
    [SAMPLER_DCLM] = pick_dclm,
};

/* The pool's group of that name; NULL when the pool lacks it. */
static const struct item_group *find_group(const struct item_set *pool, const char *name)
{
    for (size_t i = 0; i < pool->n_groups; i++)
        if (strcmp(pool->groups[i].name, name) == 0)
            return &pool->groups[i];
    return NULL;
}

/* The parameter, else the task's own number. */
static size_t shots_of(const struct item_group *group, const struct prompt_rules *rules)
{
    return (size_t)(rules->shots < 0 ? group->spec->shots : rules->shots);
}

/* Sets up the draws of one group and runs its sampler. */
static int pick_group(struct prompts *p, const struct item_group *group,
                      const struct prompt_rules *rules, struct err *err)
{
    const struct task_spec *spec = group->spec;
    struct draw d = {.p = p, .group = group, .shots = shots_of(group, rules)};
    if (d.shots == 0)
        return 0;
    const bool one_more =
        spec->sampler == SAMPLER_RANDOM && (spec->draws_one_more || p->pool == p->set);
    d.n_draw = d.shots + (one_more ? 1 : 0);
    d.drops_equals = one_more || p->pool == p->set || !rules->drops_equals_only_of_one_more;
    d.from = find_group(p->pool, group->name);
    const size_t there = d.from == NULL ? 0 : d.from->n;
    if (spec->sampler == SAMPLER_DCLM) {
        d.n_draw = dclm_sample_size((uint32_t)there, (uint32_t)d.shots);
        d.drops_equals = false;
    }
    if (there < d.n_draw || there > UINT32_MAX)
        return err_set(err, ERR_INVALID, "%s%s%zu examples wanted of %zu", group->name,
                       group->name[0] == '\0' ? "" : ": ", d.n_draw, there);
    uint32_t *candidates = xcalloc(d.n_draw + 1, sizeof(*candidates));
    samplers[spec->sampler](&d, candidates);
    free(candidates);
    return 0;
}

int prompts_init(struct prompts *p, const struct item_set *set, const struct item_set *pool,
                 const struct prompt_rules *rules, struct err *err)
{
    memset(p, 0, sizeof(*p));
    p->set = set;
    p->pool = pool;
    for (size_t g = 0; g < set->n_groups; g++)
        if (shots_of(&set->groups[g], rules) > p->shots)
            p->shots = shots_of(&set->groups[g], rules);
    if (p->shots == 0)
        return 0;
    p->picks = xreallocarray(NULL, set->n * p->shots, sizeof(*p->picks));
    for (size_t i = 0; i < set->n * p->shots; i++)
        p->picks[i] = PROMPT_NO_PICK;
    int rc = 0;
    for (size_t g = 0; g < set->n_groups && rc == 0; g++)
        rc = pick_group(p, &set->groups[g], rules, err);
    return rc;
}

void prompts_release(struct prompts *p)
{
    free(p->picks);
    memset(p, 0, sizeof(*p));
}

size_t prompt_requests(const struct item *it)
{
    return it->n_options > 0 ? it->n_options : 1;
}

void request_text_init(struct request_text *text)
{
    strbuf_init(&text->preamble);
    strbuf_init(&text->context);
    strbuf_init(&text->continuation);
}

void request_text_release(struct request_text *text)
{
    strbuf_release(&text->preamble);
    strbuf_release(&text->context);
    strbuf_release(&text->continuation);
}

/* Description and examples, each of these with its end. */
static void add_preamble(const struct prompts *p, size_t item, struct strbuf *out)
{
    const struct item_group *group = &p->set->groups[p->set->items[item].group];
    strbuf_adds(out, group->description);
    for (size_t i = 0; i < p->shots; i++) {
        const size_t pick = p->picks[item * p->shots + i];
        if (pick == PROMPT_NO_PICK)
            continue;
        item_add_example(&p->pool->items[pick], group->spec, out);
        strbuf_adds(out, group->spec->shot_delimiter);
    }
}

/* Removes Unicode white space at the end. */
static void strip_right(struct strbuf *text)
{
    text->len = pytext_rstrip(text->buf, text->len);
    if (text->cap > 0)
        text->buf[text->len] = '\0';
}

/* llm-foundry parts examples from each other and from the context, which begins with what parts
 * them; the context ends with the delimiter, right-stripped. The contexts of TASK_CONTEXT stay as
 * they are and have the delimiter only after examples. */
static void request_dclm(const struct prompts *p, size_t item, size_t option,
                         struct request_text *out)
{
    const struct item *it = &p->set->items[item];
    const struct item_group *group = &p->set->groups[it->group];
    const struct task_spec *spec = group->spec;
    strbuf_adds(&out->preamble, group->description);
    for (size_t i = 0; i < p->shots; i++) {
        const size_t pick = p->picks[item * p->shots + i];
        if (pick == PROMPT_NO_PICK)
            continue;
        if (out->preamble.len > 0)
            strbuf_adds(&out->preamble, spec->shot_delimiter);
        item_add_example(&p->pool->items[pick], spec, &out->preamble);
    }
    const bool follows = out->preamble.len > 0;
    if (follows)
        strbuf_adds(&out->context, spec->shot_delimiter);
    if (it->kind == TASK_CONTEXT) {
        strbuf_adds(&out->context, it->options[option]);
        if (follows)
            strbuf_add(&out->context, spec->delimiter,
                       pytext_rstrip(spec->delimiter, strlen(spec->delimiter)));
    } else {
        strbuf_adds(&out->context, it->context);
        strbuf_adds(&out->context, spec->delimiter);
        strip_right(&out->context);
    }
    strbuf_adds(&out->continuation,
                it->kind == TASK_CHOICE ? it->options[option] : it->continuation);
}

/* The harness's. */
static void request_harness(const struct prompts *p, size_t item, size_t option,
                            struct request_text *out)
{
    const struct item *it = &p->set->items[item];
    const char *delimiter = item_spec(p->set, item)->delimiter;
    if (it->kind != TASK_ROLLING)
        add_preamble(p, item, &out->preamble);
    switch (it->kind) {
    case TASK_CHOICE:
        strbuf_adds(&out->context, it->context);
        strbuf_addf(&out->continuation, "%s%s", delimiter, it->options[option]);
        break;
    case TASK_CONTEXT:
        strbuf_adds(&out->context, it->options[option]);
        strbuf_addf(&out->continuation, "%s%s", delimiter, it->continuation);
        break;
    case TASK_LIKELIHOOD:
        strbuf_adds(&out->context, it->context);
        strbuf_adds(&out->continuation, it->continuation);
        break;
    case TASK_ROLLING: strbuf_adds(&out->continuation, it->continuation); break;
    case TASK_GENERATE: strbuf_adds(&out->context, it->context); break;
    case TASK_KIND_NR: break;
    }
}

void prompt_request(const struct prompts *p, size_t item, size_t option, struct request_text *out)
{
    strbuf_clear(&out->preamble);
    strbuf_clear(&out->context);
    strbuf_clear(&out->continuation);
    if (item_spec(p->set, item)->style == STYLE_DCLM)
        request_dclm(p, item, option, out);
    else
        request_harness(p, item, option, out);
}
