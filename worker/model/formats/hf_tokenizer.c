/*
 * "bytes" has no merges and its vocabulary follows from GPT-2's byte alphabet
 * (worker/data/tokenizer/bytelevel.h), so the file is generated. Recognising it compares digests of
 * two tokenizers as parsed, not bytes of two files: transformers orders and spaces the JSON
 * differently.
 */
#include "worker/model/formats/hf_tokenizer.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/data/tokenizer/bytelevel.h"
#include "worker/data/tokenizer/tokenizer_bpe.h"
#include "worker/model/formats/hf.h"

#define TEXT_MAX 65536 /* far more than "bytes" takes, far less than a vocabulary */

static cJSON *byte_level(void)
{
    cJSON *obj = json_object();

    json_put_string(obj, "type", "ByteLevel");
    json_put_bool(obj, "add_prefix_space", false);
    json_put_bool(obj, "trim_offsets", true);
    json_put_bool(obj, "use_regex", false);
    return obj;
}

static cJSON *bpe_model(void)
{
    cJSON *obj = json_object(), *vocab = json_object();
    struct strbuf text = STRBUF_INIT;

    for (unsigned b = 0; b < 256; b++) {
        const unsigned char byte = (unsigned char)b;
        strbuf_clear(&text);
        bytelevel_write(&byte, 1, &text);
        json_put_int(vocab, text.buf, b);
    }
    strbuf_release(&text);
    json_put_int(vocab, HF_END_OF_TEXT, 256);
    json_put_string(obj, "type", "BPE");
    json_put_null(obj, "dropout");
    json_put_null(obj, "unk_token");
    json_put_null(obj, "continuing_subword_prefix");
    json_put_null(obj, "end_of_word_suffix");
    json_put_bool(obj, "fuse_unk", false);
    json_put_bool(obj, "byte_fallback", false);
    json_put(obj, "vocab", vocab);
    json_put(obj, "merges", json_array());
    return obj;
}

static cJSON *added_tokens(void)
{
    cJSON *list = json_array(), *end = json_object();

    json_put_int(end, "id", 256);
    json_put_string(end, "content", HF_END_OF_TEXT);
    json_put_bool(end, "single_word", false);
    json_put_bool(end, "lstrip", false);
    json_put_bool(end, "rstrip", false);
    json_put_bool(end, "normalized", false);
    json_put_bool(end, "special", true);
    json_push(list, end);
    return list;
}

/* The text of tokenizer.json for "bytes". */
static void bytes_text(struct strbuf *out)
{
    cJSON *obj = json_object();
    struct err err;

    json_put_string(obj, "version", "1.0");
    json_put_null(obj, "truncation");
    json_put_null(obj, "padding");
    json_put(obj, "added_tokens", added_tokens());
    json_put_null(obj, "normalizer");
    json_put(obj, "pre_tokenizer", byte_level());
    json_put_null(obj, "post_processor");
    json_put(obj, "decoder", byte_level());
    json_put(obj, "model", bpe_model());
    /* Valid UTF-8 and whole numbers only: nothing in it can be refused. */
    if (json_pretty(obj, out, &err) < 0)
        strbuf_clear(out);
    strbuf_addc(out, '\n');
    cJSON_Delete(obj);
}

int hf_tokenizer_write_bytes(const char *folder, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(folder, HF_FILE_TOKENIZER);

    bytes_text(&text);
    int rc = file_write_atomic(path, text.buf, text.len, 0644, err);
    free(path);
    strbuf_release(&text);
    return rc;
}

int hf_tokenizer_write_config(const char *folder, const char *end_of_text, int context,
                              struct err *err)
{
    cJSON *obj = json_object();
    char *path = path_join(folder, HF_FILE_TOKENIZER_CONFIG);

    json_put_bool(obj, "add_prefix_space", false);
    json_put_bool(obj, "clean_up_tokenization_spaces", false);
    if (end_of_text != NULL) {
        json_put_string(obj, "bos_token", end_of_text);
        json_put_string(obj, "eos_token", end_of_text);
    }
    json_put_int(obj, "model_max_length", context);
    json_put_string(obj, "tokenizer_class", "PreTrainedTokenizerFast");
    int rc = json_write_file(path, obj, 0644, err);
    cJSON_Delete(obj);
    free(path);
    return rc;
}

static int digest_of(const struct strbuf *text, struct digest *out, struct err *err)
{
    struct bpe_tokenizer t;

    bpe_tokenizer_init(&t);
    int rc = bpe_read_json(&t, text->buf, text->len, err);
    if (rc == 0)
        rc = bpe_tokenizer_finish(&t, err);
    if (rc == 0)
        *out = bpe_tokenizer_digest(&t);
    bpe_tokenizer_release(&t);
    return rc;
}

bool hf_tokenizer_is_bytes(const char *path)
{
    struct strbuf text = STRBUF_INIT, found = STRBUF_INIT;
    struct digest ours, theirs;
    struct err err;

    bytes_text(&text);
    bool same = file_read(path, TEXT_MAX, &found, &err) == 0 &&
                digest_of(&found, &theirs, &err) == 0 && digest_of(&text, &ours, &err) == 0 &&
                digest_equal(&ours, &theirs);
    strbuf_release(&text);
    strbuf_release(&found);
    return same;
}
