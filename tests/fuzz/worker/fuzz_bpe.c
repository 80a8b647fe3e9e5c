/* A tokenizer.json from arbitrary bytes, up to the first 0xff; what opens is written, read again,
 * and encodes the rest. Whatever claims to lose nothing must give that text back. */
#include <assert.h>
#include <stdint.h>

#include "base/json/json.h"
#include "worker/data/tokenizer/tokenizer_bpe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool open_json(struct bpe_tokenizer *t, const char *text, size_t len)
{
    struct err err = {0};

    bpe_tokenizer_init(t);
    return bpe_read_json(t, text, len, &err) == 0 && bpe_tokenizer_finish(t, &err) == 0;
}

static void encode(const struct bpe_tokenizer *t, const char *text, size_t len)
{
    struct token_list list = {0};
    struct strbuf back = STRBUF_INIT, why = STRBUF_INIT;
    struct err err = {0};

    if (bpe_tokenizer_encode(t, text, len, &list, &err) == 0) {
        for (size_t i = 0; i < list.n; i++) {
            assert(list.ids[i] < t->vocab);
            bpe_tokenizer_decode(t, list.ids[i], &back);
        }
        if (!bpe_tokenizer_losses(t, &why) && t->bpe.unk == BPE_NONE)
            assert(back.len == len && memcmp(back.buf, text, len) == 0);
    }
    strbuf_release(&back);
    strbuf_release(&why);
    token_list_release(&list);
}

static void write_and_read(const struct bpe_tokenizer *t)
{
    struct bpe_tokenizer again;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    cJSON *json = bpe_write_json(t);

    assert(json_pretty(json, &text, &err) == 0);
    bool opened = open_json(&again, text.buf, text.len);
    assert(opened);
    struct digest a = bpe_tokenizer_digest(t), b = bpe_tokenizer_digest(&again);
    assert(digest_equal(&a, &b));
    bpe_tokenizer_release(&again);
    strbuf_release(&text);
    cJSON_Delete(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size == 0 ? NULL : memchr(data, 0xff, size);
    size_t len = end == NULL ? size : (size_t)(end - data);
    struct bpe_tokenizer t;

    if (open_json(&t, (const char *)data, len)) {
        write_and_read(&t);
        if (end != NULL)
            encode(&t, (const char *)end + 1, size - len - 1);
    }
    bpe_tokenizer_release(&t);
    return 0;
}
