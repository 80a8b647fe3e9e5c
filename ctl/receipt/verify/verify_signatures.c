/* Checks who signed the lock, the amendments and the whole receipt, and when a third party saw
 * the lock. A signature that does not hold is a fault; a key that is not allowed is only
 * reported, unless the user demanded allowed keys. Signatures of reviewers are counted by key,
 * and each distinct file is checked once, so that copies of one file cost nothing. */
#include <string.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/amend/amendment.h"
#include "prereg/lock/lock_sign.h"
#include "prereg/lock/signature.h"
#include "prereg/lock/timestamp.h"

/* One signature of a lock or an amendment. `what` begins the sentence about it. */
static int check_one(struct verifying *v, const char *what, const cJSON *signature,
                     const struct strbuf *text)
{
    struct signature_check check = {0};
    int rc = signature_json_check(signature, text->buf, text->len, v->spec->allowed_signers, &check,
                                  v->err);
    if (rc == 0 && check.allowed) {
        verifying_says(v, "%s is signed by %s (%s), an allowed signer", what,
                       check.principal != NULL ? check.principal : "a key", check.fingerprint);
    } else if (rc == 0 || rc == ERR_REFUSED) {
        v->is_signed = false;
        verifying_says(v, "%s is signed by the key %s, for whom nothing here vouches", what,
                       check.fingerprint != NULL ? check.fingerprint : "?");
        rc = rc == ERR_REFUSED && v->spec->must_be_allowed ? mismatch_code(v->err) : 0;
    } else {
        rc = mismatch_code(v->err);
    }
    signature_check_release(&check);
    return rc;
}

/* A part without a signature lowers the level; it is a fault when the plan demands one. */
static int unsigned_part(struct verifying *v, const char *what)
{
    v->is_signed = false;
    return v->program->sign_required
               ? err_set(v->err, ERR_LOCK, "%s is not signed, and the plan demands it", what)
               : 0;
}

/* Whether "signature" is absent or null. */
static bool is_unsigned(const cJSON *o)
{
    const cJSON *signature = json_member(o, "signature");
    return signature == NULL || cJSON_IsNull(signature);
}

/* The lock's signature, over all its other members. */
static int check_lock(struct verifying *v)
{
    struct strbuf text = STRBUF_INIT;
    err_at(v->err, RECEIPT_LOCK, 0);
    if (is_unsigned(v->lock->json)) {
        return unsigned_part(v, "the lock");
    }
    int rc = lock_text(v->lock, &text, v->err) != 0
                 ? mismatch_code(v->err)
                 : check_one(v, "the lock", json_member(v->lock->json, "signature"), &text);
    strbuf_release(&text);
    return rc;
}

/* An amendment's signature, over its text. */
static int check_amendment(struct verifying *v, const cJSON *amendment, size_t number)
{
    struct strbuf text = STRBUF_INIT;
    char what[40];
    char name[40];
    (void)snprintf(what, sizeof(what), "amendment %zu", number);
    (void)snprintf(name, sizeof(name), LAYOUT_AMENDMENTS "/%04zu.json", number);
    err_at(v->err, name, 0);
    if (is_unsigned(amendment)) {
        return unsigned_part(v, what);
    }
    int rc = amendment_text(amendment, &text, v->err) != 0
                 ? mismatch_code(v->err)
                 : check_one(v, what, json_member(amendment, "signature"), &text);
    strbuf_release(&text);
    return rc;
}

/* A key that signed, and as whom. */
struct reviewer_key {
    char *fingerprint;
    enum release_role role;
};

/* The signatures over SHA256SUMS that were checked. */
struct reviewers {
    const struct strbuf *sums;
    struct digest *files; /* of different bytes */
    size_t n_files;
    size_t cap_files;
    struct reviewer_key *keys; /* each once in a role */
    size_t n_keys;
    size_t cap_keys;
};

