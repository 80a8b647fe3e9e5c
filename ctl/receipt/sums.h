/*
 * SHA256SUMS: "<sha256><space><space><name>\n" for each file that it covers, sorted by name: what
 * `sha256sum -c` reads, and what reviewers sign.
 */
#ifndef CTL_RECEIPT_SUMS_H
#define CTL_RECEIPT_SUMS_H

#include "ctl/receipt/files.h"

/* Every covered file and no other, and each has its digest, which is kept in files. */
int sums_check(struct receipt_files *files, struct fault *f) MUST_CHECK;
/* The text over the files there are; takes their digests. */
int sums_make(struct receipt_files *files, struct strbuf *out, struct fault *f) MUST_CHECK;

#endif
