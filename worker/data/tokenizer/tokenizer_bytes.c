/*
 * Kind "bytes": id b < 256 is the byte b, 256 ends a document and has no text. It needs no file, so
 * its digest is that of a fixed name. Text that spells <|endoftext|> is encoded as its bytes.
 */
#include <assert.h>

#include "worker/data/tokenizer/tokenizer_kind.h"

static bool bytes_claims(const char *spec)
{
    return strcmp(spec, TOKENIZER_BYTES) == 0;
}

static int bytes_open(struct tokenizer *tok, struct err *err)
{
    static const char identity[] = "preregd bytes tokenizer 1";

    (void)err;
    tok->vocab = TOKENIZER_BYTES_VOCAB;
    tok->end_of_text = TOKENIZER_BYTES_VOCAB - 1;
    tok->digest = digest_bytes(identity, sizeof(identity) - 1);
    return 0;
}

static void bytes_release(struct tokenizer *tok)
{
    assert(tok->state == NULL);
}

static int bytes_encode(const struct tokenizer *tok, const char *text, size_t len,
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

static void bytes_decode(const struct tokenizer *tok, uint32_t id, struct strbuf *out)
{
    if (id != tok->end_of_text)
        strbuf_addc(out, (char)(unsigned char)id);
}

const struct tokenizer_kind tokenizer_kind_bytes = {
    .name = "bytes",
    .claims = bytes_claims,
    .open = bytes_open,
    .release = bytes_release,
    .encode = bytes_encode,
    .decode = bytes_decode,
};