/* Returns whether the same bytes were checked before, under another name. */
static bool is_checked(struct reviewers *r, const struct strbuf *armored)
{
    const struct digest d = digest_bytes(armored->buf, armored->len);
    for (size_t i = 0; i < r->n_files; i++) {
        if (digest_equal(&d, &r->files[i])) {
            return true;
        }
    }
    ARRAY_GROW(r->files, r->n_files, r->cap_files);
    r->files[r->n_files++] = d;
    return false;
}

/* Returns whether the key has signed before in that role: a key that signs twice is one reviewer.
 */
static bool is_named(struct reviewers *r, const char *fingerprint, enum release_role role)
{
    for (size_t i = 0; i < r->n_keys; i++) {
        if (r->keys[i].role == role && strcmp(fingerprint, r->keys[i].fingerprint) == 0) {
            return true;
        }
    }
    ARRAY_GROW(r->keys, r->n_keys, r->cap_keys);
    r->keys[r->n_keys++] = (struct reviewer_key){.fingerprint = xstrdup(fingerprint), .role = role};
    return false;
}

/* Frees both lists; the sums are the caller's. */
static void reviewers_release(struct reviewers *r)
{
    for (size_t i = 0; i < r->n_keys; i++) {
        free(r->keys[i].fingerprint);
    }
    free(r->keys);
    free(r->files);
}

/* The role that a signature's file is named for: the namespace in which it must hold. */
static enum release_role role_of_file(const char *name)
{
    const char *stem = name + strlen(RECEIPT_SIGNATURES);
    enum release_role role = ROLE_SCIENTIFIC;
    while (role < ROLE_NR &&
           (strncmp(stem, release_roles[role], strlen(release_roles[role])) != 0 ||
            stem[strlen(release_roles[role])] != '-')) {
        role++;
    }
    return role;
}

/* Adds a signature to the answer, and a sentence about it. */
static void tell_reviewer(struct verifying *v, const struct signature_check *check,
                          enum release_role role)
{
    const char *key = check->fingerprint != NULL ? check->fingerprint : "?";
    cJSON *o = json_object();
    json_put_string(o, "key", key);
    json_put_string(o, "principal", check->principal);
    json_put_string(o, "role", release_roles[role]);
    json_put_bool(o, "allowed", check->allowed);
    json_push(v->signatures, o);
    verifying_says(
        v, "the whole receipt is signed by %s (%s)%s%s%s",
        check->principal != NULL ? check->principal : "a key", key,
        role == ROLE_NR ? "" : " as its reviewer: ", role == ROLE_NR ? "" : release_roles[role],
        check->allowed ? ", an allowed signer" : ", for whom nothing here vouches");
}

/* Checks one signature over SHA256SUMS. A key that is not among the allowed is reported, and is not
 * a fault. */
static int check_reviewer(struct verifying *v, struct reviewers *r, enum release_role role,
                          const struct strbuf *armored)
{
    struct signature_check check = {0};
    const struct signed_text text = {
        .name_space = release_namespace(role), .bytes = r->sums->buf, .len = r->sums->len};
    int rc = signature_check_in(&text, armored->buf, v->spec->allowed_signers, &check, v->err);
    if (rc != 0 && rc != ERR_REFUSED) {
        rc = mismatch_code(v->err);
    } else if (!is_named(r, check.fingerprint != NULL ? check.fingerprint : "?", role)) {
        /* one allowed reviewer is enough */
        v->is_vouched |= check.allowed;
        tell_reviewer(v, &check, role);
    }
    signature_check_release(&check);
    return rc == ERR_REFUSED ? 0 : rc;
}

/* A signature file whose bytes were not checked before. */
static int check_reviewer_file(struct verifying *v, struct reviewers *r, const char *name)
{
    struct strbuf armored = STRBUF_INIT;
    int rc = files_read(&v->files, name, &armored, v->err);
    if (rc == 0 && !is_checked(r, &armored)) {
        rc = r->n_files > RECEIPT_SIGNATURES_MAX
                 ? err_set(v->err, ERR_LOCK,
                           "more than %zu different signatures; expected at most that many",
                           RECEIPT_SIGNATURES_MAX)
                 : check_reviewer(v, r, role_of_file(name), &armored);
    }
    strbuf_release(&armored);
    return rc;
}

