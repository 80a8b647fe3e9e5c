/*
 * Ties the parts of a byte-level BPE tokenizer together: added tokens are cut out in two rounds,
 * the text between them is split into pretokens, and each pretoken goes through BPE. A file names
 * no end-of-text token, so it is found by the spellings that are in use; a tokenizer without one is
 * refused, because documents could not be separated.
 */
#include "worker/data/tokenizer/tokenizer_bpe.h"

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "worker/data/tokenizer/tokenizer_kind.h"

void bpe_tokenizer_init(struct bpe_tokenizer *t)
{
    *t = (struct bpe_tokenizer){.end_of_text = BPE_NONE};
    bpe_init(&t->bpe);
    added_init(&t->added);
    split_init(&t->split);
}

void bpe_tokenizer_release(struct bpe_tokenizer *t)
{
    bpe_release(&t->bpe);
    added_release(&t->added);
    split_release(&t->split);
}

/* The id of a token by its text, added or not. */
static uint32_t find_token(const struct bpe_tokenizer *t, const char *text)
{
    const struct added_token *added = added_by_content(&t->added, text, strlen(text));

    return added != NULL ? added->id : bpe_find(&t->bpe, text, strlen(text));
}

int bpe_tokenizer_finish(struct bpe_tokenizer *t, struct err *err)
{
    static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>", "</s>",
                                       "<eos>",         "<EOS>",           "[EOS]"};

    t->vocab = t->added.n_ids > t->bpe.n_ids ? t->added.n_ids : t->bpe.n_ids;
    for (size_t i = 0; t->end_of_text == BPE_NONE && i < ARRAY_LEN(ends); i++)
        t->end_of_text = find_token(t, ends[i]);
    if (t->end_of_text == BPE_NONE)
        return err_set(err, ERR_REFUSED,
                       "no end-of-text token (<|endoftext|>, <|end_of_text|>, </s>, <eos>, <EOS>, "
                       "[EOS])");
    bpe_finish(&t->bpe);
    return 0;
}

/* One encoding under way. */
struct encoder {
    struct split_sink sink; /* first: the sink is the encoder */
    const struct bpe_tokenizer *t;
    struct split_scratch scratch;
    struct token_list *out;
};

static int encode_piece(struct split_sink *sink, const char *text, size_t len, struct err *err)
{
    struct encoder *e = (struct encoder *)sink;

    return bpe_encode(&e->t->bpe, text, len, e->out, err);
}

/* Text without added tokens. */
static int encode_text(struct encoder *e, const char *text, size_t len, struct err *err)
{
    struct strbuf spaced = STRBUF_INIT;

    if (len == 0)
        return 0;
    if (!e->t->prefix_space || text[0] == ' ')
        return split_run(&e->t->split, &e->scratch, text, len, &e->sink, err);
    strbuf_reserve(&spaced, len + 1);
    strbuf_addc(&spaced, ' ');
    strbuf_add(&spaced, text, len);
    int rc = split_run(&e->t->split, &e->scratch, spaced.buf, spaced.len, &e->sink, err);
    strbuf_release(&spaced);
    return rc;
}

/* Cuts the added tokens of this round out; the rest goes through the next round, then to BPE. */
static int encode_round(struct encoder *e, int round, const char *text, size_t len, struct err *err)
{
    size_t at = 0, bounds[2] = {0, 0};
    int rc = 0;

    if (round == 2)
        return encode_text(e, text, len, err);
    while (rc == 0 && at < len) {
        const struct added_token *t = added_find(&e->t->added, round, text, len, at, bounds);
        if (t == NULL)
            return encode_round(e, round + 1, text + at, len - at, err);
        rc = encode_round(e, round + 1, text + at, bounds[0] - at, err);
        if (rc == 0)
            token_list_add(e->out, t->id);
        at = bounds[1];
    }
    return rc;
}

int bpe_tokenizer_encode(const struct bpe_tokenizer *t, const char *text, size_t len,
                         struct token_list *out, struct err *err)
{
    struct encoder e = {.sink = {.piece = encode_piece}, .t = t, .out = out};
    size_t before = out->n;

    int rc = encode_round(&e, 0, text, len, err);
    if (rc < 0)
        out->n = before;
    split_scratch_release(&e.scratch);
    return rc;
}

void bpe_tokenizer_decode(const struct bpe_tokenizer *t, uint32_t id, struct strbuf *out)
{
    const struct added_token *added = added_by_id(&t->added, id);

    if (added != NULL)
        strbuf_add(out, added->content, added->len);
    else if (id < t->bpe.n_ids)
        strbuf_add(out, t->bpe.bytes.buf + t->bpe.spans[id].at, t->bpe.spans[id].len);
}

