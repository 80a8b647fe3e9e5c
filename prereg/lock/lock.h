/*
 * grid.toml.lock: every covered value of a program and the digests of what it pins, under one root
 * (docs/program-format.md describes the file).
 *
 *   {"schema":1,"root":HEX,"locked":{"plan":...,"data":{NAME:HEX},"files":{ARG:HEX},
 *    ["environments":{PATH:LIST},]"solved":{CONDITION:{STAGE:{...}}}[,"reuse":{...}]},
 *    "tool":...,"time":...,"git":{"commit","clean"}|null,
 *    "describe":...,"proof":...,"signature":{...}|null}
 *
 * root = SHA-256 of the RFC 8785 text of "locked"; nothing outside "locked" can change a result.
 * A struct lock owns its tree and is constant after it was built or read. Its root was recomputed
 * when it was read: a lock in memory is never a tampered one. Amendments (prereg/amend/amendment.h)
 * change what its parts point to and its head, never its root.
 */
#ifndef PREREG_LOCK_LOCK_H
#define PREREG_LOCK_LOCK_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/files/digest.h"
#include "prereg/lock/pin.h"
#include "prereg/program/program.h"

#define LOCK_SCHEMA 1

/* Parts are pointers into `json`, or, once amended, into `amended`. */
struct lock {
    cJSON *json;         /* the whole file; owns all that follows, until amended */
    const cJSON *locked; /* the file's, or `amended` */
    const cJSON *plan;
    const cJSON *data;   /* object: name of [data] -> hex */
    const cJSON *files;  /* object: argument or [pin] file as written -> hex */
    const cJSON *solved; /* object: condition -> stage -> params solved by --describe */
    const cJSON *reuse;  /* object: prereg/reuse/reuse.h; NULL: nothing is reused */
    const cJSON
        *describe;      /* object: condition -> stage -> what --describe reported; may be empty */
    const cJSON *proof; /* the summary of check; may be null */
    const cJSON *git;   /* prereg/lock/git.h; NULL when it says nothing */
    const cJSON *signature; /* prereg/lock/lock_sign.h; NULL when there is none */
    char root[DIGEST_HEX_SIZE];
    char head[DIGEST_HEX_SIZE]; /* the root, or the digest of the last amendment */
    size_t n_amendments;
    cJSON *amended;      /* owned: `locked` as amended; NULL without amendments */
    cJSON *amendments;   /* owned: the amendments, whole, in order; NULL without any */
    cJSON *environments; /* owned: what lock_environments() copies */
};

/* "grid.toml" -> "grid.toml.lock". The caller frees it. */
char *lock_path_of(const char *program_path) __attribute__((returns_nonnull));

/* Takes all digests (data, files) and builds the lock in memory. `describe` is struct describe's
 * json or NULL (nothing was run: nothing is solved); `proof` may be NULL. Both are copied. */
int lock_build(const struct plan_program *p, const cJSON *describe, const cJSON *proof,
               struct lock **out, struct err *err) MUST_CHECK;

/* Adds what is taken from an earlier receipt to a lock that was just built, which then owns `pins`;
 * the root covers it. */
int lock_set_reuse(struct lock *lock, cJSON *pins, struct err *err) MUST_CHECK;

/* Stores the commit that git_state() found in a lock that was just built, which then owns `git`. */
void lock_set_git(struct lock *lock, cJSON *git);

/* Writes it atomically. When path holds a lock of another root, ERR_EXISTS unless `replace`; the
 * same root is left as it is, so that locking twice changes no byte, except that a signed lock
 * replaces an unsigned one. A lock signed by another key is ERR_EXISTS, too; one whose time is
 * in the future is ERR_LOCK; a file that is not a lock is what lock_read() reports. With
 * `replace` the new one is written whatever is there. */
int lock_write(const struct lock *lock, const char *path, bool replace, struct err *err) MUST_CHECK;

/* ERR_NOT_FOUND; ERR_VERSION for another schema; ERR_LOCK when the root does not follow from what
 * it covers, or the file is not a lock. */
int lock_read(const char *path, struct lock **out, struct err *err) MUST_CHECK;
/* The same of its text; `path` is what messages call it. */
int lock_parse(const char *text, size_t len, const char *path, struct lock **out,
               struct err *err) MUST_CHECK;
/* The same as it was locked, without what amendments made of it. */
int lock_copy(const struct lock *lock, struct lock **out, struct err *err) MUST_CHECK;
void lock_free(struct lock *lock); /* NULL is fine */

/* What lock_verify() compares. */
enum lock_part {
    LOCK_PLAN = 1, /* the covered values of grid.toml */
    LOCK_DATA = 2, /* digests of [data] */
    LOCK_FILES =
        4,         /* digests of workers and files in commands: at submit, before they are copied */
    LOCK_PINS = 8, /* digests of [pin] files and of models of [apparatus]; environments */
    LOCK_ALL = 15,
    LOCK_TELL_ABSENT = 16, /* with LOCK_DATA: what is not there is ERR_NOT_FOUND */
};

/* ERR_LOCK names the first value that differs: "measure.mmlu.floor: locked 0.27, now 0.25". `parts`
 * is a sum of enum lock_part. With a cache, files whose size, times and inode are as when they were
 * last hashed are not read again; NULL reads everything. Under [pin] workers = "record" a changed
 * file of a command is not an error: it is appended to `notes`, a line each (NULL: dropped). */
int lock_verify(const struct plan_program *p, const struct lock *lock, unsigned parts,
                struct pin_cache *cache, struct strbuf *notes, struct err *err) MUST_CHECK;
/* The same for one file or folder. ERR_NOT_FOUND: it is not there at all, or nothing is in a folder
 * that held something: as on a disk that is not mounted. */
int lock_verify_path(struct pin_cache *cache, const char *locked, const char *path,
                     struct err *err) MUST_CHECK;

/* The digest of the image that the stage's `environment` was locked as; NULL: it has none. */
const char *lock_image(const struct lock *lock, const struct plan_stage *s);

/* The same for the environments of all stages; ERR_NOT_FOUND: one of them is not there at all. */
int lock_verify_environments(const struct plan_program *p, const struct lock *lock,
                             struct pin_cache *cache, struct err *err) MUST_CHECK;

/* {STAGE:{"environment":TEXT,"digest":HEX}} of the stages that name one (environment_digest()), for
 * answers. The caller deletes it. */
cJSON *lock_environments(const struct lock *lock);

/* condition -> stage -> params: the values that the workers solved (struct describe's json, or
 * NULL). The caller deletes it. */
cJSON *lock_solved(const cJSON *describe);

/* "<name>-<first 8 hex digits of the root>": the program's folder under STATE/programs. */
char *lock_program_id(const struct lock *lock) __attribute__((returns_nonnull));

/* The locked digest of a [data] name, or of a file of a command; NULL when there is none. */
const char *lock_data_digest(const struct lock *lock, const char *name);
const char *lock_file_digest(const struct lock *lock, const char *arg);

/* Checks the clock against a lock: a lock is older than everything that rests on it. */
#define LOCK_CLOCK_SLACK_MS ((int64_t)5 * 60 * 1000) /* that two honest machines may differ by */

/* When the lock was made; zero when it does not have a valid time. */
struct wall_time lock_made_at(const struct lock *lock);
/* ERR_LOCK when the lock was made later than `now`, by more than the slack: one of the two clocks
 * is wrong, and nothing could be shown to have come after the lock. */
int lock_check_time(const struct lock *lock, struct wall_time now, struct err *err) MUST_CHECK;

#endif
