/*
 * A batch is filled item by item until it has enough new tokens; its requests go to the model in
 * one call, which shares their common prefixes. The owner arrays map each answer back to its item
 * and option. Scores and generations never mix in a batch, since they are different calls.
 *
 * Generations are stopped by a callback that decodes what there is so far, and decoded once more at
 * the end for the outcome.
 */
#include "worker/eval/score/scorer.h"

#include <math.h>

#include "base/xalloc.h"
#include "worker/eval/score/generate.h"

/* The requests of a batch, and whose they are. */
struct score_batch {
    const size_t *items;
    size_t n;        /* items */
    size_t *owner;   /* of each request: its place in the batch */
    size_t *option;  /* of each request */
    size_t cap;      /* of these two */
    double n_tokens; /* that the request before does not begin with */
};

static bool generates(const struct scorer *s, size_t index)
{
    return s->setup.prompts->set->items[index].kind == TASK_GENERATE;
}

/* The tokens that a generation about this item may have. */
static size_t max_tokens_of(const struct scorer *s, size_t index)
{
    if (s->setup.max_tokens > 0)
        return s->setup.max_tokens;
    return (size_t)item_spec(s->setup.prompts->set, index)->max_tokens;
}

int scorer_init(struct scorer *s, const struct scorer_setup *setup, struct err *err)
{
    const struct item_set *set = setup->prompts->set;
    *s = (struct scorer){.setup = *setup};
    request_text_init(&s->text);
    dclm_tokens_init(&s->kept);
    context_tokens_init(&s->context);
    s->setup.rules.kept = &s->context;
    for (size_t g = 0; g < set->n_groups; g++) {
        const size_t first = set->groups[g].first;
        if (set->groups[g].n > 0 && generates(s, first) &&
            max_tokens_of(s, first) >= setup->rules.max_length)
            return err_set(err, ERR_REFUSED,
                           "cannot be measured: a context of %zu tokens leaves no room to generate "
                           "%zu",
                           setup->rules.max_length, max_tokens_of(s, first));
    }
    return 0;
}

void scorer_release(struct scorer *s)
{
    for (size_t i = 0; i < s->n_outcomes; i++)
        outcome_release(&s->outcomes[i]);
    free(s->outcomes);
    request_list_release(&s->requests);
    request_text_release(&s->text);
    dclm_tokens_release(&s->kept);
    context_tokens_release(&s->context);
    *s = (struct scorer){0};
}

/* The one string that the harness tokenises. */
static const char *joined(struct scorer *s)
{
    strbuf_add(&s->text.preamble, s->text.context.buf, s->text.context.len);
    return s->text.preamble.buf;
}

/* The answer that an option is about, which must not be empty. */
static const char *answer_of(const struct item *it, size_t option)
{
    if (it->kind == TASK_CHOICE)
        return it->options[option];
    return it->kind == TASK_GENERATE ? NULL : it->continuation;
}

static int build_one(struct scorer *s, size_t index, size_t option, struct request_list *list,
                     struct err *err)
{
    const struct item *it = &s->setup.prompts->set->items[index];
    const struct request_rules *rules = &s->setup.rules;
    const char *answer = answer_of(it, option);
    prompt_request(s->setup.prompts, index, option, &s->text);
    if (it->kind == TASK_ROLLING)
        return request_add_windows(list, rules, s->text.continuation.buf, err);
    if (answer != NULL && answer[0] == '\0')
        return err_set(err, ERR_RANGE, "the answer is empty");
    struct request *r = request_list_add(list);
    if (it->kind == TASK_GENERATE)
        return request_build_prompt(r, rules, joined(s), max_tokens_of(s, index), err);
    if (item_spec(s->setup.prompts->set, index)->style == STYLE_DCLM)
        return dclm_request_build(r, rules, &s->kept, &s->text, err);
    return request_build(r, rules, joined(s), s->text.continuation.buf, err);
}

