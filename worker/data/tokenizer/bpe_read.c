/*
 * Reads tokenizer.json of the GPT-2 family, and vocab.json with merges.txt. A feature that a file
 * asks for and this version lacks is refused by name, since ignoring it would give other ids; only
 * truncation and padding are ignored, which change no text that fits. Ids of added tokens must be
 * the ones that Hugging Face's library would assign, or the two would disagree silently.
 */
#include <math.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/data/tokenizer/tokenizer_bpe.h"

#define END_OF_TEXT "<|endoftext|>"

/* Token to id, from the object "vocab" or vocab.json. */
static int add_vocab(struct bpe *b, const cJSON *vocab, struct err *err)
{
    const cJSON *item;
    int rc = 0;

    cJSON_ArrayForEach(item, vocab)
    {
        double v = item->valuedouble;
        if (!cJSON_IsNumber(item) || !(v >= 0.0 && v <= BPE_ID_MAX) || v != floor(v))
            return err_set(err, ERR_SYNTAX, "token \"%.60s\": expected an id from 0 to %u",
                           item->string, BPE_ID_MAX);
        rc = bpe_add_token(b, item->string, strlen(item->string), (uint32_t)v, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* "left right", with exactly one blank. */
static int add_merge_text(struct bpe *b, const char *text, size_t len, struct err *err)
{
    const char *blank = memchr(text, ' ', len);
    size_t n = blank == NULL ? len : (size_t)(blank - text);

    if (blank == NULL || n == 0 || n + 1 == len || memchr(blank + 1, ' ', len - n - 1) != NULL)
        return err_set(err, ERR_SYNTAX, "expected two tokens with a blank between");
    return bpe_add_merge(b, text, n, blank + 1, len - n - 1, err);
}

static int add_merge(struct bpe *b, const cJSON *item, struct err *err)
{
    if (cJSON_IsString(item))
        return add_merge_text(b, item->valuestring, strlen(item->valuestring), err);
    const cJSON *left = cJSON_IsArray(item) ? item->child : NULL;
    const cJSON *right = left == NULL ? NULL : left->next;
    if (!cJSON_IsString(left) || !cJSON_IsString(right) || right->next != NULL)
        return err_set(err, ERR_SYNTAX, "expected \"left right\" or [\"left\", \"right\"]");
    return bpe_add_merge(b, left->valuestring, strlen(left->valuestring), right->valuestring,
                         strlen(right->valuestring), err);
}

static int add_merges(struct bpe *b, const cJSON *merges, struct err *err)
{
    const cJSON *item;
    size_t i = 0;

    cJSON_ArrayForEach(item, merges)
    {
        if (add_merge(b, item, err) < 0)
            return err_wrap(err, "merges[%zu]", i);
        i++;
    }
    return 0;
}

/* null, absent, "" and false are all "no". */
static bool is_off(const cJSON *v)
{
    return v == NULL || cJSON_IsNull(v) || cJSON_IsFalse(v) ||
           (cJSON_IsString(v) && v->valuestring[0] == '\0') ||
           (cJSON_IsNumber(v) && v->valuedouble == 0.0);
}

static const char *type_of(const cJSON *v)
{
    const cJSON *type = cJSON_IsObject(v) ? json_member(v, "type") : NULL;

    return cJSON_IsString(type) ? type->valuestring : "without a type";
}

static int read_unk(struct bpe *b, const cJSON *model, struct err *err)
{
    const char *unk = NULL;
    int rc = json_opt_string(model, "unk_token", &unk, err);

    if (rc < 0 || unk == NULL || unk[0] == '\0')
        return rc;
    b->unk = bpe_find(b, unk, strlen(unk));
    return b->unk == BPE_NONE
               ? err_set(err, ERR_SYNTAX, "unk_token \"%.60s\" is not in the vocabulary", unk)
               : 0;
}

/* The vocabulary first, because merges refer to it, and then the merges in order of rank. */
static int read_model(struct bpe *b, const cJSON *model, struct err *err)
{
    static const char *const not_done[] = {"dropout", "byte_fallback", "continuing_subword_prefix",
                                           "end_of_word_suffix"};
    const cJSON *vocab = NULL, *merges = NULL, *type = json_member(model, "type");
    int rc = 0;

    if (type != NULL && strcmp(type_of(model), "BPE") != 0)
        return err_set(err, ERR_REFUSED, "model %.60s: only BPE is read", type_of(model));
    for (size_t i = 0; i < ARRAY_LEN(not_done); i++)
        if (!is_off(json_member(model, not_done[i])))
            return err_set(err, ERR_REFUSED, "BPE with %s is not supported", not_done[i]);
    if ((rc = json_get_object(model, "vocab", &vocab, err)) < 0 ||
        (rc = json_get_array(model, "merges", &merges, err)) < 0 ||
        (rc = json_opt_bool(model, "fuse_unk", &b->fuse_unk, err)) < 0 ||
        (rc = json_opt_bool(model, "ignore_merges", &b->ignore_merges, err)) < 0 ||
        (rc = add_vocab(b, vocab, err)) < 0 || (rc = add_merges(b, merges, err)) < 0)
        return rc;
    return read_unk(b, model, err);
}

static int get_bool(const cJSON *obj, const char *key, bool *out, struct err *err)
{
    if (json_member(obj, key) == NULL)
        return err_set(err, ERR_SYNTAX, "%s is missing", key);
    return json_opt_bool(obj, key, out, err);
}

/* The ByteLevel step, with GPT-2's pattern unless use_regex is off. */
static int read_byte_level(struct bpe_tokenizer *t, const cJSON *obj, struct err *err)
{
    bool use_regex = true;
    int rc = get_bool(obj, "add_prefix_space", &t->prefix_space, err);

    if (rc == 0)
        rc = json_opt_bool(obj, "use_regex", &use_regex, err);
    if (rc == 0 && t->prefix_space && t->split.n_stages > 0)
        rc = err_set(err, ERR_REFUSED, "add_prefix_space behind a Split is not supported");
    if (rc == 0 && use_regex)
        rc = split_add_pattern(&t->split, SPLIT_GPT2, err);
    return rc;
}

/* A Split step: an isolating regular expression, the only form that is supported. */
static int read_split(struct bpe_tokenizer *t, const cJSON *obj, struct err *err)
{
    const cJSON *pattern = NULL;
    const char *regex = NULL, *behaviour = NULL;
    bool invert = false;
    int rc = json_get_object(obj, "pattern", &pattern, err);

    if (rc == 0 && (rc = json_get_string(obj, "behavior", &behaviour, err)) == 0)
        rc = json_opt_bool(obj, "invert", &invert, err);
    if (rc < 0)
        return rc;
    if (json_get_string(pattern, "Regex", &regex, err) < 0)
        return err_set(err, ERR_REFUSED, "Split by anything but a Regex is not supported");
    if (invert || strcmp(behaviour, "Isolated") != 0)
        return err_set(err, ERR_REFUSED, "Split with behavior %.40s%s is not supported", behaviour,
                       invert ? ", inverted," : "");
    return split_add_pattern(&t->split, regex, err);
}

/* Splits, then ByteLevel, and nothing after it. */
static int read_pre_tokenizer(struct bpe_tokenizer *t, const cJSON *pre, struct err *err)
{
    const cJSON *list = NULL, *item = pre;
    int rc = 0;

    if (strcmp(type_of(pre), "Sequence") == 0) {
        rc = json_get_array(pre, "pretokenizers", &list, err);
        if (rc < 0)
            return rc;
        item = list->child;
    }
    for (; rc == 0 && item != NULL && strcmp(type_of(item), "Split") == 0; item = item->next)
        rc = read_split(t, item, err);
    if (rc < 0)
        return rc;
    if (item == NULL)
        return err_set(err, ERR_REFUSED, "no ByteLevel pre-tokenizer: not byte-level BPE");
    if (strcmp(type_of(item), "ByteLevel") != 0)
        return err_set(err, ERR_REFUSED, "%.60s is not supported", type_of(item));
    if (list != NULL && item->next != NULL)
        return err_set(err, ERR_REFUSED, "%.60s behind ByteLevel is not supported",
                       type_of(item->next));
    return read_byte_level(t, item, err);
}

/* The id that Hugging Face gives a word that is added: its own in the vocabulary, or the next. */
static uint32_t expected_id(const struct bpe_tokenizer *t, const char *content)
{
    uint32_t id = bpe_find(&t->bpe, content, strlen(content));

    if (id != BPE_NONE)
        return id;
    return t->added.n_ids > t->bpe.vocab.n ? t->added.n_ids : t->bpe.vocab.n;
}

/* The next id may be one of a vocabulary with holes. */
static bool is_taken(const struct bpe_tokenizer *t, uint32_t id, const char *content)
{
    size_t len = 0;
    const char *text = bpe_text(&t->bpe, id, &len);

    return added_by_id(&t->added, id) != NULL ||
           (text != NULL && (len != strlen(content) || memcmp(text, content, len) != 0));
}

/* One entry of added_tokens; its id must be expected_id(). */
static int read_added_token(struct bpe_tokenizer *t, const cJSON *obj, struct err *err)
{
    struct added_token token = {0};
    const char *content = NULL;
    bool single_word = false;
    int64_t id = 0;
    int rc;

    if ((rc = json_get_string(obj, "content", &content, err)) < 0 ||
        (rc = json_get_int(obj, "id", 0, BPE_ID_MAX, &id, err)) < 0 ||
        (rc = json_opt_bool(obj, "single_word", &single_word, err)) < 0 ||
        (rc = json_opt_bool(obj, "lstrip", &token.lstrip, err)) < 0 ||
        (rc = json_opt_bool(obj, "rstrip", &token.rstrip, err)) < 0 ||
        (rc = json_opt_bool(obj, "normalized", &token.normalized, err)) < 0 ||
        (rc = json_opt_bool(obj, "special", &token.special, err)) < 0)
        return rc;
    if (single_word)
        return err_set(err, ERR_REFUSED, "\"%.60s\": single_word is not supported", content);
    if (content[0] == '\0')
        return err_set(err, ERR_SYNTAX, "empty content");
    if (added_by_content(&t->added, content, strlen(content)) != NULL)
        return err_set(err, ERR_SYNTAX, "\"%.60s\" is duplicated", content);
    uint32_t expected = expected_id(t, content);
    if (expected != (uint32_t)id)
        return err_set(err, ERR_SYNTAX, "\"%.60s\": id %u, expected %u", content, (uint32_t)id,
                       expected);
    if (is_taken(t, expected, content))
        return err_set(err, ERR_SYNTAX, "\"%.60s\": id %u belongs to another token", content,
                       expected);
    token.content = xstrdup(content);
    token.len = strlen(content);
    token.id = (uint32_t)id;
    added_put(&t->added, &token);
    return 0;
}

static int read_added(struct bpe_tokenizer *t, const cJSON *list, struct err *err)
{
    const cJSON *item;
    size_t i = 0;

    cJSON_ArrayForEach(item, list)
    {
        if (read_added_token(t, item, err) < 0)
            return err_wrap(err, "added_tokens[%zu]", i);
        i++;
    }
    return 0;
}

/* A part that may be absent or ByteLevel, which changes nothing here. */
static int check_part(const cJSON *obj, const char *key, struct err *err)
{
    const cJSON *part = json_member(obj, key);

    if (is_off(part) || strcmp(type_of(part), "ByteLevel") == 0)
        return 0;
    return err_set(err, ERR_REFUSED, "%s %.60s is not supported", key, type_of(part));
}

/* What a normalizer is called; of a sequence, its parts. */
static int refuse_normalizer(const cJSON *normalizer, struct err *err)
{
    const cJSON *parts = json_member(normalizer, "normalizers"), *part;
    struct strbuf names = STRBUF_INIT;

    cJSON_ArrayForEach(part, parts)
        strbuf_addf(&names, "%s%.40s", names.len == 0 ? "" : " + ", type_of(part));
    if (names.len == 0)
        strbuf_adds(&names, type_of(normalizer));
    int rc = err_set(err, ERR_REFUSED, "normalizer %s is not supported", names.buf);
    strbuf_release(&names);
    return rc;
}

/* Parts that decide what is refused come before the long lists. */
static int read_tokenizer(struct bpe_tokenizer *t, const cJSON *obj, struct err *err)
{
    const cJSON *model = NULL, *pre = NULL, *normalizer, *added;
    int rc;

    if ((rc = json_get_object(obj, "model", &model, err)) < 0)
        return rc;
    normalizer = json_member(obj, "normalizer");
    if (!is_off(normalizer))
        return refuse_normalizer(normalizer, err);
    if ((rc = check_part(obj, "decoder", err)) < 0 ||
        (rc = check_part(obj, "post_processor", err)) < 0)
        return rc;
    if (is_off(json_member(obj, "pre_tokenizer")))
        return err_set(err, ERR_REFUSED, "no pre_tokenizer: not byte-level BPE");
    if ((rc = json_get_object(obj, "pre_tokenizer", &pre, err)) < 0)
        return rc;
    if ((rc = read_pre_tokenizer(t, pre, err)) < 0)
        return err_wrap(err, "pre_tokenizer");
    if ((rc = read_model(&t->bpe, model, err)) < 0)
        return err_wrap(err, "model");
    added = json_member(obj, "added_tokens");
    if (!is_off(added) && !cJSON_IsArray(added))
        return err_set(err, ERR_SYNTAX, "added_tokens: expected an array");
    return read_added(t, added, err);
}

int bpe_read_json(struct bpe_tokenizer *t, const char *text, size_t len, struct err *err)
{
    cJSON *obj = NULL;
    int rc = json_parse(text, len, &obj, err);

    if (rc == 0)
        rc = read_tokenizer(t, obj, err);
    else if (rc == ERR_RANGE)
        rc = err->code = ERR_SYNTAX;
    cJSON_Delete(obj);
    return rc;
}

/* One merge a line; lines that begin with #version are skipped. */
static int read_merges_txt(struct bpe *b, const char *text, size_t len, struct err *err)
{
    size_t number = 1, next;

    for (size_t at = 0; at < len; at += next, number++) {
        const char *line = text + at, *end = memchr(line, '\n', len - at);
        size_t n = end == NULL ? len - at : (size_t)(end - line);
        next = n + 1;
        if (n > 0 && line[n - 1] == '\r')
            n--;
        if (n >= 8 && memcmp(line, "#version", 8) == 0)
            continue;
        if (add_merge_text(b, line, n, err) < 0)
            return err_wrap(err, BPE_MERGES ": line %zu", number);
    }
    return 0;
}

int bpe_read_pair(struct bpe_tokenizer *t, const char *vocab, size_t n_vocab, const char *merges,
                  size_t n_merges, struct err *err)
{
    cJSON *obj = NULL;
    int rc = json_parse(vocab, n_vocab, &obj, err);

    if (rc == 0 && !cJSON_IsObject(obj))
        rc = err_set(err, ERR_SYNTAX, "expected an object");
    if (rc == 0)
        rc = add_vocab(&t->bpe, obj, err);
    cJSON_Delete(obj);
    if (rc < 0)
        return err_wrap(err, BPE_VOCAB);
    if ((rc = read_merges_txt(&t->bpe, merges, n_merges, err)) < 0 ||
        (rc = split_add_pattern(&t->split, SPLIT_GPT2, err)) < 0)
        return rc;
    uint32_t end = bpe_find(&t->bpe, END_OF_TEXT, strlen(END_OF_TEXT));
    if (end == BPE_NONE)
        return 0; /* bpe_tokenizer_finish() looks for another one */
    struct added_token token = {
        .content = xstrdup(END_OF_TEXT), .len = strlen(END_OF_TEXT), .id = end, .special = true};
    added_put(&t->added, &token);
    return 0;
}
