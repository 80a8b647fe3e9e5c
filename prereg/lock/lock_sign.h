/*
 * The signature of a lock: over the RFC 8785 text of all its members but "signature" itself, so
 * that root, time, git commit, tool and proof are covered with what is locked.
 */
#ifndef PREREG_LOCK_LOCK_SIGN_H
#define PREREG_LOCK_LOCK_SIGN_H

#include "base/err.h"
#include "base/strbuf.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/signature.h"
#include "prereg/program/program.h"

/* Appends the text that is signed. */
int lock_text(const struct lock *lock, struct strbuf *out, struct err *err) MUST_CHECK;

/* Signs a lock that was just built and checks the signature at once; allowed_signers may be
 * NULL. A key that is not among them is ERR_REFUSED, and the lock stays unsigned. */
int lock_sign(struct lock *lock, const char *key_path, const char *allowed_signers,
              struct err *err) MUST_CHECK;

/* Checks whether the lock may be used: a signature that is there must hold (ERR_LOCK) and, when
 * allowed_signers is not NULL, be by one of them (ERR_REFUSED); one that [lock] sign demands
 * must be there (ERR_REFUSED). *out names the signer; it is empty without a signature and always
 * valid to release. */
int lock_check_signer(const struct plan_program *p, const struct lock *lock,
                      const char *allowed_signers, struct signature_check *out,
                      struct err *err) MUST_CHECK;

#endif
