/*
 * Signing and checking a lock; ssh-keygen's part is in signature.c. The signed text is built from
 * references into the lock's tree, without copying it, and is always that of the lock as it was
 * locked: amendments are signed on their own (amend_sign.c).
 */
#include "prereg/lock/lock_sign.h"

#include <string.h>

#include "base/json/json.h"

int lock_text(const struct lock *lock, struct strbuf *out, struct err *err)
{
    cJSON *covered = json_object();
    for (cJSON *m = lock->json->child; m != NULL; m = m->next) {
        if (strcmp(m->string, "signature") != 0) {
            cJSON_AddItemReferenceToObject(covered, m->string, m);
        }
    }
    int rc = json_canonical(covered, out, err);
    cJSON_Delete(covered);
    return rc;
}

int lock_sign(struct lock *lock, const char *key_path, const char *allowed_signers, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct signature_check check = {0};
    cJSON *made = NULL;
    int rc = lock_text(lock, &text, err);
    if (rc == 0) {
        rc = signature_json_make(key_path, text.buf, text.len, &made, err);
    }
    if (rc == 0) {
        rc = signature_json_check(made, text.buf, text.len, allowed_signers, &check, err);
        signature_check_release(&check);
    }
    if (rc == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(lock->json, "signature");
        json_put(lock->json, "signature", made);
        lock->signature = made;
    } else {
        cJSON_Delete(made);
    }
    strbuf_release(&text);
    return rc;
}

int lock_check_signer(const struct plan_program *p, const struct lock *lock,
                      const char *allowed_signers, struct signature_check *out, struct err *err)
{
    *out = (struct signature_check){0};
    if (lock->signature == NULL) {
        return p->sign_required
                   ? err_set(err, ERR_REFUSED,
                             "[lock] sign = \"required\", and the lock is not signed: `preregctl "
                             "lock --key FILE` signs it")
                   : 0;
    }
    struct strbuf text = STRBUF_INIT;
    int rc = lock_text(lock, &text, err);
    if (rc == 0) {
        rc = signature_json_check(lock->signature, text.buf, text.len, allowed_signers, out, err);
    }
    strbuf_release(&text);
    return rc == 0 ? 0 : err_wrap(err, "the lock");
}
