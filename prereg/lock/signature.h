/*
 * SSH signatures (ssh-keygen -Y, namespace "preregd") over locks, amendments and receipts.
 *
 * ssh-keygen runs as a child without a shell and with an environment of a few names; what it reads
 * is in memory, never on a disk. It may ask for a passphrase only when standard input is a
 * terminal; otherwise a key with a passphrase must be in an agent (or SSH_ASKPASS_REQUIRE be set):
 * a batch gets an error and never waits.
 *
 * Allowed signers are in the format of ssh-keygen(1). A key that has expired there is not allowed,
 * as of today: the time in a lock is only its signer's claim. Of several lines with one key the
 * first counts (ssh-keygen finds no other).
 */
#ifndef PREREG_LOCK_SIGNATURE_H
#define PREREG_LOCK_SIGNATURE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

#define SIGNATURE_NAMESPACE "preregd"
#define SIGNATURE_BYTES_MAX ((size_t)64 << 10) /* of the armored text */

/* Signs with the private key at key_path, or with the agent's when that holds it (then the public
 * key file will do). ERR_REFUSED: ssh-keygen would not, its words in the message;
 * ERR_NOT_FOUND: no such key, or no ssh-keygen. */
int signature_make(const char *key_path, const void *bytes, size_t len, struct strbuf *armored,
                   struct err *err) MUST_CHECK;

/* The same in another namespace, which the signature holds in alone. */
int signature_make_in(const char *name_space, const char *key_path, const void *bytes, size_t len,
                      struct strbuf *armored, struct err *err) MUST_CHECK;

struct signature_check {
    bool valid;        /* a signature over these bytes by the key it names */
    bool allowed;      /* and that key is among the allowed */
    char *principal;   /* whose it is, by the allowed signers; NULL */
    char *fingerprint; /* "SHA256:..."; NULL unless valid */
};

/* allowed_signers NULL: only that it is a good signature by the key it names. ERR_LOCK: it is not;
 * ERR_REFUSED: it is, but the key is not among the allowed. *out is always valid to release. */
int signature_check(const char *armored, const void *bytes, size_t len, const char *allowed_signers,
                    struct signature_check *out, struct err *err) MUST_CHECK;
void signature_check_release(struct signature_check *check);

/* What is signed, and in which namespace. All borrowed. */
struct signed_text {
    const char *name_space;
    const void *bytes;
    size_t len;
};

/* signature_check() in another namespace. */
int signature_check_in(const struct signed_text *text, const char *armored,
                       const char *allowed_signers, struct signature_check *out,
                       struct err *err) MUST_CHECK;

/* The member "signature" of a lock or an amendment: {"format":"sshsig","namespace":"preregd",
 * "fingerprint","armored"}. Makes it (and checks it at once); the caller deletes it. */
int signature_json_make(const char *key_path, const void *bytes, size_t len, cJSON **out,
                        struct err *err) MUST_CHECK;
/* Whether a JSON value has that form, whatever it signs: ERR_LOCK. */
int signature_json_shape(const cJSON *signature, struct err *err) MUST_CHECK;
/* signature_check() of such a member; the fingerprint must be that of the key too. */
int signature_json_check(const cJSON *signature, const void *bytes, size_t len,
                         const char *allowed_signers, struct signature_check *out,
                         struct err *err) MUST_CHECK;

/* The file of allowed signers: `option` (of --allowed-signers), else $PREREGD_ALLOWED_SIGNERS, else
 * $XDG_CONFIG_HOME/preregd/allowed_signers (~/.config without that) if it is there; *path is NULL
 * without any. The caller frees it. ERR_NOT_FOUND when one that was named is not a file. */
int signature_allowed_signers(const char *option, char **path, struct err *err) MUST_CHECK;

#endif
