/*
 * Follows lm-evaluation-harness: _encode_pair() for context and continuation, rolling windows for
 * whole texts, and left truncation for all. Context and continuation are tokenised together because
 * a joint may be one token; the boundary is the number of tokens of the context alone, as in the
 * reference, even where that is not a boundary of the text.
 */
#include "worker/eval/prompt/request.h"

#include <assert.h>
#include <string.h>

#include "base/xalloc.h"
#include "worker/eval/task/pytext.h"

/* The token before texts that have nothing before them. */
static uint32_t prefix_token(const struct request_rules *rules)
{
    return tokenizer_end_of_text(rules->tok);
}

static bool begins_with_prefix(const struct request_rules *rules, const char *text, size_t len)
{
    const uint32_t prefix = prefix_token(rules);
    struct strbuf spelling = STRBUF_INIT;
    struct err err = {0};
    const bool begins = tokenizer_decode(rules->tok, &prefix, 1, &spelling, &err) == 0 &&
                        spelling.len > 0 && spelling.len <= len &&
                        memcmp(text, spelling.buf, spelling.len) == 0;
    strbuf_release(&spelling);
    return begins;
}

/* Appends a text's tokens. */
static int encode(const struct request_rules *rules, const char *text, size_t len,
                  struct token_list *out, struct err *err)
{
    if (rules->add_bos && !(rules->one_bos && begins_with_prefix(rules, text, len)))
        token_list_add(out, prefix_token(rules));
    return tokenizer_encode(rules->tok, text, len, out, err);
}

/* The prefix token, then the continuation's; one_bos: unless they begin with it. */
static int tokenise_alone(struct request *r, const struct request_rules *rules,
                          const char *continuation, struct err *err)
{
    const size_t len = strlen(continuation);
    struct token_list *tokens = &r->tokens;
    token_list_add(tokens, prefix_token(rules));
    int rc = rules->one_bos ? tokenizer_encode(rules->tok, continuation, len, tokens, err)
                            : encode(rules, continuation, len, tokens, err);
    if (rc == 0 && rules->one_bos && tokens->n > 1 && tokens->ids[1] == tokens->ids[0])
        memmove(tokens->ids, tokens->ids + 1, --tokens->n * sizeof(*tokens->ids));
    return rc;
}

static int encode_context(struct request *r, const struct request_rules *rules, const char *text,
                          size_t len, struct err *err)
{
    struct context_tokens *t = rules->kept;
    if (t == NULL)
        return encode(rules, text, len, &r->tokens, err);
    if (!t->is_filled || t->text.len != len || memcmp(t->text.buf, text, len) != 0) {
        t->is_filled = false;
        t->ids.n = 0;
        int rc = encode(rules, text, len, &t->ids, err);
        if (rc != 0)
            return rc;
        strbuf_clear(&t->text);
        strbuf_add(&t->text, text, len);
        t->is_filled = true;
    }
    for (size_t i = 0; i < t->ids.n; i++)
        token_list_add(&r->tokens, t->ids.ids[i]);
    return 0;
}

/* Sets tokens to ctx ++ cont and *n_ctx to the length of ctx. */
static int tokenise(struct request *r, const struct request_rules *rules, const char *context,
                    const char *continuation, size_t *n_ctx, struct err *err)
{
    const size_t n_context = strlen(context);
    *n_ctx = 1;
    if (n_context == 0)
        return tokenise_alone(r, rules, continuation, err);
    struct token_list whole = {0};
    struct strbuf text = STRBUF_INIT;
    strbuf_add(&text, context, n_context);
    strbuf_adds(&text, continuation);
    int rc = encode_context(r, rules, context, pytext_rstrip(context, n_context), err);
    if (rc == 0)
        rc = encode(rules, text.buf, text.len, &whole, err);
    *n_ctx = r->tokens.n;
    for (size_t i = r->tokens.n; rc == 0 && i < whole.n; i++)
        token_list_add(&r->tokens, whole.ids[i]);
    strbuf_release(&text);
    token_list_release(&whole);
    return rc;
}

