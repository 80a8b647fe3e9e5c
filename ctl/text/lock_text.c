/*
 * The output of `lock`. For --verify the checks run in the order of their cost and stop at the
 * first that fails: program, lock, values and files, clock, signature, time stamp. Nothing is
 * executed but ssh-keygen and openssl.
 */
#include "ctl/text/lock_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/text/out.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/imported.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/lock_sign.h"
#include "prereg/lock/timestamp.h"

void lock_paths_init(struct lock_paths *paths, const char *program_path)
{
    paths->lock = lock_path_of(program_path);
    paths->tsq = xasprintf("%s" LAYOUT_TSQ_SUFFIX, paths->lock);
    paths->tsr = xasprintf("%s" LAYOUT_TSR_SUFFIX, paths->lock);
}

void lock_paths_release(struct lock_paths *paths)
{
    free(paths->lock);
    free(paths->tsq);
    free(paths->tsr);
}

/* A copy for an answer; null for an absent value. */
static cJSON *copy_or_null(const cJSON *v)
{
    return v == NULL ? cJSON_CreateNull() : json_copy(v);
}

/* The key that signed; NULL without a signature. */
static const char *fingerprint_of(const struct lock *lock)
{
    return lock->signature == NULL ? NULL
                                   : json_member(lock->signature, "fingerprint")->valuestring;
}

/* The commit that the lock was made at; nothing when it has none. */
static void print_git(const struct lock *lock)
{
    if (lock->git != NULL) {
        terminal_printf(stdout, "git commit %s, the tree was %s\n",
                        json_member(lock->git, "commit")->valuestring,
                        cJSON_IsTrue(json_member(lock->git, "clean")) ? "clean" : "not clean");
    }
}

/* What to do with the request: no authority is contacted by this program. */
static void print_request(const struct lock_paths *paths)
{
    terminal_printf(
        stdout,
        "%s is the time-stamp request. Send it to an authority you trust, and put its answer "
        "beside it:\n"
        "  curl -sS -H 'Content-Type: application/timestamp-query' --data-binary @%s \\\n"
        "       -o %s URL-OF-THE-AUTHORITY\n"
        "  preregctl lock --verify --ca CERTIFICATES.pem %.*s\n",
        paths->tsq, paths->tsq, paths->tsr, (int)(strlen(paths->lock) - strlen(LAYOUT_LOCK_SUFFIX)),
        paths->lock);
}

/* Scores that were known before the lock belong beside its root. */
static void print_reused(const struct lock *lock)
{
    const cJSON *root = json_member(lock->reuse, "root");
    const int n = cJSON_GetArraySize(json_member(lock->reuse, "tasks"));
    if (lock->reuse != NULL && cJSON_IsString(root)) {
        terminal_printf(stdout,
                        "%d %s reused from a receipt of root %.16s: %s known before this lock\n", n,
                        text_plural(n, "task is", "tasks are"), root->valuestring,
                        text_plural(n, "its scores were", "their scores were"));
    }
}

/* How many files are pinned is shown, so that a missing pin can be noticed. */
int lock_say_written(const struct ctl_options *o, const struct lock *lock,
                     const struct lock_paths *paths, struct err *err)
{
    char *id = lock_program_id(lock);
    int rc = 0;
    if (o->json) {
        cJSON *answer = json_object();
        json_put_string(answer, "root", lock->root);
        json_put_string(answer, "program", id);
        json_put_string(answer, "path", paths->lock);
        json_put(answer, "reuse", copy_or_null(lock->reuse));
        json_put(answer, "git", copy_or_null(lock->git));
        json_put_string(answer, "signed_by", fingerprint_of(lock));
        json_put_string(answer, "timestamp_request", o->timestamp ? paths->tsq : NULL);
        rc = out_json(answer, err);
        cJSON_Delete(answer);
    } else {
        const int n_data = cJSON_GetArraySize(lock->data);
        const int n_files = cJSON_GetArraySize(lock->files);
        terminal_printf(stdout,
                        "%s\nroot %s\n%d data %s, %d %s; `preregd submit` will run it as %s\n",
                        paths->lock, lock->root, n_data, text_plural(n_data, "digest", "digests"),
                        n_files, text_plural(n_files, "file", "files"), id);
        print_reused(lock);
        print_git(lock);
        if (lock->signature != NULL) {
            terminal_printf(stdout, "signed by %s\n", fingerprint_of(lock));
        }
        if (o->timestamp) {
            print_request(paths);
        }
    }
    free(id);
    return rc;
}

/* The results of --verify. */
struct verified {
    struct plan_program *program;
    struct lock *lock;
    struct signature_check signer;
    char *allowed; /* file of allowed signers; NULL */
    struct timestamp_check stamp;
    bool stamped;
    struct lock_paths paths;
};

