/* STATE/journal.heads: number and hash of the last row of each journal (invariant 1). */
#ifndef STATE_STORE_HEADS_H
#define STATE_STORE_HEADS_H

#include "base/err.h"
#include "base/files/digest.h"

#define HEADS_FILE "journal.heads"

struct journal_head {
    char id[448]; /* of the program; "" where the line cannot be read */
    int64_t rows;
    struct digest head;
    bool unverified; /* its history was found wanting once: for good */
};

struct heads {
    struct journal_head *items;
    size_t n;
    size_t cap;
};

struct store;

/* An absent file has none. */
int heads_read(const char *dir, struct heads *out, struct err *err) MUST_CHECK;
void heads_release(struct heads *h);
const struct journal_head *heads_find(const struct heads *h, const char *id);

/* The owner's: opened with the store, noted after each commit. */
int heads_open(struct store *store, struct err *err) MUST_CHECK;
void heads_note(struct store *store, const char *id, int64_t rows, const struct digest *head,
                bool unverified);
void heads_close(struct store *store);

/* Whether the row that was noted is in the database's journal. */
int heads_compare(struct store *store, uint32_t program, const struct journal_head *h, bool *same,
                  struct err *err) MUST_CHECK;

#endif
