/*
 * Verifying a receipt: everything is computed again from the records up, and the first thing that
 * does not follow is named. No daemon, no network; nothing of the folder is executed. ssh-keygen
 * and openssl, the system's own, check signatures and time stamps where there are any.
 *
 * Order: files, sums, lock and plan, amendments, names of works, what is reused, journal, records,
 * coverage, verdict, provenance and environment, apparatus and instruments, reruns, statement,
 * signatures, time stamp. So what is named first is nearest to the cause.
 */
#ifndef CTL_RECEIPT_VERIFY_VERIFY_H
#define CTL_RECEIPT_VERIFY_VERIFY_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "ctl/receipt/mismatch.h"

/* What to verify, and whom to trust. All borrowed. */
struct verify_spec {
    const char *folder;
    const char *allowed_signers; /* file, or NULL: keys are reported, and vouch for no one */
    bool must_be_allowed;        /* a lock or amendment by another key is a fault */
    const struct err *taken;     /* what was wrong with the tar that folder is of, or NULL */
    const char *ca;              /* certificates for the time stamp; NULL: it is not checked */
    unsigned depth;              /* how many receipts this one is inside of */
};

/* What could be established, in this order; each rests on those before. Signed: the lock, every
 * amendment and SHA256SUMS, each by an allowed signer. That a cell was re-executed is never among
 * them: it is what rerun files claim, and verifying executes nothing. */
enum verify_level { LEVEL_NONE, LEVEL_CONSISTENT, LEVEL_SIGNED, LEVEL_STAMPED, LEVEL_NR };

const char *verify_level_name(enum verify_level level); /* "self-consistent", ... */

/* What the scores rest on: the records alone, or items from which they were counted again. In part:
 * scores were, but not every one of a counted measure. */
enum verify_basis { BASIS_RECORDS, BASIS_ITEMS_IN_PART, BASIS_ITEMS, BASIS_NR };

/* The result, with the JSON that --json prints. */
struct verify_answer {
    struct err fault;      /* code 0: everything follows */
    bool verdict_is_early; /* verdict.json has no VERDICT_ADDED (evaluate/verdict_file.h) */
    enum verify_level level;
    bool is_unreleased; /* everything follows, and signatures that [release] requires lack */
    enum verify_basis basis;
    /* {"receipt","holds","fault":{"file","line","what","expected","found"}|null,"level",
     *  "sentence","program","root","head","records","kind","outcome","tool":{"made","verified"},
     * "counts":{...},"reruns":[{"file","cell","time","claims":LEVEL|null,"differs":[STAGE],
     *  "left_out":[STAGE]}],"rests_on":"items"|"items in part"|"records",
     *  "items":{"results","scores","others","other","without","uncounted","first_uncounted",
     *  "lines","faulty","empty","first_empty","instruments":bool,"why"}|null,
     *  "signatures":[{"key","principal","role":ROLE|null,"allowed"}],
     *  "release":{"requires":[ROLE],"missing":[ROLE],"released":bool,"why"}|null,
     *  "reused":{"program","root","receipt","cells","tasks"}|null,
     *  "established":[TEXT...],"claimed":[TEXT...],"not_shown":[TEXT...]} */
    cJSON *json;
};

/* 0, or the fault's code; *out is always valid to release. */
int receipt_verify(const struct verify_spec *spec, struct verify_answer *out) MUST_CHECK;
void verify_answer_release(struct verify_answer *out);

#endif
