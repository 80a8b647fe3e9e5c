/* Inside of prereg/reuse: the records of a receipt that is open. */
#ifndef PREREG_REUSE_REUSE_SOURCE_H
#define PREREG_REUSE_REUSE_SOURCE_H

#include "prereg/reuse/reuse.h"

/* One line of records.jsonl, which is one task. */
struct reuse_record {
    char *line;
    char end[16];       /* how it ended: "done", "blocked", ... */
    struct digest text; /* of its result.json; zero unless it is done */
    bool reused;        /* it was itself taken from another receipt */
};

/* Whether its result can be taken. */
static inline bool reuse_record_is_usable(const struct reuse_record *r)
{
    return !digest_is_zero(&r->text) && !r->reused;
}

/* Checks one file of a receipt against its SHA256SUMS, whose text is `sums`. */
int reuse_check_sum(const char *folder, const char *sums, const char *name,
                    struct err *err) MUST_CHECK;

#endif
