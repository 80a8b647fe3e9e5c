/*
 * Dispatches to the kinds. The order of KINDS matters: each is asked whether it claims the spec,
 * and "bytes" and *.bin are decided by the name before any file is opened. Ids are checked against
 * the vocabulary here, so that kinds need not.
 */
#include "worker/data/tokenizer/tokenizer.h"

#include "base/files/file.h"
#include "base/xalloc.h"
#include "worker/data/tokenizer/tokenizer_kind.h"

static const struct tokenizer_kind *const KINDS[] = {
    &tokenizer_kind_bytes,
    &tokenizer_kind_llama2c,
    &tokenizer_kind_bpe,
};

/* The first kind that claims the spec. */
static const struct tokenizer_kind *find_kind(const char *spec)
{
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        if (KINDS[i]->claims(spec))
            return KINDS[i];
    return NULL;
}

int tokenizer_open(const char *spec, struct tokenizer **out, struct err *err)
{
    const struct tokenizer_kind *kind = find_kind(spec);

    *out = NULL;
    if (kind == NULL)
        return err_set(err, ERR_NOT_FOUND,
                       "tokenizer %s: not \"bytes\", no tokenizer.json, no folder with one or with "
                       "vocab.json and merges.txt, no tokenizer.bin",
                       spec);
    struct tokenizer *tok = xcalloc(1, sizeof(*tok));
    tok->kind = kind;
    tok->spec = xstrdup(spec);
    int rc = kind->open(tok, err);
    if (rc < 0) {
        tokenizer_free(tok);
        return rc;
    }
    *out = tok;
    return 0;
}

void tokenizer_free(struct tokenizer *tok)
{
    if (tok == NULL)
        return;
    tok->kind->release(tok);
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

bool tokenizer_adds_space(const struct tokenizer *tok)
{
    return tok->prefix_space;
}

bool tokenizer_begins_texts(const struct tokenizer *tok)
{
    return tok->begins_texts;
}

struct digest tokenizer_digest(const struct tokenizer *tok)
{
    return tok->digest;
}

int tokenizer_encode(const struct tokenizer *tok, const char *text, size_t len,
                     struct token_list *out, struct err *err)
{
    return tok->kind->encode(tok, text, len, out, err);
}

int tokenizer_decode(const struct tokenizer *tok, const uint32_t *ids, size_t n, struct strbuf *out,
                     struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= tok->vocab)
            return err_set(err, ERR_RANGE, "token %u is outside the vocabulary of %u", ids[i],
                           tok->vocab);
        tok->kind->decode(tok, ids[i], out);
    }
    return 0;
}

bool tokenizer_is_special(const struct tokenizer *tok, uint32_t id)
{
    return tok->kind->is_special != NULL && tok->kind->is_special(tok, id);
}

bool tokenizer_losses(const struct tokenizer *tok, struct strbuf *out)
{
    return tok->kind->losses != NULL && tok->kind->losses(tok, out);
}

int tokenizer_save(const struct tokenizer *tok, const char *folder, const char **name,
                   struct err *err)
{
    *name = tok->kind->file;
    if (*name == NULL)
        return 0;
    char *path = path_join(folder, *name);
    int rc = tok->kind->save(tok, path, err);
    free(path);
    return rc;
}

const char *tokenizer_file_name(const struct tokenizer *tok)
{
    return tok->kind->file;
}

const char *tokenizer_kind_name(const struct tokenizer *tok)
{
    return tok->kind->name;
}

void token_list_reserve(struct token_list *list, size_t more)
{
    if (list->n + more <= list->cap)
        return;
    size_t cap = list->cap * 2 > list->n + more ? list->cap * 2 : list->n + more;
    list->ids = xreallocarray(list->ids, cap, sizeof(*list->ids));
    list->cap = cap;
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
