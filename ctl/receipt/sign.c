/*
 * A signature covers SHA256SUMS, and through it every other file but the signatures. It is added in
 * place to a finished receipt; the tar is packed again, with the lock's time as in export.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/export.h"
#include "ctl/receipt/layout.h"
#include "ctl/receipt/tar.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/signature.h"

/* The file of a key's signature: "SHA256:ab+/" becomes signatures/ab-_.sig (base64's alphabet
 * for names), in a role signatures/<role>-ab-_.sig. */
static char *signature_path(const char *folder, enum release_role role, const char *fingerprint)
{
    const char *colon = strchr(fingerprint, ':');
    const bool plain = role == ROLE_NR;
    char *path =
        xasprintf("%s/%s%s%s%s.sig", folder, RECEIPT_SIGNATURES, plain ? "" : release_roles[role],
                  plain ? "" : "-", colon == NULL ? fingerprint : colon + 1);
    for (char *c = path + strlen(folder) + 1 + strlen(RECEIPT_SIGNATURES); *c != '\0'; c++) {
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
    }
    return path;
}

/* Verifies the receipt first: one that does not follow is not signed. */
static int check_holds(const char *folder, struct err *err)
{
    const struct verify_spec spec = {.folder = folder};
    struct verify_answer answer;
    int rc = receipt_verify(&spec, &answer);
    if (rc != 0) {
        (void)err_join(&answer.fault, err);
        rc = err_wrap(err, "not signed, for it does not follow");
    }
    verify_answer_release(&answer);
    return rc;
}

/* Checks the new signature, and writes it under its key's name. */
static int add_signature(const char *folder, enum release_role role, const struct strbuf *sums,
                         const struct strbuf *armored, char **path, struct err *err)
{
    struct signature_check check = {0};
    char *inner = path_join(folder, "signatures");
    const struct signed_text text = {
        .name_space = release_namespace(role), .bytes = sums->buf, .len = sums->len};
    int rc = signature_check_in(&text, armored->buf, NULL, &check, err);
    if (rc != 0 || (rc = dir_make(inner, 0755, err)) != 0) {
        goto out;
    }
    *path = signature_path(folder, role, check.fingerprint);
    rc = file_write_atomic(*path, armored->buf, armored->len, 0644, err);
out:
    signature_check_release(&check);
    free(inner);
    return rc;
}

/* The archive's time is the lock's, as in export, so that equal folders give equal archives. */
int receipt_pack(const char *folder, const char *tar_path, struct err *err)
{
    struct file_writer w;
    struct lock *lock = NULL;
    struct wall_time time = {0};
    char *path = path_join(folder, RECEIPT_LOCK);
    int rc = lock_read(path, &lock, err);
    const cJSON *text = lock != NULL ? json_member(lock->json, "time") : NULL;
    if (cJSON_IsString(text)) {
        (void)!clock_wall_parse(text->valuestring, &time);
    }
    if (rc != 0 || (rc = file_writer_open(&w, tar_path, 0644, err)) != 0) {
        goto out;
    }
    rc = tar_write(folder, path_name(folder), time, &w, err);
    if (rc == 0) {
        rc = file_writer_publish(&w, err);
    }
    file_writer_release(&w);
out:
    lock_free(lock);
    free(path);
    return rc;
}

/* Verify, sign, check the signature, write, pack. The tar is replaced only if there was one. */
int receipt_sign(const char *folder, const char *key_path, enum release_role role, char **path,
                 struct err *err)
{
    struct strbuf sums = STRBUF_INIT;
    struct strbuf armored = STRBUF_INIT;
    char *sums_path = path_join(folder, RECEIPT_SUMS);
    char *tar = xasprintf("%s.tar", folder);
    *path = NULL;
    int rc = check_holds(folder, err);
    if (rc != 0 || (rc = file_read(sums_path, (size_t)RECEIPT_WHOLE_MAX, &sums, err)) != 0 ||
        (rc = signature_make_in(release_namespace(role), key_path, sums.buf, sums.len, &armored,
                                err)) != 0 ||
        (rc = add_signature(folder, role, &sums, &armored, path, err)) != 0) {
        goto out;
    }
    if (file_kind_at(tar) == FILE_REGULAR) {
        rc = receipt_pack(folder, tar, err);
    }
out:
    strbuf_release(&sums);
    strbuf_release(&armored);
    free(sums_path);
    free(tar);
    return rc;
}
