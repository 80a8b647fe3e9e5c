/*
 * The amendments of a program: amendments/0001.json, 0002.json, ... beside its lock
 * (docs/amendments.md describes the file).
 *
 *   {"schema":1,"number":1,"program":NAME,"root":HEX,"previous":HEX,"time":TEXT,"level":LEVEL,
 *    "reason":TEXT,"changes":[{"path":[KEY,...],"section":TEXT,"from":VALUE,"to":VALUE,
 * "post_hoc":bool}],"known":[...]|absent,"describe":{...}|absent,"signature":{...}|null,"head":HEX}
 *
 * head = SHA-256 of the RFC 8785 text of all members but "head" and "signature"; the signature is
 * over the same text. "previous" is the head before, of the first the root. "from" is absent where
 * the member was not there before, "to" where it is not there after. Paths lead through objects
 * only, from `locked`; a list is changed as a whole. "known" has the results of apparatus checks
 * that it changes, as they were known then (amend_known.h).
 *
 * Invariants. The root is a program's identity for ever: no amendment changes it, nor what cells
 * and tasks are called by it. A chain that was read follows from the lock without a gap: every
 * number, root, previous and head was recomputed, each "from" is the value it replaced, so that two
 * amendments of one value are never merged, and no path is one that is sealed at its level. Whether
 * the last ones are missing cannot be seen from the files alone: the journal's `amended` rows say
 * how many there are.
 */
#ifndef PREREG_AMEND_AMENDMENT_H
#define PREREG_AMEND_AMENDMENT_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "base/strbuf.h"
#include "prereg/amend/access_level.h"
#include "prereg/lock/lock.h"

#define AMENDMENT_SCHEMA     1
#define AMENDMENT_MAX        9999
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

/* Reads the lock of a program's folder (grid.toml.lock) and applies its amendments/: locked, plan,
 * data, files and solved are the present ones, and so is describe where an amendment asked the
 * workers again; json and root stay the lock's. */
int lock_read_amended(const char *program_folder, struct lock **out, struct err *err) MUST_CHECK;
/* The lock as it was when `head` was its head: with its amendments applied up to that one, or with
 * none when `head` is the root. ERR_LOCK: no amendment has that head. */
int lock_at_head(const struct lock *lock, const char *head, struct lock **out,
                 struct err *err) MUST_CHECK;
/* Moves the chain into a lock that was read, and leaves the chain empty. */
void lock_take_amendments(struct lock *lock, struct amendment_chain *chain);

/* Every member that differs, as "changes" of an amendment without "section" and "post_hoc". */
cJSON *amendment_changes(const cJSON *from, const cJSON *to);
/* Whether both are absent, or both are the same JSON. */
bool amendment_same_value(const cJSON *a, const cJSON *b);
/* "plan.measure.mmlu.metric" */
void amendment_path_text(const cJSON *change, struct strbuf *out);

/* Checks that a reason is not blank, short enough, and plain text on one line; ERR_USAGE. */
int amendment_check_reason(const char *reason, struct err *err) MUST_CHECK;

/* The text that the head is the digest of and that is signed; ERR_LOCK when it has none (a number
 * that canonical JSON cannot hold). */
int amendment_text(const cJSON *amendment, struct strbuf *out, struct err *err) MUST_CHECK;
/* Starts an empty chain, whatever amendments the lock has; the caller releases it. */
void amendments_begin(const struct lock *lock, struct amendment_chain *chain);
/* Checks that the amendment follows from the chain and applies it. On success the chain owns it; on
 * failure the caller still does, and the chain is unchanged. */
int amendments_append(struct amendment_chain *chain, const char *root, cJSON *amendment,
                      struct err *err) MUST_CHECK;

/* "FOLDER/0007.json"; kind is "json" or "toml". The caller frees it. */
char *amendment_file(const char *folder, size_t number, const char *kind)
    __attribute__((returns_nonnull));

#endif
