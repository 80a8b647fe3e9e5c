#include "worker/eval/scorer.h"

#include <math.h>

#include "base/xalloc.h"
#include "worker/eval/generate.h"

int scorer_init(struct scorer *s, const struct task_spec *spec, const struct prompts *prompts,
                const struct lm *lm, size_t max_tokens, struct err *err)
{
    memset(s, 0, sizeof(*s));
    s->spec = spec;
    s->prompts = prompts;
    s->lm = lm;
    s->max_tokens = max_tokens;
    request_text_init(&s->text);
    s->logprob = xcalloc(lm->context, sizeof(*s->logprob));
    s->is_top = xcalloc(lm->context, sizeof(*s->is_top));
    s->logits = xcalloc(lm->vocab, sizeof(*s->logits));
    if (spec->kind == TASK_GENERATE && max_tokens >= lm->context)
        return err_set(err, ERR_REFUSED,
                       "cannot be measured: a context of %zu tokens leaves no room to generate %zu",
                       lm->context, max_tokens);
    return 0;
}

void scorer_release(struct scorer *s)
{
    request_release(&s->request);
    request_text_release(&s->text);
    free(s->logprob);
    free(s->is_top);
    free(s->logits);
    memset(s, 0, sizeof(*s));
}

/* The sum of the continuation's log-probabilities, from left to right. */
static int ask_option(struct scorer *s, size_t option, struct outcome *o, struct err *err)
{
    struct request *r = &s->request;
    const struct request_rules rules = {.tok = s->lm->tok, .max_length = s->lm->context};
    int rc = request_build(r, &rules, s->text.preamble.buf, s->text.continuation.buf, err);
    if (rc == ERR_RANGE) {
        (void)snprintf(o->fault, sizeof(o->fault), "option %zu: %.120s", option, err->msg);
        err_clear(err);
        return 0;
    }
    if (rc == 0)
        rc = s->lm->score(s->lm->self, r->tokens.ids, r->tokens.n, r->first, s->logprob, s->is_top,
                          err);
    if (rc != 0)
        return rc;
    double sum = 0.0;
    bool greedy = true;
    for (size_t i = 0; i < r->tokens.n - r->first; i++) {
        sum += s->logprob[i];
        greedy = greedy && s->is_top[i];
    }
    o->ll[option] = sum;
    o->greedy[option] = greedy;
    o->n = option + 1;
    o->n_cut += r->n_cut;
    o->finite = o->finite && isfinite(sum);
    return 0;
}

/* The harness tokenises preamble and context as one. */
static void set_texts(struct scorer *s, size_t index, size_t option)
{
    prompt_request(s->prompts, index, option, &s->text);
    strbuf_add(&s->text.preamble, s->text.context.buf, s->text.context.len);
}

static int ask_choices(struct scorer *s, size_t index, struct outcome *o, struct err *err)
{
    const struct item *it = &s->prompts->set->items[index];
    int rc = 0;
    for (size_t i = 0; i < it->n_options && rc == 0 && o->fault[0] == '\0'; i++) {
        const char *answer = it->kind == TASK_CONTEXT ? it->continuation : it->options[i];
        if (answer[0] == '\0') {
            (void)snprintf(o->fault, sizeof(o->fault), "option %zu: the answer is empty", i);
            break;
        }
        set_texts(s, index, i);
        rc = ask_option(s, i, o, err);
    }
    return rc;
}

static int ask_generation(struct scorer *s, size_t index, struct outcome *o, struct err *err)
{
    set_texts(s, index, 0);
    return generate_greedy(s->lm, s->text.preamble.buf, s->max_tokens, s->logits, o, err);
}

int scorer_ask(struct scorer *s, size_t index, struct outcome *o, struct err *err)
{
    outcome_clear(o);
    int rc = s->spec->kind == TASK_GENERATE ? ask_generation(s, index, o, err)
                                            : ask_choices(s, index, o, err);
    if (rc == 0)
        outcome_judge(o, s->spec, &s->prompts->set->items[index]);
    return rc;
}
