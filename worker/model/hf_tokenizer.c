#include "worker/model/hf_tokenizer.h"

#include "base/file.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "worker/data/tokenizer.h"
#include "worker/model/hf.h"

#define TEXT_MAX 65536

/* GPT-2's character for a byte: itself where it prints in Latin-1, else the next one from U+0100.
 */
static void byte_character(int byte, char out[3])
{
    uint32_t next = 0x100, cp = 0;

    for (int b = 0; b <= byte; b++) {
        bool prints = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        cp = prints ? (uint32_t)b : next++;
    }
    if (cp < 0x80) {
        out[0] = (char)cp;
        out[1] = '\0';
    } else {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        out[2] = '\0';
    }
}

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
    char text[3];

    for (int b = 0; b < 256; b++) {
        byte_character(b, text);
        json_put_int(vocab, text, b);
    }
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

bool hf_tokenizer_is_bytes(const char *path)
{
    struct strbuf text = STRBUF_INIT, found = STRBUF_INIT;
    struct err err;

    bytes_text(&text);
    bool same = file_read(path, TEXT_MAX, &found, &err) == 0 && found.len == text.len &&
                memcmp(found.buf, text.buf, text.len) == 0;
    strbuf_release(&text);
    strbuf_release(&found);
    return same;
}
