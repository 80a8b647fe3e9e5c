/*
 * Two phases, each with its own progress: read all sources and count distinct pretokens, then
 * merge. Only the counts stay in memory, not the text. Shards are refused (the sink has no shard
 * function), since they hold ids of another vocabulary.
 */
#include "worker/data/vocabulary.h"

#include <inttypes.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "worker/data/source.h"
#include "worker/data/tokenizer/bpe_train.h"

/* Counts the pretokens of documents as they come. */
struct count_sink {
    struct source_sink sink; /* first */
    struct progress progress;
    struct split split;
    struct split_scratch scratch;
    struct byte_map counts;
    uint64_t n_documents;
    uint64_t n_bytes;
};

static int count_document(struct source_sink *sink, const char *text, size_t len, struct err *err)
{
    struct count_sink *s = (struct count_sink *)sink;

    s->n_documents++;
    s->n_bytes += len;
    progress_set(&s->progress, (double)sink->n_read);
    return bpe_count_document(&s->counts, &s->split, &s->scratch, text, len, err);
}

static int count_sources(struct count_sink *s, char *const *paths, struct err *err)
{
    double total = 0.0;
    int rc = split_add_pattern(&s->split, SPLIT_GPT2, err);

    for (size_t i = 0; paths[i] != NULL; i++)
        total += (double)source_bytes(paths[i]);
    progress_start(&s->progress, "reading", PROGRESS_BYTES, total);
    for (size_t i = 0; rc == 0 && paths[i] != NULL; i++)
        rc = source_visit(paths[i], &s->sink, err);
    progress_end(&s->progress);
    if (rc == 0 && s->n_documents == 0)
        rc = err_set(err, ERR_SYNTAX, "%s: holds no documents", paths[0]);
    return rc;
}

/* The summary on standard output. */
static void say(const struct count_sink *s, const struct bpe_tokenizer *t, uint32_t wanted,
                const char *file, FILE *out)
{
    struct digest digest = bpe_tokenizer_digest(t);
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&digest, hex);
    terminal_printf(out,
                    "%s: %u tokens from %" PRIu64 " documents, %" PRIu64
                    " bytes of text, %u different pretokens\n  digest %s\n",
                    file, t->vocab, s->n_documents, s->n_bytes, s->counts.n, hex);
    if (t->vocab < wanted)
        terminal_printf(out, "  no more of the %u: no pair comes often enough any more\n", wanted);
}

static int train(struct count_sink *s, struct bpe_tokenizer *t, uint32_t vocab, uint32_t min_count,
                 const char *file, struct err *err)
{
    progress_start(&s->progress, "merging", PROGRESS_THINGS, vocab);
    int rc = bpe_train(&s->counts, vocab, min_count, &s->progress, t, err);
    progress_end(&s->progress);
    if (rc < 0)
        return rc;
    cJSON *json = bpe_write_json(t);
    rc = json_write_file(file, json, 0644, err);
    cJSON_Delete(json);
    return rc;
}

int vocabulary_train(char *const *paths, uint32_t vocab, uint32_t min_count, const char *file,
                     FILE *out, struct err *err)
{
    struct count_sink s = {.sink = {.document = count_document}};
    struct bpe_tokenizer t;

    if (file_kind_at(file) != FILE_ABSENT)
        return err_set(err, ERR_EXISTS, "%s is there already", file);
    byte_map_init(&s.counts);
    split_init(&s.split);
    bpe_tokenizer_init(&t);
    int rc = count_sources(&s, paths, err);
    if (rc == 0)
        rc = train(&s, &t, vocab, min_count, file, err);
    if (rc == 0)
        say(&s, &t, vocab, file, out);
    bpe_tokenizer_release(&t);
    byte_map_release(&s.counts);
    split_scratch_release(&s.scratch);
    split_release(&s.split);
    return rc;
}
