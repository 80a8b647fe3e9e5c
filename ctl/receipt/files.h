/*
 * The files of a receipt's folder: what is there, read without ever following a link. The listing
 * is taken once; a file that is not in it does not exist for the verifier. A folder that is changed
 * while it is read can only spoil the answer: each file is opened as what it was listed as.
 */
#ifndef CTL_RECEIPT_FILES_H
#define CTL_RECEIPT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/files/digest.h"
#include "base/strbuf.h"
#include "ctl/receipt/layout.h"
#include "ctl/receipt/mismatch.h"

/* One file of the listing. */
struct receipt_file {
    char *name; /* from the receipt's folder, "amendments/0001.json" */
    int64_t bytes;
    struct digest digest; /* after sums_check() and files_digest() */
};

/* The listing of a receipt's folder, and the folder's descriptor. */
struct receipt_files {
    char *folder;
    int fd;
    struct receipt_file *items; /* sorted by name, by bytes */
    size_t n;
    size_t cap;
    int64_t bytes;
};

/* Lists the folder. What no receipt may hold is a fault; links, devices and sockets are. Always
 * valid to release. */
int files_open(struct receipt_files *files, const char *folder, struct err *err) MUST_CHECK;
void files_release(struct receipt_files *files);
struct receipt_file *files_find(const struct receipt_files *files, const char *name);
bool files_have(const struct receipt_files *files, const char *name);
char *files_path(const struct receipt_files *files, const char *name)
    __attribute__((returns_nonnull));

/* Of a name in the listing: neither it nor its folder is followed when it has become a link. -1
 * with errno. */
int files_open_one(const struct receipt_files *files, const char *name) MUST_CHECK;

/* Appends a whole file. One that is not there is a fault. Sets the fault's place. */
int files_read(const struct receipt_files *files, const char *name, struct strbuf *out,
               struct err *err) MUST_CHECK;
/* The same, parsed strictly; the caller deletes *out. */
int files_read_json(const struct receipt_files *files, const char *name, cJSON **out,
                    struct err *err) MUST_CHECK;
/* The same as a tree that lives in the arena: much quicker, and never for cJSON_Delete. */
int files_read_tree(const struct receipt_files *files, const char *name, struct arena *arena,
                    cJSON **out, struct err *err) MUST_CHECK;
/* One JSON text as such a tree; lax: as json_parse_lax() reads. */
int tree_parse(const char *text, size_t len, bool lax, struct arena *arena, cJSON **out,
               struct err *err) MUST_CHECK;
/* Computes the digest of one file's bytes and stores it in `file`. */
int files_digest(const struct receipt_files *files, struct receipt_file *file,
                 struct err *err) MUST_CHECK;

/* Line by line, in memory of the longest line. */
struct receipt_lines {
    int fd;
    char name[RECEIPT_NAME_MAX + 1];
    size_t line_max;
    struct strbuf buf;
    size_t from; /* bytes of buf that have been returned */
    size_t line; /* the number of the line returned last */
    bool ended;
};

int lines_open(struct receipt_lines *l, const struct receipt_files *files, const char *name,
               size_t line_max, struct err *err) MUST_CHECK;
/* *text is NULL at the end; it lives until the next call and ends with NUL in the place of the
 * newline. Sets the fault's place to the line. A last line without a newline is a fault. */
int lines_next(struct receipt_lines *l, const char **text, size_t *len, struct err *err) MUST_CHECK;
void lines_release(struct receipt_lines *l);

/*
 * A bound on the number of values in an untrusted JSON text: 2^20 and one in 12 bytes. A value
 * takes 64 bytes of memory or more; what preregd writes has one in 20 bytes or fewer.
 */

/* ERR_RANGE when the text has more values than that; it need not be JSON. */
int nodes_check(const char *text, size_t len, struct err *err) MUST_CHECK;

/*
 * SHA256SUMS: "<sha256><space><space><name>\n" for each file that it covers, sorted by name: what
 * `sha256sum -c` reads, and what reviewers sign.
 */

/* Checks that SHA256SUMS lists every covered file and no other, each with its digest, which is
 * kept in `files`. */
int sums_check(struct receipt_files *files, struct err *err) MUST_CHECK;
/* Appends the text over the files of the listing, and keeps their digests in it. */
int sums_make(struct receipt_files *files, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
