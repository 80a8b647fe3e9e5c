/*
 * Results from an earlier receipt, accepted instead of run ([reuse]).
 *
 * A cell is reused as a whole: the receipt must have an accepted result of the same work
 * (prereg/reuse/work.h) for every stage, since it holds results and no weights. The lock pins, in
 * "locked" and so under the root,
 *
 *   "reuse":{"root":HEX,"receipt":HEX,"program":NAME,
 *            "tasks":{"CELL/STAGE":{"of":"CELL/STAGE","work":HEX,"sha256":HEX,"accepts":HEX}}}
 *
 * where `receipt` is the SHA-256 of its SHA256SUMS, `sha256` that of the result.json in it, and
 * `accepts` that of the text that is accepted here (reuse_text).
 *
 * Invariants: what is pinned follows from plan, lock and receipt alone, so that `lock`, `submit`
 * and `verify` compute the same; no result is taken twice; only tasks that do their own work are
 * pinned. Whether the receipt itself follows is for `verify` to say, before reuse_match().
 */
#ifndef PREREG_REUSE_REUSE_H
#define PREREG_REUSE_REUSE_H

#include <cjson/cJSON.h>

#include "base/diag.h"
#include "base/files/digest.h"
#include "base/strbuf.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

#define REUSE_FOLDER  "reuse"   /* of a program: the receipt and what is accepted of it */
#define REUSE_RECEIPT "receipt" /* in it: the receipt's files */
#define REUSE_TASKS   "tasks"   /* in it: NNNNNN/result.json of each reused task */
#define REUSE_RECORDS "records.jsonl"

struct reuse_record; /* private */

/* A receipt, opened for reuse. Owned here; always valid to release. */
struct reuse_source {
    char *folder;
    struct plan_program *program;
    struct lock *lock;
    struct digest sums; /* of SHA256SUMS */
    struct reuse_record *records;
};

/* Reads plan, lock and records of the receipt in `folder`, each compared with SHA256SUMS.
 * ERR_INVALID: a receipt that nothing can be reused from, with the reason. */
int reuse_open(struct reuse_source *src, const char *folder, struct err *err) MUST_CHECK;
void reuse_close(struct reuse_source *src);

/* Finds the receipt's results for the cells that the plan selects, and returns what a lock pins. A
 * selected cell without them is an error of `diag`; under cells = "matching" it is a note, and
 * runs. ERR_INVALID with errors in diag. */
int reuse_match(const struct plan_program *p, const struct lock *lock,
                const struct reuse_source *src, struct diag *diag, cJSON **pins,
                struct err *err) MUST_CHECK;

/* Appends the result.json that is accepted for a task of the receipt's program: its own, without
 * the artifacts that are not here, and with "reused":{"root","task","sha256","artifacts"}, where
 * all of them are listed. Items stay where the receipt has them; *items is then their file, which
 * the caller frees, and *name their path in the attempt, likewise; both may be NULL. */
int reuse_text(const struct reuse_source *src, size_t task, struct strbuf *out, char **items,
               char **name, struct err *err) MUST_CHECK;

/* What the lock pins for one task. */
struct reuse_pin {
    const char *of; /* NULL: it is not reused */
    struct digest accepts;
};

/* One for each task, NULL without [reuse]; the caller frees it. Texts are borrowed from the lock.
 * ERR_LOCK when what is pinned is not well formed. */
int reuse_pins(const struct plan_program *p, const struct lock *lock, struct reuse_pin **out,
               struct err *err) MUST_CHECK;
/* "CELL/STAGE" of a program; INDEX_NONE. */
size_t reuse_find_task(const struct plan_program *p, const char *name);
/* How many tasks, and how many cells all of whose own tasks, are reused; 0 without. */
struct reuse_counts {
    size_t tasks;
    size_t cells;
};
struct reuse_counts reuse_count(const struct plan_program *p, const struct reuse_pin *pins);

/* Copies the receipt into the program's folder, unless it is there, compares what follows from it
 * with what the lock pins, and writes the results that are accepted. Blocking; may be repeated. */
int reuse_store(const struct plan_program *p, const struct lock *lock, const char *folder,
                struct err *err) MUST_CHECK;
/* PROGRAM/reuse/tasks/NNNNNN; the caller frees it. */
char *reuse_task_folder(const char *program_folder, size_t task) __attribute__((returns_nonnull));

#endif
