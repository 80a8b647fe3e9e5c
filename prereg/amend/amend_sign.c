/*
 * Applies the signature rules of [lock] to amendments. The signature covers the amendment's text,
 * which is the canonical JSON of all members but "head" and "signature"; signature.c verifies it
 * with ssh-keygen. What is decided here is only whose key is acceptable.
 */
#include "prereg/amend/amend_sign.h"

#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "prereg/amend/amendment.h"
#include "prereg/lock/lock_sign.h"

static bool is_signed(const cJSON *amendment)
{
    const cJSON *signature = json_member(amendment, "signature");
    return signature != NULL && !cJSON_IsNull(signature);
}

bool amend_sign_matters(const struct plan_program *p, const struct lock *lock)
{
    bool any = p->sign_required || lock->signature != NULL;
    const cJSON *a;
    cJSON_ArrayForEach(a, lock->amendments)
    {
        any = any || is_signed(a);
    }
    return any;
}

/* Without a file of allowed signers no key has an owner: then only the key that signed the lock may
 * sign an amendment. */
static int check_same_key(const struct lock *lock, const struct signature_check *by,
                          struct err *err)
{
    const cJSON *of_lock = json_member(lock->signature, "fingerprint");
    return cJSON_IsString(of_lock) && strcmp(of_lock->valuestring, by->fingerprint) == 0
               ? 0
               : err_set(err, ERR_REFUSED,
                         "it is signed by %s, and the lock by %s: without a file of allowed "
                         "signers only the lock's own key may amend",
                         by->fingerprint,
                         cJSON_IsString(of_lock) ? of_lock->valuestring : "no key");
}

int amendment_check_signer(const struct plan_program *p, const struct lock *lock,
                           const cJSON *amendment, const char *allowed_signers,
                           struct signature_check *out, struct err *err)
{
    *out = (struct signature_check){0};
    if (!is_signed(amendment)) {
        return p->sign_required ? err_set(err, ERR_REFUSED,
                                          "[lock] sign = \"required\", and the amendment is not "
                                          "signed: `preregctl amend --key FILE` signs it")
                                : 0;
    }
    struct strbuf text = STRBUF_INIT;
    int rc = amendment_text(amendment, &text, err);
    if (rc == 0) {
        rc = signature_json_check(json_member(amendment, "signature"), text.buf, text.len,
                                  allowed_signers, out, err);
    }
    if (rc == 0 && allowed_signers == NULL && p->sign_required) {
        rc = check_same_key(lock, out, err);
    }
    strbuf_release(&text);
    return rc;
}

int amendments_check_signers(const struct plan_program *p, const struct lock *lock,
                             const char *allowed_signers, struct err *err)
{
    struct signature_check signer = {0};
    size_t number = 0;
    const cJSON *a;
    int rc = lock_check_signer(p, lock, allowed_signers, &signer, err);
    signature_check_release(&signer);
    if (rc != 0) {
        return rc;
    }
    cJSON_ArrayForEach(a, lock->amendments)
    {
        number++;
        rc = amendment_check_signer(p, lock, a, allowed_signers, &signer, err);
        signature_check_release(&signer);
        if (rc != 0) {
            return err_wrap(err, LAYOUT_AMENDMENTS "/%04zu.json", number);
        }
    }
    return 0;
}
