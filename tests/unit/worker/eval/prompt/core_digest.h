/*
 * Digests of everything that a task of CORE sends to a model, to be held against those that
 * tests/oracle/core_reference.py takes of its own: texts and token ids of every request in order.
 */
#ifndef TESTS_UNIT_WORKER_EVAL_PROMPT_CORE_DIGEST_H
#define TESTS_UNIT_WORKER_EVAL_PROMPT_CORE_DIGEST_H

#include "base/err.h"
#include "base/files/digest.h"
#include "worker/data/tokenizer/tokenizer.h"

#define CORE_DIGEST_FIRST 40

struct core_digests {
    size_t items;
    size_t requests;
    size_t cut;                /* requests that lost their left end */
    struct digest texts;       /* examples, context and answer, each terminated */
    struct digest ids;         /* number of ids, index of the answer's first, ids: uint32 each */
    struct digest first_texts; /* the same of the first CORE_DIGEST_FIRST items */
    struct digest first_ids;
};

/* How much is looked at; what is not stays out of the digests. */
enum core_depth {
    CORE_DEPTH_FIRST, /* the first items */
    CORE_DEPTH_TEXTS, /* and all texts */
    CORE_DEPTH_ALL,   /* and all ids */
};

struct core_look {
    const char *task;   /* a shipped one */
    const char *folder; /* that has its file */
    const struct tokenizer *tok;
    enum core_depth depth;
};

/* ERR_NOT_FOUND: the file is not there. */
int core_digest(const struct core_look *look, struct core_digests *out, struct err *err) MUST_CHECK;

#endif
