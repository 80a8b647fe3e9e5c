/*
 * SHA256SUMS: "<sha256><space><space><name>\n" for each file that it covers, sorted by name: what
 * `sha256sum -c` reads, and what reviewers sign.
 */
#ifndef CTL_RECEIPT_SUMS_H
#define CTL_RECEIPT_SUMS_H

#include "ctl/receipt/files.h"

/* Checks that SHA256SUMS lists every covered file and no other, each with its digest, which is
 * kept in `files`. */
int sums_check(struct receipt_files *files, struct err *err) MUST_CHECK;
/* Appends the text over the files of the listing, and keeps their digests in it. */
int sums_make(struct receipt_files *files, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
