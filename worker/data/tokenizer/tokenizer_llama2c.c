/*
 * Kind "llama2c": the tokenizer.bin of karpathy/llama2.c, which is SentencePiece's BPE by scores.
 *
 * File: int32 longest piece; then per id float32 score, int32 length, bytes (little-endian), to the
 * end of the file. Ids 0, 1, 2 are unknown, begin and end of text; 3 .. 258 are the bytes "<0x00>"
 * .. "<0xFF>". Text gets a space in front, is cut into characters (those without a piece into their
 * bytes), and then the neighbours whose joint piece has the greatest score, the first of equals,
 * are joined until none can be, as run.c's encode() does. Documents are separated by id 1.
 */
#include <assert.h>
#include <math.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "worker/data/tokenizer/tokenizer_kind.h"

#define FILE_MAX   (64u << 20)
#define PIECE_MAX  4096
#define ID_BEGIN   1u
#define ID_BYTES   3u
#define PIECES_MIN (ID_BYTES + 256)
#define CHARACTER  4 /* bytes of a character, at most */
#define NO_SYMBOL  UINT32_MAX

struct piece {
    const char *text; /* into the file */
    uint32_t len;
    float score;
};

struct vocabulary {
    struct strbuf file;
    struct piece *pieces;
    size_t n;
    uint32_t *slots; /* open addressing over the pieces' texts: id + 1, 0 free */
    size_t n_slots;  /* a power of two, at least 2 n */
};

/* A character or what it was joined to; a list over the text. */
struct symbol {
    uint32_t id;
    uint32_t before; /* NO_SYMBOL at the ends */
    uint32_t after;
};

/* A join that was possible when it was put into the heap. */
struct join {
    float score;
    uint32_t left; /* symbols */
    uint32_t left_id;
    uint32_t right_id;
    uint32_t id; /* of the joint piece */
};

struct joins {
    struct join *items;
    size_t n;
    size_t cap;
};

/* By the name: the file has no magic. */
static bool llama2c_claims(const char *spec)
{
    size_t n = strlen(spec);

    return n > 4 && strcmp(spec + n - 4, ".bin") == 0;
}

/* FNV-1a over two texts, one after the other. */
static uint64_t hash_texts(const struct piece *a, const struct piece *b)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (uint32_t i = 0; i < a->len; i++)
        h = (h ^ (unsigned char)a->text[i]) * 0x100000001b3u;
    for (uint32_t i = 0; b != NULL && i < b->len; i++)
        h = (h ^ (unsigned char)b->text[i]) * 0x100000001b3u;
    return h;
}

static bool is_joint(const struct piece *p, const struct piece *a, const struct piece *b)
{
    size_t n_b = b == NULL ? 0 : b->len;

    return p->len == a->len + n_b && memcmp(p->text, a->text, a->len) == 0 &&
           (n_b == 0 || memcmp(p->text + a->len, b->text, n_b) == 0);
}

/* The slot of the piece that is a and then b (which may be NULL), or the free one it would take. */
static size_t find_slot(const struct vocabulary *v, const struct piece *a, const struct piece *b)
{
    size_t at = (size_t)hash_texts(a, b) & (v->n_slots - 1);

    while (v->slots[at] != 0 && !is_joint(&v->pieces[v->slots[at] - 1], a, b))
        at = (at + 1) & (v->n_slots - 1);
    return at;
}

/* NO_SYMBOL when there is no such piece. */
static uint32_t find_piece(const struct vocabulary *v, const struct piece *a, const struct piece *b)
{
    uint32_t found = v->slots[find_slot(v, a, b)];

    return found == 0 ? NO_SYMBOL : found - 1;
}

/* Score and text of every piece, to the end of the file. */
static int read_pieces(struct vocabulary *v, struct err *err)
{
    size_t at = sizeof(int32_t), cap = 0;

    while (at < v->file.len) {
        float score = 0.0f;
        int32_t len = 0;
        if (v->file.len - at < sizeof(score) + sizeof(len))
            return err_set(err, ERR_CORRUPT, "piece %zu is torn", v->n);
        memcpy(&score, v->file.buf + at, sizeof(score));
        memcpy(&len, v->file.buf + at + sizeof(score), sizeof(len));
        at += sizeof(score) + sizeof(len);
        if (len < 1 || len > PIECE_MAX || (size_t)len > v->file.len - at || !isfinite(score))
            return err_set(err, ERR_CORRUPT, "piece %zu: %d bytes, score %g", v->n, len,
                           (double)score);
        ARRAY_GROW(v->pieces, v->n, cap);
        v->pieces[v->n++] =
            (struct piece){.text = v->file.buf + at, .len = (uint32_t)len, .score = score};
        at += (size_t)len;
    }
    return v->n >= PIECES_MIN
               ? 0
               : err_set(err, ERR_CORRUPT, "%zu pieces, expected at least %u", v->n, PIECES_MIN);
}

