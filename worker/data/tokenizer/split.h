/*
 * Pretokenisation: text into the pieces that BPE works on, by a chain of split patterns, each
 * applied to the pieces of the one before. Each match is a piece, and so is the text between two
 * matches (the behaviour "Isolated" of Hugging Face tokenizers).
 *
 * Patterns are in the dialect of that library (Oniguruma's), of which split_add_pattern() takes the
 * part that PCRE2 reads likewise once it is translated, and refuses the rest. GPT-2's own pattern
 * goes through a scanner for ASCII, and through PCRE2 wherever another character is involved.
 *
 * Bytes that are not UTF-8: each run of them is a piece of its own, and cuts the text.
 * Immutable once built; a caller brings its own split_scratch.
 */
#ifndef WORKER_DATA_TOKENIZER_SPLIT_H
#define WORKER_DATA_TOKENIZER_SPLIT_H

#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

#define SPLIT_GPT2                                                                                 \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define SPLIT_STAGES_MAX 8

struct split_stage;

struct split {
    struct split_stage *stages[SPLIT_STAGES_MAX];
    size_t n_stages;
};

void split_init(struct split *s);
void split_release(struct split *s);

/* Adds a stage. ERR_REFUSED: the pattern uses something that PCRE2 may read otherwise, or matches
 * the empty string; ERR_SYNTAX: no pattern at all. */
int split_add_pattern(struct split *s, const char *pattern, struct err *err) MUST_CHECK;
/* The pattern of a stage as given. */
const char *split_pattern(const struct split *s, size_t stage);
/* Takes GPT-2's stage through PCRE2 always, so that tests can compare the scanner with it. */
void split_disable_scanner(struct split *s);

/* What a thread needs while it splits. */
struct split_scratch {
    void *match; /* made when first needed */
};

void split_scratch_release(struct split_scratch *scratch);

/* Called for every piece, in order. */
struct split_sink {
    int (*piece)(struct split_sink *sink, const char *text, size_t len, struct err *err);
};

/* The pieces of text, none empty, together the text. Fails when the sink does, or when a pattern
 * gives up (ERR_RANGE). */
int split_run(const struct split *s, struct split_scratch *scratch, const char *text, size_t len,
              struct split_sink *sink, struct err *err) MUST_CHECK;

/* The pattern in PCRE2's words; split_add_pattern() does this first. Appends to out. */
int split_translate(const char *pattern, struct strbuf *out, struct err *err) MUST_CHECK;

/* The first piece of text under GPT-2's pattern (SPLIT_GPT2) as far as ASCII decides it; for
 * split.c. */

/* Bytes of the first piece; 0 when a character outside ASCII may decide. len > 0. */
size_t split_gpt2_piece(const char *text, size_t len);

#endif
