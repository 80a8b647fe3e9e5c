/*
 * What a kind of tokenizer is made of; for worker/data/tokenizer/tokenizer.c and the kinds
 * themselves only.
 *
 * A kind has one file, one `struct tokenizer_kind` and a row in the table of tokenizer.c. Its open
 * fills everything of the tokenizer but `kind` and `spec`, and leaves `state` NULL or owned by the
 * tokenizer also when it fails. After that nothing changes: encode and decode keep what they need
 * on their own stack or heap, so that threads may share a tokenizer.
 */
#ifndef WORKER_DATA_TOKENIZER_TOKENIZER_KIND_H
#define WORKER_DATA_TOKENIZER_TOKENIZER_KIND_H

#include <stdbool.h>

#include "worker/data/tokenizer/tokenizer.h"

struct tokenizer_kind {
    const char *name; /* for people */
    const char *file; /* its name in a folder; NULL: the spec is all there is, nothing to save */
    /* Whether spec (a word, a file, a folder) is of this kind; asked in the order of the table. */
    bool (*claims)(const char *spec);
    int (*open)(struct tokenizer *tok, struct err *err) MUST_CHECK;
    void (*release)(struct tokenizer *tok); /* of `state`; also after a failed open */
    int (*encode)(const struct tokenizer *tok, const char *text, size_t len, struct token_list *out,
                  struct err *err) MUST_CHECK;
    /* id is inside the vocabulary. */
    void (*decode)(const struct tokenizer *tok, uint32_t id, struct strbuf *out);
    /* As tokenizer_is_special(); NULL: special tokens decode to nothing. */
    bool (*is_special)(const struct tokenizer *tok, uint32_t id);
    /* As tokenizer_losses(); NULL: nothing is lost. */
    bool (*losses)(const struct tokenizer *tok, struct strbuf *out);
    /* Writes what opens as the same tokenizer. */
    int (*save)(const struct tokenizer *tok, const char *path, struct err *err) MUST_CHECK;
};

struct tokenizer {
    const struct tokenizer_kind *kind;
    char *spec;
    uint32_t vocab;
    uint32_t end_of_text;
    bool prefix_space; /* encode() puts a space before the text */
    bool begins_texts; /* tokenizer_begins_texts() */
    struct digest digest;
    void *state; /* the kind's own */
};

extern const struct tokenizer_kind tokenizer_kind_bytes;
extern const struct tokenizer_kind tokenizer_kind_bpe;
extern const struct tokenizer_kind tokenizer_kind_llama2c;

/* Room for `more` ids after list->n. */
void token_list_reserve(struct token_list *list, size_t more);

#endif