/* The bytes must be where encoding expects them. */
static int check_bytes(const struct vocabulary *v, struct err *err)
{
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        const struct piece *p = &v->pieces[ID_BYTES + b];
        (void)snprintf(name, sizeof(name), "<0x%02X>", b);
        if (p->len != 6 || memcmp(p->text, name, 6) != 0)
            return err_set(err, ERR_CORRUPT, "piece %u is not %s", ID_BYTES + b, name);
    }
    return 0;
}

/* Of two pieces with the same text the first counts. The special ones and the bytes' names are not
 * there to be found in a text. */
static void index_pieces(struct vocabulary *v)
{
    v->n_slots = 1024;
    while (v->n_slots < 2 * v->n)
        v->n_slots *= 2;
    v->slots = xcalloc(v->n_slots, sizeof(*v->slots));
    for (size_t i = PIECES_MIN; i < v->n; i++) {
        size_t slot = find_slot(v, &v->pieces[i], NULL);
        if (v->slots[slot] == 0)
            v->slots[slot] = (uint32_t)i + 1;
    }
}

static int llama2c_open(struct tokenizer *tok, struct err *err)
{
    struct vocabulary *v = xcalloc(1, sizeof(*v));

    strbuf_init(&v->file);
    tok->state = v;
    int rc = file_read(tok->spec, FILE_MAX, &v->file, err);
    if (rc == 0 && (rc = read_pieces(v, err)) == 0)
        rc = check_bytes(v, err);
    if (rc < 0)
        return err_wrap(err, "tokenizer %s", tok->spec);
    index_pieces(v);
    tok->vocab = (uint32_t)v->n;
    tok->end_of_text = ID_BEGIN;
    tok->digest = digest_bytes(v->file.buf, v->file.len);
    tok->prefix_space = true;
    tok->begins_texts = true;
    return 0;
}

static void llama2c_release(struct tokenizer *tok)
{
    struct vocabulary *v = tok->state;

    if (v == NULL)
        return;
    strbuf_release(&v->file);
    free(v->pieces);
    free(v->slots);
    free(v);
    tok->state = NULL;
}

