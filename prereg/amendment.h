/*
 * The amendments of a program: amendments/0001.json, 0002.json, ... beside its lock
 * (docs/amendments.md describes the file).
 *
 *   {"schema":1,"number":1,"program":NAME,"root":HEX,"previous":HEX,"time":TEXT,"level":LEVEL,
 *    "reason":TEXT,"changes":[{"path":[KEY,...],"section":TEXT,"from":VALUE,"to":VALUE,
 *    "post_hoc":bool}],"known":[...]|absent,"describe":{...}|absent,"signature":{...}|null,"head":HEX}
 *
 * head = SHA-256 of the RFC 8785 text of all members but "head" and "signature"; the signature is
 * over the same text. "previous" is the head before, of the first the root. "from" is absent where
 * the member was not there before, "to" where it is not there after. Paths lead through objects
 * only, from `locked`; a list is changed as a whole. "known" has the results of apparatus checks
 * that it changes, as they were known then (amend_known.h).
 *
 * Invariants. The root is a program's identity for ever: no amendment changes it, nor what cells
 * and tasks are called by it. A chain that was read follows from the lock without a gap: every
 * number, root, previous and head was recomputed, each "from" is what stood there, so that two
 * amendments of one value are never merged, and no path is one that is sealed at its level. Whether
 * the last ones are missing cannot be seen from the files alone: the journal's `amended` rows say
 * how many there are.
 */
#ifndef PREREG_AMENDMENT_H
#define PREREG_AMENDMENT_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "prereg/access.h"
#include "prereg/lock.h"

#define AMENDMENT_SCHEMA     1
#define AMENDMENT_FOLDER     "amendments"
#define AMENDMENT_MAX        9999
#define AMENDMENT_BYTES_MAX  LOCK_BYTES_MAX
#define AMENDMENT_REASON_MAX 2000 /* bytes */

struct amendment_chain {
    cJSON **list; /* each file whole, in order */
    size_t n;
    cJSON *locked;              /* the lock's, with all of them applied */
    const cJSON *as_locked;     /* the lock's plan; the lock outlives the chain */
    char head[DIGEST_HEX_SIZE]; /* the root's when n is 0 */
};

/* An absent folder is an empty chain. ERR_LOCK names the file and what does not follow;
 * ERR_VERSION: written by a newer version. */
int amendments_read(const char *folder, const struct lock *lock, struct amendment_chain *out,
                    struct err *err) MUST_CHECK;
void amendments_release(struct amendment_chain *chain); /* of a failed read, too */

/* The lock of a program's folder (grid.toml.lock) as its amendments/ amend it: locked, plan, data,
 * files and solved are the present ones, describe where an amendment asked the workers anew; json
 * and root stay the lock's. */
int lock_read_amended(const char *program_folder, struct lock **out, struct err *err) MUST_CHECK;
/* The lock as the first of its amendments amend it, up to the one with that head; the root is the
 * head of none. ERR_LOCK: no amendment has it. */
int lock_at_head(const struct lock *lock, const char *head, struct lock **out,
                 struct err *err) MUST_CHECK;
/* Takes the chain over into a lock that was read, and empties it. */
void lock_take_amendments(struct lock *lock, struct amendment_chain *chain);

/* Every member that differs, as "changes" of an amendment without "section" and "post_hoc". */
cJSON *amendment_changes(const cJSON *from, const cJSON *to);
/* "plan.measure.mmlu.metric" */
void amendment_path_text(const cJSON *change, struct strbuf *out);

/* A reason is something, short enough, and plain text on one line; ERR_USAGE. */
int amendment_check_reason(const char *reason, struct err *err) MUST_CHECK;

/* What the head is of and the signature over; ERR_LOCK when there is no such text. */
int amendment_text(const cJSON *amendment, struct strbuf *out, struct err *err) MUST_CHECK;
/* A chain of no amendments, whatever the lock has; release it. */
void amendments_begin(const struct lock *lock, struct amendment_chain *chain);
/* Whether it follows from the chain; then it is part of it, taken over and applied. */
int amendments_append(struct amendment_chain *chain, const char *root, cJSON *amendment,
                      struct err *err) MUST_CHECK;

/* "FOLDER/0007.json"; kind is "json" or "toml". The caller frees it. */
char *amendment_file(const char *folder, size_t number, const char *kind)
    __attribute__((returns_nonnull));

#endif
