/*
 * `lock`: checks a program and writes its lock, signed with --key, with a time-stamp request beside
 * it with --timestamp; with --verify it writes nothing and reports what holds of the existing lock.
 * A lock that exists is replaced with --replace only, and its time stamp with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/proof.h"
#include "ctl/text/lock_text.h"
#include "ctl/text/out.h"
#include "prereg/lock/git.h"
#include "prereg/lock/lock_sign.h"
#include "prereg/lock/timestamp.h"

/* The last part of a path. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* Builds the lock, and signs it when there is a key. The state of git is recorded without the
 * files that this command itself writes, so that locking twice gives the same. */
static int build(const struct ctl_options *o, const struct proof *proof,
                 const struct lock_paths *paths, struct lock **out, struct err *err)
{
    const char *const own[] = {name_of(paths->lock), name_of(paths->tsq), name_of(paths->tsr),
                               NULL};
    const struct plan_program *p = proof->program;
    struct strbuf note = STRBUF_INIT;
    char *allowed = NULL;
    if (p->sign_required && o->key == NULL) {
        return err_set(err, ERR_REFUSED,
                       "[lock] sign = \"required\": name the key, --key ~/.ssh/id_ed25519");
    }
    cJSON *summary = check_json(&proof->report);
    int rc = lock_build(p, proof->describe.json, summary, out, err);
    cJSON_Delete(summary);
    if (rc == 0 && proof->reuse != NULL) {
        rc = lock_set_reuse(*out, json_copy(proof->reuse), err);
    }
    if (rc != 0) {
        goto out;
    }
    lock_set_git(*out, git_state(p->folder, own, &note));
    terminal_printf(stderr, "%s", note.buf);
    if (o->key != NULL) {
        rc = signature_allowed_signers(o->allowed_signers, &allowed, err);
        if (rc == 0) {
            rc = lock_sign(*out, o->key, allowed, err);
        }
    }
out:
    free(allowed);
    strbuf_release(&note);
    return rc;
}

/* Checks the existing lock, which stays in place when its values are the same: not with a
 * signature that does not hold, and, where it is stamped, not with other values or a new
 * signature. */
static int look_at_old(const struct plan_program *p, const struct lock *lock,
                       const struct lock_paths *paths, struct err *err)
{
    struct lock *old = NULL;
    struct signature_check signer = {0};
    /* a response beside the lock makes its bytes worth keeping */
    bool stamped = file_kind_at(paths->tsr) != FILE_ABSENT;
    int rc = lock_read(paths->lock, &old, err);
    if (rc != 0) {
        return rc;
    }
    if (stamped && (strcmp(old->root, lock->root) != 0 ||
                    (old->signature == NULL && lock->signature != NULL))) {
        rc = err_set(err, ERR_EXISTS, "%s is the time stamp of the existing lock", paths->tsr);
    } else if (old->signature != NULL && strcmp(old->root, lock->root) == 0) {
        rc = lock_check_signer(p, old, NULL, &signer, err);
        signature_check_release(&signer);
    }
    lock_free(old);
    return rc;
}

/* Adds to an error about the existing lock what --replace would do. */
static int say_why_kept(int rc, struct err *err)
{
    if (rc == ERR_EXISTS) {
        return err_wrap(err, "the program is locked already (--replace discards that lock)");
    }
    if (rc == ERR_VERSION) {
        return err_wrap(err, "another version locked the program (--replace discards that lock)");
    }
    if (rc == ERR_LOCK) {
        return err_wrap(err, "the existing lock file is not a valid lock (--replace discards it)");
    }
    return rc;
}

/* Writes the lock. A time stamp is over a lock's bytes: one that is stamped is not replaced in
 * passing, and a request or a stamp of the old bytes does not stay beside new ones. */
static int write_lock(const struct ctl_options *o, const struct plan_program *p,
                      const struct lock *lock, const struct lock_paths *paths, struct err *err)
{
    struct digest before = {0};
    struct digest after = {0};
    /* to see afterwards whether the bytes changed */
    bool was_there = file_kind_at(paths->lock) == FILE_REGULAR;
    int rc = was_there ? digest_file(paths->lock, &before, NULL, err) : 0;
    if (rc == 0 && was_there && !o->replace) {
        rc = look_at_old(p, lock, paths, err);
    }
    if (rc == 0) {
        rc = lock_write(lock, paths->lock, o->replace, err);
    }
    if (rc != 0) {
        return was_there && !o->replace ? say_why_kept(rc, err) : rc;
    }
    rc = digest_file(paths->lock, &after, NULL, err);
    if (rc != 0) {
        return rc;
    }
    if (!digest_equal(&before, &after)) {
        /* request and response are over the old bytes */
        (void)unlink(paths->tsq);
        (void)unlink(paths->tsr);
    }
    return o->timestamp ? timestamp_request(paths->lock, paths->tsq, err) : 0;
}

/* Builds and writes the lock, then reports the one on disk. */
static int make(const struct ctl_options *o, const struct proof *proof, struct err *err)
{
    struct lock *lock = NULL;
    struct lock *written = NULL;
    struct lock_paths paths;
    lock_paths_init(&paths, o->args[0]);
    int rc = build(o, proof, &paths, &lock, err);
    if (rc != 0 || (rc = write_lock(o, proof->program, lock, &paths, err)) != 0) {
        goto out;
    }
    /* the lock on disk, which may be the earlier one */
    rc = lock_read(paths.lock, &written, err);
    if (rc == 0) {
        rc = lock_say_written(o, written, &paths, err);
    }
out:
    lock_free(written);
    lock_free(lock);
    lock_paths_release(&paths);
    return rc;
}

int cmd_lock(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct proof proof;
    *code = EXIT_OK;
    if (o->verify && (o->key != NULL || o->timestamp || o->replace)) {
        return err_set(err, ERR_USAGE,
                       "--verify writes nothing: it accepts only --allowed-signers and --ca");
    }
    if (o->verify) {
        return lock_say_verified(o, err);
    }
    /* all: submit runs what is locked, and does not ask again about what was allowed here */
    const struct trust_ask trust = {.state = o->state, .run = o->run, .all = true};
    int rc = proof_run(o->args[0], &trust, &proof, err);
    if (!o->json && (rc == 0 || rc == ERR_INVALID)) { /* else it is printed once, as the error */
        diag_print(&proof.diag, stderr);
    }
    if (rc == 0) {
        rc = make(o, &proof, err);
    }
    proof_release(&proof);
    return rc;
}
