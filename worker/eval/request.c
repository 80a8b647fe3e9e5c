#include "worker/eval/request.h"

#include <string.h>

#include "worker/eval/pytext.h"

/* Sets tokens to ctx ++ cont and returns the length of ctx in *n_ctx. */
static int tokenise(struct request *r, const struct tokenizer *tok, const char *context,
                    const char *continuation, size_t *n_ctx, struct err *err)
{
    const size_t n_context = strlen(context);
    if (n_context == 0) {
        token_list_add(&r->tokens, tokenizer_end_of_text(tok));
        *n_ctx = 1;
        return tokenizer_encode(tok, continuation, strlen(continuation), &r->tokens, err);
    }
    struct token_list whole = {0};
    struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, context);
    strbuf_adds(&text, continuation);
    int rc = tokenizer_encode(tok, context, pytext_rstrip(context, n_context), &r->tokens, err);
    if (rc == 0)
        rc = tokenizer_encode(tok, text.buf, text.len, &whole, err);
    *n_ctx = r->tokens.n;
    for (size_t i = r->tokens.n; rc == 0 && i < whole.n; i++)
        token_list_add(&r->tokens, whole.ids[i]);
    strbuf_release(&text);
    token_list_release(&whole);
    return rc;
}

int request_build(struct request *r, const struct tokenizer *tok, const char *context,
                  const char *continuation, size_t max_length, struct err *err)
{
    size_t n_ctx = 0;
    r->tokens.n = 0;
    r->n_cut = 0;
    int rc = tokenise(r, tok, context, continuation, &n_ctx, err);
    if (rc != 0)
        return rc;
    const size_t n = r->tokens.n;
    if (n_ctx == 0)
        return err_set(err, ERR_RANGE, "the context is empty");
    if (n == n_ctx)
        return err_set(err, ERR_RANGE, "the continuation is empty");
    if (n - n_ctx > max_length)
        return err_set(err, ERR_RANGE, "the continuation has %zu tokens, the model takes %zu",
                       n - n_ctx, max_length);
    if (n > max_length + 1) {
        r->n_cut = n - (max_length + 1);
        r->tokens.n = max_length + 1;
        memmove(r->tokens.ids, r->tokens.ids + r->n_cut, r->tokens.n * sizeof(*r->tokens.ids));
    }
    r->first = n_ctx - r->n_cut;
    return 0;
}

void request_release(struct request *r)
{
    token_list_release(&r->tokens);
    memset(r, 0, sizeof(*r));
}
