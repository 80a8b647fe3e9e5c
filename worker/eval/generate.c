#include "worker/eval/generate.h"

#include <assert.h>
#include <math.h>

#include "base/text.h"
#include "worker/eval/gsm8k.h"

void generate_add_utf8(const char *bytes, size_t len, struct strbuf *out)
{
    for (size_t at = 0; at < len;) {
        uint32_t cp = 0;
        size_t n = text_utf8_next(bytes + at, len - at, &cp);
        if (n == 0 || cp == 0)
            strbuf_adds(out, "\xef\xbf\xbd");
        else
            strbuf_add(out, bytes + at, n);
        at += n == 0 ? 1 : n;
    }
}

/* The lowest id among the greatest; false when one is not finite. */
static bool find_top(const float *logits, size_t n, uint32_t *top)
{
    *top = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(logits[i]))
            return false;
        if (logits[i] > logits[*top])
            *top = (uint32_t)i;
    }
    return true;
}

static int encode_prompt(const struct lm *lm, const char *prompt, size_t budget,
                         struct token_list *tokens, struct outcome *o, struct err *err)
{
    int rc = tokenizer_encode(lm->tok, prompt, strlen(prompt), tokens, err);
    if (rc != 0)
        return rc;
    if (tokens->n > budget) {
        o->n_cut = tokens->n - budget;
        tokens->n = budget;
        memmove(tokens->ids, tokens->ids + o->n_cut, budget * sizeof(*tokens->ids));
    }
    if (tokens->n == 0)
        token_list_add(tokens, tokenizer_end_of_text(lm->tok));
    return 0;
}

int generate_greedy(const struct lm *lm, const char *prompt, size_t max_tokens, float *logits,
                    struct outcome *o, struct err *err)
{
    assert(max_tokens < lm->context);
    struct token_list tokens = {0};
    struct strbuf bytes = STRBUF_INIT;
    int rc = encode_prompt(lm, prompt, lm->context - max_tokens, &tokens, o, err);
    for (size_t i = 0; rc == 0 && i < max_tokens && !o->ended; i++) {
        uint32_t top = 0;
        rc = lm->next_logits(lm->self, tokens.ids, tokens.n, logits, err);
        if (rc != 0)
            break;
        o->finite = find_top(logits, lm->vocab, &top);
        if (!o->finite)
            break;
        if (top == tokenizer_end_of_text(lm->tok)) {
            o->ended = true;
            break;
        }
        token_list_add(&tokens, top);
        rc = tokenizer_decode(lm->tok, &top, 1, &bytes, err);
        strbuf_clear(&o->text);
        generate_add_utf8(bytes.buf, bytes.len, &o->text);
        o->ended = gsm8k_cut(&o->text);
    }
    strbuf_release(&bytes);
    token_list_release(&tokens);
    return rc;
}
