/*
 * Documents in memory. corpus_add() lends the token array to the tokenizer as a token_list, so
 * encoding appends in place; when encoding fails, the ids it appended lie beyond n_tokens and are
 * overwritten by the next document.
 */
#include "base/xalloc.h"
#include "worker/data/shard.h"

uint64_t document_hash(const char *text, size_t len)
{
    struct digest d = digest_bytes(text, len);
    uint64_t hash = 0;

    for (int i = 0; i < 8; i++)
        hash = hash << 8 | d.bytes[i];
    return hash;
}

void corpus_init(struct corpus *c)
{
    *c = (struct corpus){0};
}

void corpus_release(struct corpus *c)
{
    free(c->tokens);
    free(c->documents);
    *c = (struct corpus){0};
}

int corpus_reserve_tokens(struct corpus *c, size_t more, struct err *err)
{
    if (more <= c->cap_tokens - c->n_tokens)
        return 0;
    size_t want = c->n_tokens + more;
    size_t cap = c->cap_tokens * 2 > want ? c->cap_tokens * 2 : want;
    if (cap > SIZE_MAX / sizeof(*c->tokens))
        return err_set(err, ERR_RANGE, "a corpus of %zu tokens", cap);
    uint32_t *tokens = realloc(c->tokens, cap * sizeof(*tokens));
    if (tokens == NULL)
        return err_set(err, ERR_OTHER, "no memory for %zu tokens", cap);
    c->tokens = tokens;
    c->cap_tokens = cap;
    return 0;
}

void corpus_push_document(struct corpus *c, const struct shard_document *doc)
{
    ARRAY_GROW(c->documents, c->n_documents, c->cap_documents);
    c->documents[c->n_documents++] = *doc;
    c->n_bytes += doc->n_bytes;
}

int corpus_add(struct corpus *c, const struct tokenizer *tok, const char *text, size_t len,
               struct err *err)
{
    struct token_list list = {.ids = c->tokens, .n = c->n_tokens, .cap = c->cap_tokens};

    /* The list borrows the corpus's buffer, so that ids are appended in place. */
    int rc = tokenizer_encode(tok, text, len, &list, err);
    if (rc == 0)
        token_list_add(&list, tokenizer_end_of_text(tok));
    c->tokens = list.ids;
    c->cap_tokens = list.cap;
    if (rc < 0)
        return rc;
    struct shard_document doc = {
        .n_tokens = list.n - c->n_tokens, .n_bytes = len, .hash = document_hash(text, len)};
    c->n_tokens = list.n;
    corpus_push_document(c, &doc);
    return 0;
}
