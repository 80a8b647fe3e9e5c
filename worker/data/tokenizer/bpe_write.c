/*
 * Writes a tokenizer as tokenizer.json, and computes its digest. The digest covers what determines
 * ids (vocabulary, merges that count, split patterns, added tokens), each field with its length or
 * as eight bytes, so it does not depend on the JSON's spelling. Its order is a format: shards and
 * models carry the value.
 */
#include "base/json/json.h"
#include "worker/data/tokenizer/tokenizer_bpe.h"

static cJSON *byte_level(bool prefix_space, bool use_regex)
{
    cJSON *obj = json_object();

    json_put_string(obj, "type", "ByteLevel");
    json_put_bool(obj, "add_prefix_space", prefix_space);
    json_put_bool(obj, "trim_offsets", true);
    json_put_bool(obj, "use_regex", use_regex);
    return obj;
}

static cJSON *split_stage(const char *pattern)
{
    cJSON *obj = json_object(), *inner = json_object();

    json_put_string(inner, "Regex", pattern);
    json_put_string(obj, "type", "Split");
    json_put(obj, "pattern", inner);
    json_put_string(obj, "behavior", "Isolated");
    json_put_bool(obj, "invert", false);
    return obj;
}

/* ByteLevel alone where its own pattern, or none, is the last stage; a Sequence otherwise. */
static cJSON *pre_tokenizer(const struct bpe_tokenizer *t)
{
    const struct split *s = &t->split;
    bool own = s->n_stages > 0 && strcmp(split_pattern(s, s->n_stages - 1), SPLIT_GPT2) == 0;
    size_t n_splits = s->n_stages - (own ? 1 : 0);
    cJSON *last = byte_level(t->prefix_space, own);

    if (n_splits == 0)
        return last;
    cJSON *obj = json_object(), *list = json_array();
    for (size_t i = 0; i < n_splits; i++)
        json_push(list, split_stage(split_pattern(s, i)));
    json_push(list, last);
    json_put_string(obj, "type", "Sequence");
    json_put(obj, "pretokenizers", list);
    return obj;
}

static cJSON *added_tokens(const struct added *a)
{
    cJSON *list = json_array();

    for (uint32_t i = 0; i < a->n; i++) {
        cJSON *obj = json_object();
        json_put_int(obj, "id", a->tokens[i].id);
        json_put_string(obj, "content", a->tokens[i].content);
        json_put_bool(obj, "single_word", false);
        json_put_bool(obj, "lstrip", a->tokens[i].lstrip);
        json_put_bool(obj, "rstrip", a->tokens[i].rstrip);
        json_put_bool(obj, "normalized", a->tokens[i].normalized);
        json_put_bool(obj, "special", a->tokens[i].special);
        json_push(list, obj);
    }
    return list;
}

/* Whether merge i counts: of a pair given twice only the last does. */
static bool merge_counts(const struct bpe *b, uint32_t i)
{
    return bpe_rank(b, b->merges[i].left, b->merges[i].right) == i;
}

static cJSON *merges(const struct bpe *b)
{
    cJSON *list = json_array();
    struct strbuf text = STRBUF_INIT;

    for (uint32_t i = 0; i < b->n_merges; i++) {
        size_t n = 0;
        if (!merge_counts(b, i))
            continue;
        strbuf_clear(&text);
        const char *part = bpe_text(b, b->merges[i].left, &n);
        strbuf_add(&text, part, n);
        strbuf_addc(&text, ' ');
        part = bpe_text(b, b->merges[i].right, &n);
        strbuf_add(&text, part, n);
        json_push_string(list, text.buf);
    }
    strbuf_release(&text);
    return list;
}

static char *copy_text(const struct bpe *b, uint32_t id, struct strbuf *text)
{
    size_t n = 0;
    const char *part = bpe_text(b, id, &n);

    strbuf_clear(text);
    if (part == NULL)
        return NULL;
    strbuf_add(text, part, n);
    return text->buf;
}

