/*
 * The hash chain of a journal.
 *
 * A row is one line of journal.jsonl: an object in canonical JSON (base/json/json.h) with its
 * number "seq" (1, 2, ...), "hash", "event", "time" and what that event needs (line.h), then a line
 * feed. The text is at most JOURNAL_LINE_MAX bytes long: a longer row is neither written nor read.
 * Rows are appended and never changed.
 *
 * The hash of a row is SHA-256 over the hash of the row before it, as 64 hex digits (64 zeros
 * before row 1), followed by the canonical text of the row without its member "hash". Members are
 * sorted and "seq" comes after "hash", so that text is the row's with `"hash":"HEX",` cut out.
 *
 * Whether the head of a chain is the one that the daemon wrote is for others to say: a journal that
 * was cut at a line's end still chains.
 */
#ifndef STATE_JOURNAL_CHAIN_H
#define STATE_JOURNAL_CHAIN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "base/strbuf.h"

#define JOURNAL_LINE_MAX ((size_t)4 << 20) /* a [run] table is the longest thing in a row */

/* How far a journal has been read or written; all zeros before row 1. */
struct journal_chain {
    int64_t n_rows;
    struct digest head; /* hash of the last row */
};

/* A line, as text and parsed. */
struct journal_line {
    const char *text; /* without the line feed; need not end in NUL */
    size_t len;
    const cJSON *json;
};

/* What a line claims, and what was found. */
struct journal_link {
    int64_t seq;      /* as the line has it */
    const char *said; /* its "hash"; points into the line's JSON */
    struct digest hash;
    bool is_canonical; /* the text is, byte for byte, the one that the daemon would write */
};

enum journal_fault {
    JOURNAL_HOLDS,
    JOURNAL_MEMBER, /* "seq" or "hash" is missing or no number, no text: err says which */
    JOURNAL_NUMBER, /* not the number after the last row's */
    JOURNAL_HASH    /* does not follow from the row before and this one; also: no form of a row */
};

/* Adds a line to the chain if it follows. Everything that is read from a line is in `link`, also on
 * a fault; then the chain is as before. `scratch` is overwritten. The line may be in another form
 * than the canonical one, its hash is that of the canonical text. */
enum journal_fault journal_extend(struct journal_chain *chain, const struct journal_line *line,
                                  struct journal_link *link, struct strbuf *scratch,
                                  struct err *err);

/* Whether the line that says `hash` (64 hex digits) follows a row of hash `prev`: as
 * journal_extend(), at a tenth of its cost where the line has the form in which it was written.
 * `scratch` is overwritten. */
bool journal_follows(const struct digest *prev, const char *text, size_t len, const char *hash,
                     struct strbuf *scratch);

/* Numbers `row` and appends it to `out` with its hash, without a line feed; the chain then ends
 * with it. `row` has neither "seq" nor "hash" and is used up, not freed. On error (ERR_RANGE: the
 * row is too long) the chain is as before. */
int journal_seal(struct journal_chain *chain, cJSON *row, struct strbuf *out,
                 struct err *err) MUST_CHECK;

#endif
