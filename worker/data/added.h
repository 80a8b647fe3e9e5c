/*
 * Added tokens: words that are cut out of the text before anything else looks at it, such as
 * <|endoftext|>. As Hugging Face tokenizers do it: first those that are not "normalized" on the
 * whole text, then the others on what is left; leftmost first, of those at one place the longest.
 *
 * Owns copies of the contents. Finding changes nothing.
 */
#ifndef WORKER_DATA_ADDED_H
#define WORKER_DATA_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct added_token {
    char *content; /* not empty */
    size_t len;
    uint32_t id;
    bool lstrip;     /* takes the white space before it */
    bool rstrip;     /* and behind it */
    bool normalized; /* looked for in the second round */
    bool special;
};

struct added {
    struct added_token *tokens; /* in the order of the file */
    size_t n;
    size_t cap;
    bool first[2][256]; /* by round: the bytes that a content begins with */
};

void added_init(struct added *a);
void added_release(struct added *a);
/* Takes over token->content, a heap string. */
void added_put(struct added *a, const struct added_token *token);
const struct added_token *added_by_id(const struct added *a, uint32_t id);

/* The first token of a round (0, 1) at or after `from`, in text that is one piece so far: where it
 * begins and ends, its white space included. NULL when there is none. */
const struct added_token *added_find(const struct added *a, int round, const char *text, size_t len,
                                     size_t from, size_t bounds[2]);

#endif