static cJSON *model(const struct bpe *b)
{
    cJSON *obj = json_object(), *vocab = json_object();
    struct strbuf text = STRBUF_INIT;

    json_put_string(obj, "type", "BPE");
    json_put_null(obj, "dropout");
    json_put_string(obj, "unk_token", b->unk == BPE_NONE ? NULL : copy_text(b, b->unk, &text));
    json_put_null(obj, "continuing_subword_prefix");
    json_put_null(obj, "end_of_word_suffix");
    json_put_bool(obj, "fuse_unk", b->fuse_unk);
    json_put_bool(obj, "byte_fallback", false);
    json_put_bool(obj, "ignore_merges", b->ignore_merges);
    for (uint32_t id = 0; id < b->n_ids; id++)
        if (copy_text(b, id, &text) != NULL)
            json_put_int(vocab, text.buf, id);
    json_put(obj, "vocab", vocab);
    json_put(obj, "merges", merges(b));
    strbuf_release(&text);
    return obj;
}

cJSON *bpe_write_json(const struct bpe_tokenizer *t)
{
    cJSON *obj = json_object();

    json_put_string(obj, "version", "1.0");
    json_put_null(obj, "truncation");
    json_put_null(obj, "padding");
    json_put(obj, "added_tokens", added_tokens(&t->added));
    json_put_null(obj, "normalizer");
    json_put(obj, "pre_tokenizer", pre_tokenizer(t));
    json_put(obj, "post_processor", byte_level(true, true));
    json_put(obj, "decoder", byte_level(true, true));
    json_put(obj, "model", model(&t->bpe));
    return obj;
}

/* Eight bytes, little-endian. */
static void digest_number(struct digest_stream *s, uint64_t v)
{
    unsigned char cell[8];

    for (size_t i = 0; i < sizeof(cell); i++)
        cell[i] = (unsigned char)(v >> (8 * i));
    digest_add(s, cell, sizeof(cell));
}

static void digest_text(struct digest_stream *s, const char *text, size_t len)
{
    digest_number(s, len);
    digest_add(s, text, len);
}

static void digest_model(struct digest_stream *s, const struct bpe *b)
{
    digest_number(s, b->n_ids);
    for (uint32_t id = 0; id < b->n_ids; id++) {
        size_t n = 0;
        const char *text = bpe_text(b, id, &n);
        digest_text(s, text == NULL ? "" : text, n);
    }
    for (uint32_t i = 0; i < b->n_merges; i++) {
        if (!merge_counts(b, i))
            continue;
        digest_number(s, b->merges[i].left);
        digest_number(s, b->merges[i].right);
    }
    digest_number(s, UINT64_MAX);
    digest_number(s, b->unk);
    digest_number(s, b->fuse_unk);
    digest_number(s, b->ignore_merges);
}

struct digest bpe_tokenizer_digest(const struct bpe_tokenizer *t)
{
    static const char kind[] = "preregd byte-level BPE 1";
    struct digest_stream s;

    digest_start(&s);
    digest_text(&s, kind, sizeof(kind) - 1);
    digest_model(&s, &t->bpe);
    digest_number(&s, t->split.n_stages);
    for (size_t i = 0; i < t->split.n_stages; i++)
        digest_text(&s, split_pattern(&t->split, i), strlen(split_pattern(&t->split, i)));
    digest_number(&s, t->prefix_space);
    digest_number(&s, t->added.n);
    for (uint32_t i = 0; i < t->added.n; i++) {
        const struct added_token *a = &t->added.tokens[i];
        digest_text(&s, a->content, a->len);
        digest_number(&s, a->id);
        digest_number(&s, (uint64_t)a->lstrip | (uint64_t)a->rstrip << 1 |
                              (uint64_t)a->normalized << 2);
    }
    digest_number(&s, t->end_of_text);
    return digest_finish(&s);
}