/* Builds all requests of the item, or none. */
int scorer_build(struct scorer *s, size_t index, struct request_list *list, char fault[FAULT_MAX],
                 struct err *err)
{
    const struct item *it = &s->setup.prompts->set->items[index];
    const size_t before = list->n;
    fault[0] = '\0';
    for (size_t i = 0; i < prompt_requests(it); i++) {
        int rc = build_one(s, index, i, list, err);
        if (rc == ERR_RANGE) {
            if (it->n_options > 0)
                (void)snprintf(fault, FAULT_MAX, "option %zu: %.120s", i, err->msg);
            else
                (void)snprintf(fault, FAULT_MAX, "%.140s", err->msg);
            list->n = before;
            err_clear(err);
            return 0;
        }
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Tokens that b does not begin with as a does. */
static size_t new_tokens(const struct request *a, const struct request *b)
{
    size_t n = 0;
    while (n < a->tokens.n && n < b->tokens.n && a->tokens.ids[n] == b->tokens.ids[n])
        n++;
    return b->tokens.n - n;
}

/* The i-th outcome of the batch, emptied; its buffers are reused. */
static struct item_outcome *take_outcome(struct scorer *s, size_t i)
{
    if (i == s->n_outcomes) {
        ARRAY_GROW(s->outcomes, s->n_outcomes, s->cap_outcomes);
        outcome_init(&s->outcomes[s->n_outcomes++]);
    }
    outcome_clear(&s->outcomes[i]);
    return &s->outcomes[i];
}

/* Records the item and option of every request from `from` on, and counts their new tokens. */
static void own_requests(struct score_batch *b, const struct scorer *s, size_t from)
{
    const struct request_list *list = &s->requests;
    if (list->n > b->cap) {
        b->cap = list->cap;
        b->owner = xreallocarray(b->owner, b->cap, sizeof(*b->owner));
        b->option = xreallocarray(b->option, b->cap, sizeof(*b->option));
    }
    for (size_t i = from; i < list->n; i++) {
        b->owner[i] = b->n;
        b->option[i] = i - from;
        b->n_tokens += (double)(i == 0 ? list->items[i].tokens.n
                                       : new_tokens(&list->items[i - 1], &list->items[i]));
    }
}

/* Adds items until the batch is full; generations and scores do not mix. */
static int fill(struct scorer *s, struct score_batch *b, size_t n, struct err *err)
{
    const bool generated = generates(s, b->items[0]);
    s->requests.n = 0;
    while (b->n < n && generates(s, b->items[b->n]) == generated) {
        const size_t before = s->requests.n;
        struct item_outcome *o = take_outcome(s, b->n);
        int rc = scorer_build(s, b->items[b->n], &s->requests, o->fault, err);
        if (rc != 0)
            return err_wrap(err, "item %zu", b->items[b->n]);
        own_requests(b, s, before);
        b->n++;
        if (b->n == BATCH_ITEMS || b->n_tokens >= BATCH_TOKENS ||
            (generated && s->requests.n >= BATCH_GENERATIONS))
            break;
    }
    return 0;
}

/* The windows of a text are summed in their order. */
static void take_score(struct scorer *s, const struct score_batch *b, size_t i,
                       const struct score_request *r)
{
    struct item_outcome *o = &s->outcomes[b->owner[i]];
    const struct item *it = &s->setup.prompts->set->items[b->items[b->owner[i]]];
    const size_t k = it->kind == TASK_ROLLING ? 0 : b->option[i];
    o->ll[k] += r->sum;
    o->greedy[k] = o->greedy[k] && r->greedy;
    o->n_tokens[k] += r->n - r->first;
    o->n_cut += s->requests.items[i].n_cut;
    o->finite = o->finite && isfinite(r->sum);
}

/* One call for all log-likelihoods of the batch; outcomes are cleared first, then summed. */
static int ask_scores(struct scorer *s, const struct score_batch *b, struct err *err)
{
    const size_t n = s->requests.n;
    struct score_request *asked = xcalloc(n + 1, sizeof(*asked));
    for (size_t i = 0; i < n; i++) {
        const struct request *r = &s->requests.items[i];
        asked[i] = (struct score_request){.tokens = r->tokens.ids, .n = r->tokens.n};
        asked[i].first = r->first;
    }
    for (size_t k = 0; k < b->n; k++) {
        struct item_outcome *o = &s->outcomes[k];
        const struct item *it = &s->setup.prompts->set->items[b->items[k]];
        o->n = o->fault[0] != '\0' ? 0 : it->kind == TASK_ROLLING ? 1 : prompt_requests(it);
        for (size_t i = 0; i < o->n; i++) {
            o->ll[i] = 0.0;
            o->greedy[i] = true;
            o->n_tokens[i] = 0;
        }
    }
    int rc = n == 0 ? 0 : s->setup.lm->score(s->setup.lm->self, asked, n, s->setup.asked, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        take_score(s, b, i, &asked[i]);
    free(asked);
    return rc;
}

/* What score_stop.over needs. */
struct generating {
    struct scorer *s;
    const struct score_batch *b;
    struct strbuf text;
    struct err err; /* code 0: none */
};

static const struct task_spec *spec_of(const struct generating *g, size_t request)
{
    return item_spec(g->s->setup.prompts->set, g->b->items[g->b->owner[request]]);
}

/* Whether a generation has a stop string by now; an error ends it, too, and is kept. */
static bool is_over(void *self, size_t request, const struct token_list *out)
{
    struct generating *g = self;
    bool stopped = false;
    return generate_text(g->s->setup.lm, spec_of(g, request), out, &g->text, &stopped, &g->err) !=
               0 ||
           stopped;
}

/* The final texts, cut at their stop strings. */
static int take_generations(struct generating *g, const struct score_generation *asked,
                            struct err *err)
{
    struct scorer *s = g->s;
    for (size_t i = 0; i < s->requests.n; i++) {
        struct item_outcome *o = &s->outcomes[g->b->owner[i]];
        bool stopped = false;
        int rc = generate_text(s->setup.lm, spec_of(g, i), &asked[i].out, &o->text, &stopped, err);
        if (rc != 0)
            return rc;
        o->ended = asked[i].ended || stopped;
        o->finite = asked[i].finite;
        o->n_cut = s->requests.items[i].n_cut;
    }
    return 0;
}

/* One call for all generations of the batch. */
static int ask_generations(struct scorer *s, const struct score_batch *b, struct err *err)
{
    const size_t n = s->requests.n;
    struct generating g = {.s = s, .b = b, .text = STRBUF_INIT};
    const struct score_stop stop = {.end_of_text = tokenizer_end_of_text(s->setup.lm->tok),
                                    .over = is_over,
                                    .self = &g,
                                    .asked = s->setup.asked};
    struct score_generation *asked = xcalloc(n + 1, sizeof(*asked));
    for (size_t i = 0; i < n; i++) {
        asked[i].prompt = s->requests.items[i].tokens.ids;
        asked[i].n = s->requests.items[i].tokens.n;
        asked[i].max_tokens = max_tokens_of(s, b->items[b->owner[i]]);
    }
    int rc = n == 0 ? 0 : s->setup.lm->generate(s->setup.lm->self, asked, n, &stop, err);
    if (rc == 0 && g.err.code != 0) {
        *err = g.err;
        rc = err->code;
    }
    if (rc == 0)
        rc = take_generations(&g, asked, err);
    for (size_t i = 0; i < n; i++)
        token_list_release(&asked[i].out);
    free(asked);
    strbuf_release(&g.text);
    return rc;
}

int scorer_ask(struct scorer *s, const size_t *items, size_t n, size_t *n_asked, struct err *err)
{
    struct score_batch b = {.items = items};
    int rc = fill(s, &b, n, err);
    if (rc == 0)
        rc = generates(s, items[0]) ? ask_generations(s, &b, err) : ask_scores(s, &b, err);
    for (size_t i = 0; rc == 0 && i < b.n; i++)
        judge_item(s->setup.judge, items[i], &s->outcomes[i]);
    *n_asked = rc == 0 ? b.n : 0;
    free(b.owner);
    free(b.option);
    return rc;
}
