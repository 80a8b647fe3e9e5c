/*
 * A shard is built in memory and written atomically; it is read through a mapping. Reading trusts
 * nothing: the header's sizes must add up to the file's, then the digest of everything behind the
 * header must hold, and only then are documents and tokens read, each checked again. Numbers are
 * read byte by byte, so alignment and byte order of the machine do not matter.
 */
#include "worker/data/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/strbuf.h"

#define DOCUMENT_SIZE 24u

static void put_le(unsigned char *at, uint64_t v, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get_le(const unsigned char *at, size_t size)
{
    uint64_t v = 0;

    for (size_t i = size; i-- > 0;)
        v = v << 8 | at[i];
    return v;
}

static unsigned token_size(uint32_t vocab)
{
    return vocab <= 65536 ? 2 : 4;
}

/* Document entries, then tokens of `size` bytes each. */
static void put_payload(const struct corpus *c, unsigned size, struct strbuf *out)
{
    unsigned char cell[DOCUMENT_SIZE];

    strbuf_reserve(out, c->n_documents * DOCUMENT_SIZE + c->n_tokens * size);
    for (size_t i = 0; i < c->n_documents; i++) {
        put_le(cell, c->documents[i].n_tokens, 8);
        put_le(cell + 8, c->documents[i].n_bytes, 8);
        put_le(cell + 16, c->documents[i].hash, 8);
        strbuf_add(out, cell, DOCUMENT_SIZE);
    }
    for (size_t i = 0; i < c->n_tokens; i++) {
        put_le(cell, c->tokens[i], size);
        strbuf_add(out, cell, size);
    }
}

int shard_write(const char *path, const struct corpus *c, const struct tokenizer *tok,
                const char *source, struct err *err)
{
    unsigned char header[SHARD_HEADER_SIZE] = {0};
    struct strbuf out = STRBUF_INIT;
    uint32_t vocab = tokenizer_vocab(tok);
    unsigned size = token_size(vocab);
    struct digest tok_digest = tokenizer_digest(tok);
    size_t source_len = strlen(source);

    if (source_len > SHARD_SOURCE_MAX)
        return err_set(err, ERR_RANGE, "source name over %u bytes: %.60s", SHARD_SOURCE_MAX,
                       source);
    strbuf_add(&out, header, sizeof(header));
    put_payload(c, size, &out);
    struct digest payload = digest_bytes(out.buf + sizeof(header), out.len - sizeof(header));
    memcpy(header, SHARD_MAGIC, 8);
    put_le(header + 8, SHARD_VERSION, 4);
    put_le(header + 12, size, 4);
    put_le(header + 16, c->n_tokens, 8);
    put_le(header + 24, c->n_documents, 8);
    put_le(header + 32, c->n_bytes, 8);
    put_le(header + 40, vocab, 4);
    memcpy(header + 48, tok_digest.bytes, 32);
    memcpy(header + 80, payload.bytes, 32);
    memcpy(header + 112, source, source_len);
    memcpy(out.buf, header, sizeof(header));
    int rc = file_write_atomic(path, out.buf, out.len, 0644, err);
    strbuf_release(&out);
    return rc;
}

/* Reads the header of a shard; false for what is not one. */
static bool read_header(const char *path, unsigned char h[SHARD_HEADER_SIZE], struct stat *st)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    const ssize_t n = read(fd, h, SHARD_HEADER_SIZE);
    const bool sized = fstat(fd, st) == 0;
    (void)close(fd);
    return n == (ssize_t)SHARD_HEADER_SIZE && sized && memcmp(h, SHARD_MAGIC, 8) == 0;
}

bool shard_count(const char *path, double *n_tokens)
{
    unsigned char h[SHARD_HEADER_SIZE];
    struct stat st;

    if (!read_header(path, h, &st))
        return false;
    *n_tokens = fmin((double)get_le(h + 16, 8), (double)st.st_size / 2.0);
    return true;
}

/* A mapped shard whose header has been checked against the file's size and payload. */
struct shard_view {
    const unsigned char *map;
    size_t size;
    unsigned token_size;
    uint64_t n_tokens;
    uint64_t n_documents;
    uint32_t vocab;
};

static int refuse_tokenizer(const unsigned char *stored, const struct digest *asked,
                            struct err *err)
{
    char was[DIGEST_HEX_SIZE], is[DIGEST_HEX_SIZE];
    struct digest packed;

    memcpy(packed.bytes, stored, sizeof(packed.bytes));
    digest_hex(&packed, was);
    digest_hex(asked, is);
    return err_set(err, ERR_CORRUPT,
                   "packed with another tokenizer: its digest is %.12s, not %.12s", was, is);
}

