/*
 * Added tokens: words that are cut out of the text before anything else reads it, such as
 * <|endoftext|>. As in Hugging Face tokenizers: first those that are not "normalized" on the whole
 * text, then the others on the remaining pieces; leftmost first, of those at one place the longest.
 *
 * Owns the contents. Finding changes nothing, and does not take longer for more tokens, only for
 * more different lengths of them: files have thousands.
 */
#ifndef WORKER_DATA_TOKENIZER_ADDED_TOKENS_H
#define WORKER_DATA_TOKENIZER_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/data/tokenizer/byte_map.h"

#define ADDED_NONE UINT32_MAX

struct added_token {
    char *content; /* not empty */
    size_t len;
    uint32_t id;
    bool lstrip;     /* takes the white space before it */
    bool rstrip;     /* and after it */
    bool normalized; /* searched in the second round */
    bool special;
};

/* The different lengths of contents, the longest first. */
struct added_lengths {
    size_t *items;
    size_t n;
    size_t cap;
};

struct added {
    struct added_token *tokens; /* in the order of the file; no content twice */
    uint32_t n;
    uint32_t cap;
    struct byte_map contents; /* content -> index into tokens */
    uint32_t *by_id;          /* index into tokens, or ADDED_NONE */
    uint32_t n_ids;           /* greatest id + 1 */
    uint32_t cap_ids;
    struct added_lengths lengths[2]; /* by round */
    bool first[2][256];              /* by round: the bytes that a content begins with */
};

void added_init(struct added *a);
void added_release(struct added *a);
/* Owns token->content, a heap string, from then on. Neither content nor id may be there. */
void added_put(struct added *a, const struct added_token *token);
/* NULL when there is none. */
const struct added_token *added_by_id(const struct added *a, uint32_t id);
/* The token with exactly this content; NULL when there is none. */
const struct added_token *added_by_content(const struct added *a, const char *content, size_t len);

/* The first token of a round (0, 1) at or after `from`, in text that is one piece so far: where it
 * begins and ends, its white space included. NULL when there is none. */
const struct added_token *added_find(const struct added *a, int round, const char *text, size_t len,
                                     size_t from, size_t bounds[2]);

#endif