/* Whether a comes out of the heap before b: greater score, then further left. */
static bool is_before(const struct join *a, const struct join *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static void joins_push(struct joins *h, const struct join *j)
{
    ARRAY_GROW(h->items, h->n, h->cap);
    size_t at = h->n++;
    for (; at > 0 && is_before(j, &h->items[(at - 1) / 2]); at = (at - 1) / 2)
        h->items[at] = h->items[(at - 1) / 2];
    h->items[at] = *j;
}

static struct join joins_pop(struct joins *h)
{
    struct join top = h->items[0], last = h->items[--h->n];
    size_t at = 0;

    for (size_t child = 1; child < h->n; child = 2 * at + 1) {
        if (child + 1 < h->n && is_before(&h->items[child + 1], &h->items[child]))
            child++;
        if (!is_before(&h->items[child], &last))
            break;
        h->items[at] = h->items[child];
        at = child;
    }
    h->items[at] = last;
    return top;
}

/* Notes the join of a symbol with the one after it, if there is such a piece. */
static void offer(const struct vocabulary *v, const struct symbol *symbols, uint32_t left,
                  struct joins *heap)
{
    if (left == NO_SYMBOL || symbols[left].after == NO_SYMBOL)
        return;
    uint32_t a = symbols[left].id, b = symbols[symbols[left].after].id;
    uint32_t id = find_piece(v, &v->pieces[a], &v->pieces[b]);
    if (id == NO_SYMBOL)
        return;
    struct join j = {
        .score = v->pieces[id].score, .left = left, .left_id = a, .right_id = b, .id = id};
    joins_push(heap, &j);
}

/* Joins the best pair until no candidate is left; stale ones are skipped. */
static void join_all(const struct vocabulary *v, struct symbol *symbols, struct joins *heap)
{
    while (heap->n > 0) {
        struct join j = joins_pop(heap);
        struct symbol *left = &symbols[j.left];
        /* Either symbol may have been joined to another since. */
        if (left->id != j.left_id || left->after == NO_SYMBOL ||
            symbols[left->after].id != j.right_id)
            continue;
        struct symbol *right = &symbols[left->after];
        left->id = j.id;
        right->id = NO_SYMBOL;
        left->after = right->after;
        if (left->after != NO_SYMBOL)
            symbols[left->after].before = j.left;
        offer(v, symbols, left->before, heap);
        offer(v, symbols, j.left, heap);
    }
}

/* Length of the character at text as run.c cuts: the bytes 10xxxxxx that follow belong to it, up to
 * four in all. */
static size_t character_length(const char *text, size_t len)
{
    size_t n = 1;

    while (n < len && n < CHARACTER && ((unsigned char)text[n] & 0xC0) == 0x80)
        n++;
    return n;
}

static void add_symbol(struct symbol *symbols, size_t *n, uint32_t id)
{
    uint32_t at = (uint32_t)*n;

    symbols[at] =
        (struct symbol){.id = id, .before = at == 0 ? NO_SYMBOL : at - 1, .after = NO_SYMBOL};
    if (at > 0)
        symbols[at - 1].after = at;
    (*n)++;
}

/* Room for len + 1 symbols. */
static size_t cut(const struct vocabulary *v, const char *text, size_t len, struct symbol *symbols)
{
    static const struct piece space = {.text = " ", .len = 1};
    size_t n = 0;
    uint32_t id = find_piece(v, &space, NULL);

    if (id != NO_SYMBOL)
        add_symbol(symbols, &n, id);
    for (size_t at = 0, step; at < len; at += step) {
        step = character_length(text + at, len - at);
        struct piece one = {.text = text + at, .len = (uint32_t)step};
        id = find_piece(v, &one, NULL);
        if (id != NO_SYMBOL)
            add_symbol(symbols, &n, id);
        for (size_t i = 0; id == NO_SYMBOL && i < step; i++)
            add_symbol(symbols, &n, ID_BYTES + (unsigned char)text[at + i]);
    }
    return n;
}

static int llama2c_encode(const struct tokenizer *tok, const char *text, size_t len,
                          struct token_list *out, struct err *err)
{
    const struct vocabulary *v = tok->state;
    struct joins heap = {0};

    if (len == 0)
        return 0;
    if (len >= NO_SYMBOL - 1)
        return err_set(err, ERR_RANGE, "a text of %zu bytes", len);
    struct symbol *symbols = xcalloc(len + 1, sizeof(*symbols));
    size_t n = cut(v, text, len, symbols);
    for (size_t i = 0; i + 1 < n; i++)
        offer(v, symbols, (uint32_t)i, &heap);
    join_all(v, symbols, &heap);
    token_list_reserve(out, n);
    for (size_t i = 0; i < n; i++)
        if (symbols[i].id != NO_SYMBOL)
            out->ids[out->n++] = symbols[i].id;
    free(heap.items);
    free(symbols);
    return 0;
}

static void llama2c_decode(const struct tokenizer *tok, uint32_t id, struct strbuf *out)
{
    const struct vocabulary *v = tok->state;

    if (id < ID_BYTES)
        return;
    if (id < PIECES_MIN)
        strbuf_addc(out, (char)(unsigned char)(id - ID_BYTES));
    else
        strbuf_add(out, v->pieces[id].text, v->pieces[id].len);
}

static bool llama2c_losses(const struct tokenizer *tok, struct strbuf *out)
{
    (void)tok;
    strbuf_adds(out, "a blank is put before the text");
    return true;
}

static int llama2c_save(const struct tokenizer *tok, const char *path, struct err *err)
{
    const struct vocabulary *v = tok->state;

    return file_write_atomic(path, v->file.buf, v->file.len, 0644, err);
}

const struct tokenizer_kind tokenizer_kind_llama2c = {
    .name = "llama2.c",
    .file = TOKENIZER_FILE_LLAMA2C,
    .claims = llama2c_claims,
    .open = llama2c_open,
    .release = llama2c_release,
    .save = llama2c_save,
    .encode = llama2c_encode,
    .decode = llama2c_decode,
    .losses = llama2c_losses,
};
