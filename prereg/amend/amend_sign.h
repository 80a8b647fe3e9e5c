/*
 * Who signed the amendments of a program. A signature that is there must hold and, where there is a
 * file of allowed signers, be by one of them. [lock] sign = "required" demands one of every
 * amendment; without a file of allowed signers it must then be by the key that signed the lock.
 */
#ifndef PREREG_AMEND_AMEND_SIGN_H
#define PREREG_AMEND_AMEND_SIGN_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/signature.h"
#include "prereg/program/program.h"

/* Whether anything is signed or must be. */
bool amend_sign_matters(const struct plan_program *p, const struct lock *lock);

/* Checks the signature of one amendment, which need not be part of the lock yet. ERR_REFUSED: it
 * must be signed, or by another key; ERR_LOCK: the signature does not hold. *out is empty when
 * none is signed, and always valid to release. */
int amendment_check_signer(const struct plan_program *p, const struct lock *lock,
                           const cJSON *amendment, const char *allowed_signers,
                           struct signature_check *out, struct err *err) MUST_CHECK;

/* Checks the lock and all amendments in it (lock_read_amended()); the message names the file. */
int amendments_check_signers(const struct plan_program *p, const struct lock *lock,
                             const char *allowed_signers, struct err *err) MUST_CHECK;

#endif
