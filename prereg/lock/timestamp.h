/*
 * RFC 3161 time stamps, through openssl(1): a request over the SHA-256 of a file's bytes, and the
 * check of an authority's response to it. Nothing is sent anywhere: the user carries the request
 * (docs/locks.md).
 *
 * A time stamp says that these bytes were there at that time, if the authority is to be believed.
 */
#ifndef PREREG_LOCK_TIMESTAMP_H
#define PREREG_LOCK_TIMESTAMP_H

#include "base/err.h"

#define TIMESTAMP_CERTIFICATES "/etc/ssl/certs" /* default authorities */

/* Writes the request, atomically; what is at tsq_path is replaced. ERR_NOT_FOUND: no such file, or
 * no openssl. */
int timestamp_request(const char *of_path, const char *tsq_path, struct err *err) MUST_CHECK;

struct timestamp_check {
    char time[sizeof("2026-11-21T03:04:22Z")]; /* of the stamp; "" unless it holds */
    char *authority;                           /* as it names itself; NULL when it does not */
};

/* ca_path: certificates of trusted authorities, a PEM file or a folder as of openssl rehash;
 * NULL: TIMESTAMP_CERTIFICATES. Certificates count as of the stamp's time, so that a stamp still
 * holds when they have expired. ERR_LOCK: not a response over these bytes, or not by a trusted
 * authority. *out is always valid to release. */
int timestamp_check(const char *of_path, const char *tsr_path, const char *ca_path,
                    struct timestamp_check *out, struct err *err) MUST_CHECK;
void timestamp_check_release(struct timestamp_check *check);

#endif