/* Header, tokenizer, sizes and digest. */
static int view_check(struct shard_view *v, const struct tokenizer *tok, struct err *err)
{
    const unsigned char *h = v->map;
    struct digest stored;
    struct digest tok_digest = tokenizer_digest(tok);

    if (v->size < SHARD_HEADER_SIZE || memcmp(h, SHARD_MAGIC, 8) != 0)
        return err_set(err, ERR_CORRUPT, "not a shard");
    if (get_le(h + 8, 4) != SHARD_VERSION)
        return err_set(err, ERR_VERSION, "shard version %llu, expected %u",
                       (unsigned long long)get_le(h + 8, 4), SHARD_VERSION);
    v->token_size = (unsigned)get_le(h + 12, 4);
    v->n_tokens = get_le(h + 16, 8);
    v->n_documents = get_le(h + 24, 8);
    v->vocab = (uint32_t)get_le(h + 40, 4);
    if (memcmp(h + 48, tok_digest.bytes, 32) != 0)
        return refuse_tokenizer(h + 48, &tok_digest, err);
    if (v->vocab != tokenizer_vocab(tok) || v->token_size != token_size(v->vocab))
        return err_set(err, ERR_CORRUPT, "vocabulary %u with %u bytes a token", v->vocab,
                       v->token_size);
    uint64_t room = v->size - SHARD_HEADER_SIZE;
    if (v->n_documents > room / DOCUMENT_SIZE ||
        v->n_tokens > (room - v->n_documents * DOCUMENT_SIZE) / v->token_size ||
        v->n_documents * DOCUMENT_SIZE + v->n_tokens * v->token_size != room)
        return err_set(err, ERR_CORRUPT, "size does not agree with the header: torn?");
    memcpy(stored.bytes, h + 80, 32);
    struct digest found = digest_bytes(h + SHARD_HEADER_SIZE, (size_t)room);
    if (!digest_equal(&stored, &found))
        return err_set(err, ERR_CORRUPT, "digest does not hold");
    return 0;
}

/* Appends the document entries; their lengths must sum to the header's counts. */
static int view_documents(const struct shard_view *v, struct corpus *c, struct err *err)
{
    const unsigned char *at = v->map + SHARD_HEADER_SIZE;
    uint64_t sum = 0, n_bytes = 0;

    for (uint64_t i = 0; i < v->n_documents; i++, at += DOCUMENT_SIZE) {
        struct shard_document doc = {
            .n_tokens = get_le(at, 8), .n_bytes = get_le(at + 8, 8), .hash = get_le(at + 16, 8)};
        if (doc.n_tokens == 0 || doc.n_tokens > v->n_tokens - sum)
            return err_set(err, ERR_CORRUPT, "document %llu: bad length", (unsigned long long)i);
        sum += doc.n_tokens;
        n_bytes += doc.n_bytes;
        corpus_push_document(c, &doc);
    }
    if (sum != v->n_tokens || n_bytes != get_le(v->map + 32, 8))
        return err_set(err, ERR_CORRUPT, "documents do not add up");
    return 0;
}

/* Appends the tokens, each inside the vocabulary. */
static int view_tokens(const struct shard_view *v, struct corpus *c, struct err *err)
{
    const unsigned char *at = v->map + SHARD_HEADER_SIZE + (size_t)v->n_documents * DOCUMENT_SIZE;

    int rc = corpus_reserve_tokens(c, (size_t)v->n_tokens, err);
    if (rc < 0)
        return rc;
    for (uint64_t i = 0; i < v->n_tokens; i++, at += v->token_size) {
        uint32_t id = (uint32_t)get_le(at, v->token_size);
        if (id >= v->vocab)
            return err_set(err, ERR_CORRUPT, "token %u is outside the vocabulary", id);
        c->tokens[c->n_tokens + i] = id;
    }
    c->n_tokens += (size_t)v->n_tokens;
    return 0;
}

static int view_open(const char *path, struct shard_view *v, struct err *err)
{
    struct stat st;
    int rc = 0;

    *v = (struct shard_view){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, errno, "open");
    if (fstat(fd, &st) != 0)
        rc = err_set_errno(err, errno, "fstat");
    else if (st.st_size < (off_t)SHARD_HEADER_SIZE || st.st_size > SHARD_BYTES_MAX)
        rc =
            err_set(err, ERR_CORRUPT, "%lld bytes: not the size of a shard", (long long)st.st_size);
    if (rc == 0) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED) {
            rc = err_set_errno(err, errno, "mmap");
        } else {
            v->map = map;
            v->size = (size_t)st.st_size;
        }
    }
    (void)close(fd);
    return rc;
}

int shard_read(const char *path, const struct tokenizer *tok, struct corpus *c, struct err *err)
{
    struct shard_view v;
    size_t n_documents = c->n_documents;
    uint64_t n_bytes = c->n_bytes;

    int rc = view_open(path, &v, err);
    if (rc == 0 && (rc = view_check(&v, tok, err)) == 0 && (rc = view_documents(&v, c, err)) == 0)
        rc = view_tokens(&v, c, err);
    if (v.map != NULL)
        (void)munmap((void *)(uintptr_t)v.map, v.size);
    if (rc < 0) {
        c->n_documents = n_documents;
        c->n_bytes = n_bytes;
        return err_wrap(err, "%s", path);
    }
    return 0;
}

int shard_check_tokenizer(const char *path, const struct tokenizer *tok, struct err *err)
{
    const struct digest digest = tokenizer_digest(tok);
    unsigned char h[SHARD_HEADER_SIZE];
    struct stat st;

    if (!read_header(path, h, &st) || memcmp(h + 48, digest.bytes, 32) == 0)
        return 0;
    (void)refuse_tokenizer(h + 48, &digest, err);
    return err_wrap(err, "%s", path);
}
