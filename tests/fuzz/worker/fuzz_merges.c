/* vocab.json, 0xff, merges.txt, 0xff, text to encode. */
#include <assert.h>
#include <stdint.h>

#include "worker/data/tokenizer/tokenizer_bpe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct part {
    const char *text;
    size_t len;
};

/* What lies before the next 0xff; the rest stays in `from`. */
static struct part take(struct part *from)
{
    const char *end = from->len == 0 ? NULL : memchr(from->text, 0xff, from->len);
    struct part p = {.text = from->text,
                     .len = end == NULL ? from->len : (size_t)(end - from->text)};
    size_t gone = end == NULL ? p.len : p.len + 1;

    from->text += gone;
    from->len -= gone;
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct part rest = {.text = size == 0 ? "" : (const char *)data, .len = size};
    struct part vocab = take(&rest), merges = take(&rest);
    struct bpe_tokenizer t;
    struct token_list list = {0};
    struct err err = {0};

    bpe_tokenizer_init(&t);
    if (bpe_read_pair(&t, vocab.text, vocab.len, merges.text, merges.len, &err) == 0 &&
        bpe_tokenizer_finish(&t, &err) == 0 &&
        bpe_tokenizer_encode(&t, rest.text, rest.len, &list, &err) == 0)
        for (size_t i = 0; i < list.n; i++)
            assert(list.ids[i] < t.vocab);
    token_list_release(&list);
    bpe_tokenizer_release(&t);
    return 0;
}
