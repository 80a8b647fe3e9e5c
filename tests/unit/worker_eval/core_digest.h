/*
 * Digests of everything that a task of CORE sends to a model, to be held against those that
 * tests/oracle/core_reference.py takes of its own: texts and token ids of every request in order.
 */
#ifndef TESTS_UNIT_WORKER_EVAL_CORE_DIGEST_H
#define TESTS_UNIT_WORKER_EVAL_CORE_DIGEST_H

#include "base/digest.h"
#include "base/err.h"
#include "worker/data/tokenizer.h"

#define CORE_DIGEST_FIRST 40

struct core_digests {
    size_t items;
    size_t requests;
    size_t cut;              /* requests that lost their left end */
    struct digest texts;     /* examples, context and answer, each terminated */
    struct digest ids;       /* number of ids, index of the answer's first, ids: uint32 each */
    struct digest first_ids; /* the same of the first CORE_DIGEST_FIRST items */
};

/* Of the shipped task `task` with its file under `folder`. all_ids false: `ids` stays zero, and
 * only the first items are tokenised. ERR_NOT_FOUND: the file is not there. */
int core_digest(const char *task, const char *folder, const struct tokenizer *tok, bool all_ids,
                struct core_digests *out, struct err *err) MUST_CHECK;

#endif