/* All files of signatures/. */
static int check_reviewers(struct verifying *v)
{
    struct strbuf sums = STRBUF_INIT;
    struct reviewers r = {.sums = &sums};
    int rc = files_read(&v->files, RECEIPT_SUMS, &sums, v->err);
    for (size_t i = 0; rc == 0 && i < v->files.n; i++) {
        if (layout_is_signature(v->files.items[i].name)) {
            rc = check_reviewer_file(v, &r, v->files.items[i].name);
        }
    }
    reviewers_release(&r);
    strbuf_release(&sums);
    return rc;
}

int verify_signatures(struct verifying *v)
{
    const cJSON *list = v->lock->amendments;
    const cJSON *a = list == NULL ? NULL : list->child;
    /* until a part without an allowed signature is found */
    v->is_signed = true;
    int rc = check_lock(v);
    for (size_t n = 1; rc == 0 && a != NULL; n++, a = a->next) {
        rc = check_amendment(v, a, n);
    }
    return rc == 0 ? check_reviewers(v) : rc;
}

/* A stamp's time counts seconds, the journal's milliseconds. */
static bool stamp_time(const char *text, struct wall_time *out)
{
    const size_t n = strlen(text);
    char *whole = xasprintf("%.*s.000Z", n == 0 ? 0 : (int)n - 1, text);
    bool ok = clock_wall_parse(whole, out);
    free(whole);
    return ok;
}

/* The stamp counts for the level only if it is not later than the first attempt. */
static void judge_stamp(struct verifying *v, const struct timestamp_check *check)
{
    struct wall_time t = {0};
    const char *by = check->authority != NULL ? check->authority : "an authority";
    if (v->imported) {
        verifying_says(v, "%s saw the lock at %s; when the records were made is not known here", by,
                       check->time);
    } else if (!stamp_time(check->time, &t) ||
               (v->history.first_start.ms != 0 && t.ms > v->history.first_start.ms)) {
        verifying_says(v, "%s saw the lock at %s, which is after the first attempt started", by,
                       check->time);
    } else {
        v->is_stamped = true;
        verifying_says(v, "%s saw the lock at %s, before the first attempt started", by,
                       check->time);
    }
}

/* Removes the path that the message begins with, which is not one of the receipt. */
static int bad_stamp(const char *path, struct err *err)
{
    const size_t n = strlen(path);
    if (strncmp(err->msg, path, n) == 0 && strncmp(err->msg + n, ": ", 2) == 0) {
        memmove(err->msg, err->msg + n + 2, strlen(err->msg + n + 2) + 1);
    }
    return mismatch_code(err);
}

int verify_timestamp(struct verifying *v)
{
    struct timestamp_check check = {0};
    if (!files_have(&v->files, RECEIPT_TSR)) {
        return 0;
    }
    if (v->spec->ca == NULL) {
        verifying_says(v, "a time stamp is present and was not checked: --ca FILE says whose to "
                          "believe");
        return 0;
    }
    /* by descriptor: the names may mean other files by now */
    const int lock = files_open_one(&v->files, RECEIPT_LOCK);
    const int stamp = files_open_one(&v->files, RECEIPT_TSR);
    char *of = xasprintf("/proc/self/fd/%d", lock);
    char *tsr = xasprintf("/proc/self/fd/%d", stamp);
    int rc = 0;
    err_at(v->err, RECEIPT_TSR, 0);
    if (lock < 0 || stamp < 0) {
        rc = err_set(v->err, ERR_LOCK, "was changed while the receipt was read");
    } else if (timestamp_check(of, tsr, v->spec->ca, &check, v->err) != 0) {
        rc = bad_stamp(tsr, v->err);
    } else {
        judge_stamp(v, &check);
    }
    timestamp_check_release(&check);
    free(of);
    free(tsr);
    if (lock >= 0) {
        (void)close(lock);
    }
    if (stamp >= 0) {
        (void)close(stamp);
    }
    return rc;
}
