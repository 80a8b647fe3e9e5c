/*
 * pack and inspect read a source the same way, through source_read_watched(), so what inspect
 * accepts is what training would accept. Names and text come from files and are printed through
 * terminal_printf(), which escapes control characters.
 */
#include "worker/data/pack.h"

#include <errno.h>
#include <inttypes.h>

#include "base/files/file.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "worker/data/shard.h"
#include "worker/data/source.h"

#define SOURCE_NAME_AT 112 /* in a shard's header */

/* Reads everything at the path, with progress; a source without documents is an error. */
static int read_source(const char *path, const struct tokenizer *tok, struct corpus *c,
                       struct err *err)
{
    struct progress progress;

    corpus_init(c);
    progress_start(&progress, path_name(path), PROGRESS_BYTES, (double)source_bytes(path));
    int rc = source_read_watched(path, tok, &progress, c, err);
    progress_end(&progress);
    if (rc == 0 && c->n_documents == 0)
        rc = err_set(err, ERR_SYNTAX, "%s: holds no documents", path);
    return rc;
}

/* Documents, tokens and bytes, without a line end. */
static void print_counts(const struct corpus *c, FILE *out)
{
    terminal_printf(out, "%zu documents, %zu tokens, %" PRIu64 " bytes of text", c->n_documents,
                    c->n_tokens, c->n_bytes);
}

int pack_source(const char *path, const char *folder, const struct tokenizer *tok, FILE *out,
                struct err *err)
{
    const char *name = path_name(path);
    const char *dot = strrchr(name, '.');
    char *stem = xstrndup(name, dot == NULL || dot == name ? strlen(name) : (size_t)(dot - name));
    char *file = xasprintf("%s/%s%s", folder, stem, PACK_SUFFIX);
    struct corpus c;
    corpus_init(&c);
    int rc = 0;
    if (file_kind_at(file) != FILE_ABSENT)
        rc = err_set(err, ERR_EXISTS, "%s is there already", file);
    else if (strlen(stem) > SHARD_SOURCE_MAX)
        rc = err_set(err, ERR_RANGE, "%s: the name is over %u bytes", path, SHARD_SOURCE_MAX);
    else
        rc = read_source(path, tok, &c, err);
    if (rc == 0)
        rc = shard_write(file, &c, tok, stem, err);
    if (rc == 0) {
        terminal_printf(out, "%s: ", file);
        print_counts(&c, out);
        terminal_printf(out, "\n");
    }
    corpus_release(&c);
    free(file);
    free(stem);
    return rc;
}

/* What a shard's header adds to the counts; nothing for other files. */
static int print_header(const char *path, FILE *out, struct err *err)
{
    unsigned char header[SHARD_HEADER_SIZE];
    FILE *in = fopen(path, "rbe");
    if (in == NULL)
        return err_set_errno(err, errno, "open %s", path);
    const bool shard = fread(header, 1, sizeof(header), in) == sizeof(header) &&
                       memcmp(header, SHARD_MAGIC, 8) == 0;
    (void)fclose(in);
    if (!shard)
        return 0;
    struct digest payload;
    char hex[DIGEST_HEX_SIZE];
    memcpy(payload.bytes, header + 80, sizeof(payload.bytes));
    digest_hex(&payload, hex);
    terminal_printf(out, "  shard of source %.*s\n  payload sha256 %s, verified\n",
                    (int)SHARD_SOURCE_MAX, (const char *)header + SOURCE_NAME_AT, hex);
    return 0;
}

void pack_inspect_tokenizer(const struct tokenizer *tok, FILE *out)
{
    struct strbuf why = STRBUF_INIT;
    struct digest digest = tokenizer_digest(tok);
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&digest, hex);
    terminal_printf(out, "tokenizer %s (%s)\n  %u tokens, end of text %u\n  digest %s\n",
                    tokenizer_spec(tok), tokenizer_kind_name(tok), tokenizer_vocab(tok),
                    tokenizer_end_of_text(tok), hex);
    if (tokenizer_losses(tok, &why))
        terminal_printf(out, "  not lossless: %s\n", why.buf);
    else
        terminal_printf(out, "  lossless: every byte string comes back\n");
    strbuf_release(&why);
}

int pack_inspect(const char *path, const struct tokenizer *tok, FILE *out, struct err *err)
{
    struct corpus c;
    int rc = read_source(path, tok, &c, err);
    if (rc == 0)
        terminal_printf(out, "%s\n", path);
    if (rc == 0 && file_kind_at(path) == FILE_REGULAR)
        rc = print_header(path, out, err);
    if (rc == 0) {
        size_t longest = 0;
        for (size_t i = 0; i < c.n_documents; i++)
            if (c.documents[i].n_tokens > longest)
                longest = (size_t)c.documents[i].n_tokens;
        terminal_printf(out, "  ");
        print_counts(&c, out);
        terminal_printf(out, "\n  longest document %zu tokens, %.3f bytes a token\n", longest,
                        (double)c.n_bytes / (double)c.n_tokens);
    }
    corpus_release(&c);
    return rc;
}