/* Keeps the last `keep` tokens and records how many were lost. */
static void cut_left(struct request *r, size_t keep)
{
    if (r->tokens.n <= keep)
        return;
    r->n_cut = r->tokens.n - keep;
    r->tokens.n = keep;
    memmove(r->tokens.ids, r->tokens.ids + r->n_cut, keep * sizeof(*r->tokens.ids));
}

/* Ready to be filled again; the token array is kept. */
static void empty(struct request *r)
{
    r->tokens.n = 0;
    r->first = 0;
    r->n_cut = 0;
}

int request_build(struct request *r, const struct request_rules *rules, const char *context,
                  const char *continuation, struct err *err)
{
    size_t n_ctx = 0;
    empty(r);
    int rc = tokenise(r, rules, context, continuation, &n_ctx, err);
    if (rc != 0)
        return rc;
    const size_t n = r->tokens.n;
    if (n_ctx == 0)
        return err_set(err, ERR_RANGE, "the context is empty");
    if (n <= n_ctx)
        return err_set(err, ERR_RANGE, "the continuation is empty");
    if (n - n_ctx > rules->max_length)
        return err_set(err, ERR_RANGE, "the continuation has %zu tokens, the model takes %zu",
                       n - n_ctx, rules->max_length);
    cut_left(r, rules->max_length + 1);
    r->first = n_ctx - r->n_cut;
    return 0;
}

void request_release(struct request *r)
{
    token_list_release(&r->tokens);
    memset(r, 0, sizeof(*r));
}

void context_tokens_init(struct context_tokens *t)
{
    *t = (struct context_tokens){.is_filled = false};
    strbuf_init(&t->text);
}

void context_tokens_release(struct context_tokens *t)
{
    strbuf_release(&t->text);
    token_list_release(&t->ids);
    context_tokens_init(t);
}

int request_add_windows(struct request_list *list, const struct request_rules *rules,
                        const char *text, struct err *err)
{
    struct token_list tokens = {0};
    token_list_add(&tokens, prefix_token(rules));
    int rc = encode(rules, text, strlen(text), &tokens, err);
    /* tokens[0 .. done] are scored or the prefix; a window scores up to max_length more and reads
     * as many before the last of them as the model takes */
    for (size_t done = 0; rc == 0 && done + 1 < tokens.n;) {
        const size_t left = tokens.n - 1 - done;
        const size_t n_new = left < rules->max_length ? left : rules->max_length;
        const size_t end = done + n_new + 1;
        const size_t start = end > rules->max_length + 1 ? end - rules->max_length - 1 : 0;
        struct request *r = request_list_add(list);
        for (size_t i = start; i < end; i++)
            token_list_add(&r->tokens, tokens.ids[i]);
        r->first = r->tokens.n - n_new;
        done += n_new;
    }
    token_list_release(&tokens);
    return rc;
}

/* Leaves room for max_tokens at the right. */
int request_build_prompt(struct request *r, const struct request_rules *rules, const char *prompt,
                         size_t max_tokens, struct err *err)
{
    assert(max_tokens < rules->max_length);
    empty(r);
    int rc = encode(rules, prompt, strlen(prompt), &r->tokens, err);
    if (rc == 0 && r->tokens.n == 0)
        token_list_add(&r->tokens, prefix_token(rules));
    cut_left(r, rules->max_length - max_tokens);
    r->first = r->tokens.n;
    return rc;
}

struct request *request_list_add(struct request_list *list)
{
    if (list->n == list->cap) {
        const size_t before = list->cap;
        ARRAY_GROW(list->items, list->n, list->cap);
        memset(list->items + before, 0, (list->cap - before) * sizeof(*list->items));
    }
    struct request *r = &list->items[list->n++];
    empty(r);
    return r;
}

void request_list_release(struct request_list *list)
{
    for (size_t i = 0; i < list->cap; i++)
        request_release(&list->items[i]);
    free(list->items);
    memset(list, 0, sizeof(*list));
}