bool bpe_tokenizer_losses(const struct bpe_tokenizer *t, struct strbuf *out)
{
    unsigned missing = bpe_missing_bytes(&t->bpe);
    bool strips = false;
    size_t start = out->len;

    for (uint32_t i = 0; i < t->added.n; i++)
        strips = strips || t->added.tokens[i].lstrip || t->added.tokens[i].rstrip;
    if (missing > 0)
        strbuf_addf(out, "%u of 256 bytes are not in the vocabulary", missing);
    if (t->prefix_space)
        strbuf_addf(out, "%sa blank is put before the text", out->len == start ? "" : "; ");
    if (strips)
        strbuf_addf(out, "%sadded tokens take white space with them",
                    out->len == start ? "" : "; ");
    return out->len > start;
}

static bool has_file(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    bool there = file_kind_at(path) == FILE_REGULAR;

    free(path);
    return there;
}

/* Whether the file is JSON from its first character on. */
static bool is_json(const char *path)
{
    FILE *f = fopen(path, "rbe");
    int c = f == NULL ? EOF : getc(f);

    while (c == ' ' || (c >= '\t' && c <= '\r'))
        c = getc(f);
    if (f != NULL)
        (void)fclose(f);
    return c == '{';
}

static bool kind_claims(const char *spec)
{
    switch (file_kind_at(spec)) {
    case FILE_REGULAR: return is_json(spec);
    case FILE_FOLDER: return has_file(spec, BPE_JSON) || has_file(spec, BPE_VOCAB);
    case FILE_ABSENT:
    case FILE_OTHER: break;
    }
    return false;
}

static int read_json(struct bpe_tokenizer *t, const char *path, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_read(path, BPE_FILE_MAX, &text, err);

    if (rc == 0)
        rc = bpe_read_json(t, text.buf, text.len, err);
    strbuf_release(&text);
    return rc;
}

static int read_pair(struct bpe_tokenizer *t, const char *folder, struct err *err)
{
    struct strbuf vocab = STRBUF_INIT, merges = STRBUF_INIT;
    char *vocab_path = path_join(folder, BPE_VOCAB), *merges_path = path_join(folder, BPE_MERGES);
    int rc = file_read(vocab_path, BPE_FILE_MAX, &vocab, err);

    if (rc == 0 && (rc = file_read(merges_path, BPE_FILE_MAX, &merges, err)) == 0)
        rc = bpe_read_pair(t, vocab.buf, vocab.len, merges.buf, merges.len, err);
    strbuf_release(&vocab);
    strbuf_release(&merges);
    free(vocab_path);
    free(merges_path);
    return rc;
}

static int read_spec(struct bpe_tokenizer *t, const char *spec, struct err *err)
{
    if (file_kind_at(spec) == FILE_REGULAR)
        return read_json(t, spec, err);
    if (!has_file(spec, BPE_JSON))
        return read_pair(t, spec, err);
    char *path = path_join(spec, BPE_JSON);
    int rc = read_json(t, path, err);
    free(path);
    return rc;
}

static int kind_open(struct tokenizer *tok, struct err *err)
{
    struct bpe_tokenizer *t = xmalloc(sizeof(*t));

    bpe_tokenizer_init(t);
    tok->state = t;
    int rc = read_spec(t, tok->spec, err);
    if (rc == 0)
        rc = bpe_tokenizer_finish(t, err);
    if (rc < 0)
        return err_wrap(err, "tokenizer %s", tok->spec);
    tok->vocab = t->vocab;
    tok->end_of_text = t->end_of_text;
    tok->prefix_space = t->prefix_space;
    tok->digest = bpe_tokenizer_digest(t);
    return 0;
}

static void kind_release(struct tokenizer *tok)
{
    bpe_tokenizer_release(tok->state);
    free(tok->state);
}

static int kind_encode(const struct tokenizer *tok, const char *text, size_t len,
                       struct token_list *out, struct err *err)
{
    return bpe_tokenizer_encode(tok->state, text, len, out, err);
}

static void kind_decode(const struct tokenizer *tok, uint32_t id, struct strbuf *out)
{
    bpe_tokenizer_decode(tok->state, id, out);
}

static bool kind_is_special(const struct tokenizer *tok, uint32_t id)
{
    const struct bpe_tokenizer *t = tok->state;
    const struct added_token *added = added_by_id(&t->added, id);

    return added != NULL && added->special;
}

static bool kind_losses(const struct tokenizer *tok, struct strbuf *out)
{
    return bpe_tokenizer_losses(tok->state, out);
}

static int kind_save(const struct tokenizer *tok, const char *path, struct err *err)
{
    cJSON *json = bpe_write_json(tok->state);
    int rc = json_write_file(path, json, 0644, err);

    cJSON_Delete(json);
    return rc;
}

const struct tokenizer_kind tokenizer_kind_bpe = {
    .name = "byte-level BPE",
    .file = BPE_JSON,
    .claims = kind_claims,
    .open = kind_open,
    .release = kind_release,
    .encode = kind_encode,
    .decode = kind_decode,
    .is_special = kind_is_special,
    .losses = kind_losses,
    .save = kind_save,
};
