/*
 * Which files a receipt's folder has, and how large they may be. Nothing else may be in it: a file
 * that no sum covers, or that this version does not know, is refused.
 *
 *   VERIFY.md SHA256SUMS statement.json signatures/NAME.sig
 *   grid.toml grid.toml.lock [grid.toml.lock.tsq .tsr] amendments/NNNN.{json,toml}
 *   executed: journal.jsonl records.jsonl environment.jsonl [apparatus/NAME.json
 *             reruns/NAME.json items/SHA256.jsonl reuse.tar]
 *   imported: records.json imported.json
 *   coverage.json verdict.json provenance.json [instruments.json report.html report.md report.json]
 *
 * An items file is named by the digest of its bytes, which the results that it is of name: with one
 * such file all are there.
 *
 * reuse.tar is the receipt that [reuse] takes results from, there with it and only then.
 *
 * SHA256SUMS covers every file but itself and signatures/; statement.json's subjects are the files
 * that SHA256SUMS covers, without itself. So a signature of SHA256SUMS covers all of it.
 */
#ifndef CTL_RECEIPT_LAYOUT_H
#define CTL_RECEIPT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout/layout.h"

#define RECEIPT_SCHEMA 2

#define RECEIPT_VERIFY      "VERIFY.md"
#define RECEIPT_SUMS        LAYOUT_SUMS
#define RECEIPT_STATEMENT   "statement.json"
#define RECEIPT_GRID        LAYOUT_GRID
#define RECEIPT_LOCK        LAYOUT_LOCK
#define RECEIPT_TSQ         LAYOUT_TSQ
#define RECEIPT_TSR         LAYOUT_TSR
#define RECEIPT_JOURNAL     LAYOUT_JOURNAL
#define RECEIPT_RECORDS     "records.jsonl"
#define RECEIPT_ENVIRONMENT "environment.jsonl"
#define RECEIPT_IMPORTED    LAYOUT_IMPORTED
#define RECEIPT_GIVEN       LAYOUT_RECORDS /* of an imported program */
#define RECEIPT_COVERAGE    "coverage.json"
#define RECEIPT_VERDICT     LAYOUT_VERDICT
#define RECEIPT_PROVENANCE  LAYOUT_PROVENANCE
#define RECEIPT_INSTRUMENTS LAYOUT_INSTRUMENTS
#define RECEIPT_SIGNATURES  "signatures/"
#define RECEIPT_ITEMS       "items"
#define RECEIPT_REUSE       "reuse.tar"

/* Limits; over one of them a receipt is refused before it is read. */
#define RECEIPT_FILES_MAX      ((size_t)25000)    /* two for each of 9999 amendments, and some */
#define RECEIPT_NAME_MAX       ((size_t)120)      /* bytes */
#define RECEIPT_FILE_BYTES_MAX ((int64_t)4 << 30) /* of a file that is read piece by piece */
#define RECEIPT_WHOLE_MAX      ((int64_t)LAYOUT_REPORT_MAX) /* of any other: read in one piece */
#define RECEIPT_BYTES_MAX      ((int64_t)8 << 30)  /* of all files; ustar holds no more of one */
#define RECEIPT_LINE_MAX       ((size_t)100 << 20) /* an escaped byte of a result may take six */
#define RECEIPT_STATEMENT_MAX  ((int64_t)16 << 20) /* of statement.json */
#define RECEIPT_SIGNATURES_MAX ((size_t)1000)      /* of different bytes */
#define RECEIPT_COUNTED_MAX    ((int64_t)32 << 30) /* of items, once for each result */

/* Why no receipt has such a file; NULL when it may. */
const char *layout_refuses(const char *name);
/* signatures/NAME.sig; items; whether SHA256SUMS covers the file; and the size that is read at
 * most. */
bool layout_is_signature(const char *name);
bool layout_is_items(const char *name); /* items/SHA256.jsonl */
bool layout_is_summed(const char *name);
int64_t layout_bytes_max(const char *name);

/* Returns the first file that a receipt of this kind must have and that `has` denies; NULL when
 * all are there. */
typedef bool layout_has_fn(void *ctx, const char *name);
const char *layout_missing(bool imported, layout_has_fn *has, void *ctx);
/* A file of the other kind of receipt. */
bool layout_is_of_other_kind(bool imported, const char *name);

#endif
