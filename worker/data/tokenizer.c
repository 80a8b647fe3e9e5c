#include "worker/data/tokenizer.h"

#include "base/xalloc.h"

struct tokenizer {
    char *spec;
    uint32_t vocab;
    uint32_t end_of_text;
    struct digest digest;
};

int tokenizer_open(const char *spec, struct tokenizer **out, struct err *err)
{
    static const char identity[] = "preregd bytes tokenizer 1";

    *out = NULL;
    if (strcmp(spec, TOKENIZER_BYTES) != 0)
        return err_set(err, ERR_REFUSED,
                       "tokenizer %s: this version trains and scores with \"bytes\" only", spec);
    struct tokenizer *tok = xcalloc(1, sizeof(*tok));
    tok->spec = xstrdup(spec);
    tok->vocab = TOKENIZER_BYTES_VOCAB;
    tok->end_of_text = TOKENIZER_BYTES_VOCAB - 1;
    tok->digest = digest_bytes(identity, sizeof(identity) - 1);
    *out = tok;
    return 0;
}

void tokenizer_free(struct tokenizer *tok)
{
    if (tok == NULL)
        return;
    free(tok->spec);
    free(tok);
}

const char *tokenizer_spec(const struct tokenizer *tok)
{
    return tok->spec;
}

uint32_t tokenizer_vocab(const struct tokenizer *tok)
{
    return tok->vocab;
}

uint32_t tokenizer_end_of_text(const struct tokenizer *tok)
{
    return tok->end_of_text;
}

struct digest tokenizer_digest(const struct tokenizer *tok)
{
    return tok->digest;
}

static void token_list_reserve(struct token_list *list, size_t more)
{
    if (list->n + more <= list->cap)
        return;
    size_t cap = list->cap * 2 > list->n + more ? list->cap * 2 : list->n + more;
    list->ids = xreallocarray(list->ids, cap, sizeof(*list->ids));
    list->cap = cap;
}

int tokenizer_encode(const struct tokenizer *tok, const char *text, size_t len,
                     struct token_list *out, struct err *err)
{
    (void)tok;
    (void)err;
    token_list_reserve(out, len);
    for (size_t i = 0; i < len; i++)
        out->ids[out->n + i] = (unsigned char)text[i];
    out->n += len;
    return 0;
}

int tokenizer_decode(const struct tokenizer *tok, const uint32_t *ids, size_t n, struct strbuf *out,
                     struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= tok->vocab)
            return err_set(err, ERR_RANGE, "token %u is outside the vocabulary of %u", ids[i],
                           tok->vocab);
        if (ids[i] != tok->end_of_text)
            strbuf_addc(out, (char)(unsigned char)ids[i]);
    }
    return 0;
}

void token_list_release(struct token_list *list)
{
    free(list->ids);
    *list = (struct token_list){0};
}

void token_list_add(struct token_list *list, uint32_t id)
{
    token_list_reserve(list, 1);
    list->ids[list->n++] = id;
}
