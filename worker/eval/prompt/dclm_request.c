/*
 * llm-foundry tokenises examples, context and answer separately, so the joints never merge into one
 * token; the same is done here. The tokens of examples and context are kept from one request to the
 * next, because the choices of an item share them. Whether an answer gets a space is asked of the
 * tokenizer itself: where " a" is one token, words carry their space.
 */
#include "worker/eval/prompt/dclm_request.h"

#include <string.h>

void dclm_tokens_init(struct dclm_tokens *t)
{
    memset(t, 0, sizeof(*t));
    strbuf_init(&t->examples);
    strbuf_init(&t->context);
}

void dclm_tokens_release(struct dclm_tokens *t)
{
    strbuf_release(&t->examples);
    strbuf_release(&t->context);
    token_list_release(&t->ids);
    dclm_tokens_init(t);
}

static int encode(const struct request_rules *rules, const char *text, struct token_list *out,
                  struct err *err)
{
    return tokenizer_encode(rules->tok, text, strlen(text), out, err);
}

/* Remembers the text that the kept tokens are of. */
static void keep(struct strbuf *sb, const char *text)
{
    strbuf_clear(sb);
    strbuf_adds(sb, text);
}

/* Makes t->ids those of the two texts. */
static int fill(struct dclm_tokens *t, const struct request_rules *rules, const char *examples,
                const char *context, struct err *err)
{
    const bool same_examples = t->is_filled && strcmp(t->examples.buf, examples) == 0;
    int rc = 0;
    if (same_examples && strcmp(t->context.buf, context) == 0)
        return 0;
    t->is_filled = false;
    t->ids.n = same_examples ? t->n_examples : 0;
    if (!same_examples) {
        if (rules->add_bos || tokenizer_begins_texts(rules->tok))
            token_list_add(&t->ids, tokenizer_end_of_text(rules->tok));
        rc = encode(rules, examples, &t->ids, err);
        t->n_examples = t->ids.n;
        keep(&t->examples, examples);
    }
    if (rc == 0)
        rc = encode(rules, context, &t->ids, err);
    keep(&t->context, context);
    t->is_filled = rc == 0;
    return rc;
}

/* Whether an answer gets a space in front. */
static int asks_space(const struct request_rules *rules, bool *asks, struct err *err)
{
    struct token_list ids = {0};
    int rc = encode(rules, " a", &ids, err);
    *asks = ids.n == 1;
    token_list_release(&ids);
    return rc;
}

/* The answer's tokens, with a space in front unless it has one. */
static int encode_answer(const struct request_rules *rules, const char *answer,
                         struct token_list *out, struct err *err)
{
    bool spaced = false;
    int rc = asks_space(rules, &spaced, err);
    if (rc != 0 || !spaced || answer[0] == ' ')
        return rc != 0 ? rc : encode(rules, answer, out, err);
    struct strbuf text = STRBUF_INIT;
    strbuf_addc(&text, ' ');
    strbuf_adds(&text, answer);
    rc = encode(rules, text.buf, out, err);
    strbuf_release(&text);
    return rc;
}

/* The last tokens of the context and the answer's. */
static int join(struct request *r, const struct token_list *context,
                const struct token_list *answer, size_t length, struct err *err)
{
    if (context->n == 0)
        return err_set(err, ERR_RANGE, "the context is empty");
    if (answer->n == 0)
        return err_set(err, ERR_RANGE, "the continuation is empty");
    if (answer->n >= length)
        return err_set(err, ERR_RANGE,
                       "the continuation has %zu tokens, the model takes %zu with one before it",
                       answer->n, length);
    r->n_cut = context->n + answer->n > length ? context->n + answer->n - length : 0;
    for (size_t i = r->n_cut; i < context->n; i++)
        token_list_add(&r->tokens, context->ids[i]);
    r->first = r->tokens.n;
    for (size_t i = 0; i < answer->n; i++)
        token_list_add(&r->tokens, answer->ids[i]);
    return 0;
}

/* The texts' three parts, tokenised one by one and joined. */
int dclm_request_build(struct request *r, const struct request_rules *rules, struct dclm_tokens *t,
                       const struct request_text *text, struct err *err)
{
    struct token_list answer = {0};
    r->tokens.n = 0;
    r->first = 0;
    r->n_cut = 0;
    int rc = fill(t, rules, text->preamble.buf, text->context.buf, err);
    if (rc == 0 && text->continuation.len > 0)
        rc = encode_answer(rules, text->continuation.buf, &answer, err);
    if (rc == 0)
        rc = join(r, &t->ids, &answer, dclm_length(rules->max_length), err);
    token_list_release(&answer);
    return rc;
}