/* Without a file of allowed signers any key is accepted. */
static int verify_signer(const struct ctl_options *o, struct verified *v, struct err *err)
{
    int rc = signature_allowed_signers(o->allowed_signers, &v->allowed, err);
    return rc == 0 ? lock_check_signer(v->program, v->lock, v->allowed, &v->signer, err) : rc;
}

/* A missing time stamp is an error only when --ca asks for one. */
static int verify_stamp(const struct ctl_options *o, struct verified *v, struct err *err)
{
    v->stamped = file_kind_at(v->paths.tsr) != FILE_ABSENT;
    if (!v->stamped && o->ca != NULL) {
        return err_set(err, ERR_NOT_FOUND, "%s: no such time stamp", v->paths.tsr);
    }
    return v->stamped ? timestamp_check(v->paths.lock, v->paths.tsr, o->ca, &v->stamp, err) : 0;
}

/* Fills `v` up to the first check that fails. Of an imported program's lock only the plan is
 * compared: it pins nothing else. */
static int verify(const struct ctl_options *o, struct verified *v, struct err *err)
{
    struct diag diag;
    diag_init(&diag, o->args[0]);
    int rc = program_load(o->args[0], &v->program, &diag, err);
    if (rc != 0 && !o->json) {
        diag_print(&diag, stderr);
    }
    diag_release(&diag);
    if (rc == 0) {
        rc = lock_read(v->paths.lock, &v->lock, err);
    }
    /* the program is there, its lock is not */
    if (rc == ERR_NOT_FOUND && v->program != NULL) {
        return err_set(err, ERR_LOCK, "%s is not locked: there is no %s", o->args[0],
                       v->paths.lock);
    }
    if (rc != 0) {
        return rc;
    }
    unsigned parts = imported_lock(v->lock) ? LOCK_PLAN : LOCK_ALL;
    if ((rc = lock_verify(v->program, v->lock, parts, NULL, NULL, err)) != 0 ||
        (rc = lock_check_time(v->lock, clock_wall(), err)) != 0 ||
        (rc = verify_signer(o, v, err)) != 0) {
        return rc;
    }
    return verify_stamp(o, v, err);
}

/* --verify as JSON: it holds, or there would be an error instead. */
static int say_json(const struct verified *v, struct err *err)
{
    cJSON *answer = json_object();
    json_put_bool(answer, "holds", true);
    json_put_string(answer, "root", v->lock->root);
    json_put_string(answer, "path", v->paths.lock);
    json_put(answer, "git", copy_or_null(v->lock->git));
    json_put_string(answer, "signed_by", v->signer.fingerprint);
    json_put_string(answer, "principal", v->signer.principal);
    json_put_string(answer, "allowed_signers", v->signer.principal == NULL ? NULL : v->allowed);
    json_put_string(answer, "stamped", v->stamped ? v->stamp.time : NULL);
    json_put_string(answer, "authority", v->stamp.authority);
    int rc = out_json(answer, err);
    cJSON_Delete(answer);
    return rc;
}

/* --verify as text: root, time, git, signature and stamp. */
static void say_text(const struct verified *v)
{
    const cJSON *when = json_member(v->lock->json, "time");
    terminal_printf(stdout, "%s fits the program and what it pins\nroot %s\n", v->paths.lock,
                    v->lock->root);
    terminal_printf(stdout, "locked at %s by the locker's clock\n",
                    cJSON_IsString(when) ? when->valuestring : "?");
    print_git(v->lock);
    if (!v->signer.valid) {
        terminal_printf(stdout, "not signed\n");
    } else if (v->signer.principal != NULL) {
        terminal_printf(stdout, "signed by %s, %s, as %s allows\n", v->signer.principal,
                        v->signer.fingerprint, v->allowed);
    } else {
        terminal_printf(stdout, "signed by %s; no file of allowed signers says whose key that is\n",
                        v->signer.fingerprint);
    }
    if (v->stamped) {
        terminal_printf(stdout, "there at %s, says %s\n", v->stamp.time,
                        v->stamp.authority == NULL ? "the authority" : v->stamp.authority);
    } else {
        terminal_printf(stdout, "no time stamp\n");
    }
}

/* Nothing is printed unless everything holds. */
int lock_say_verified(const struct ctl_options *o, struct err *err)
{
    struct verified v = {0};
    lock_paths_init(&v.paths, o->args[0]);
    int rc = verify(o, &v, err);
    if (rc == 0 && o->json) {
        rc = say_json(&v, err);
    } else if (rc == 0) {
        say_text(&v);
    }
    timestamp_check_release(&v.stamp);
    signature_check_release(&v.signer);
    free(v.allowed);
    lock_free(v.lock);
    program_free(v.program);
    lock_paths_release(&v.paths);
    return rc;
}
