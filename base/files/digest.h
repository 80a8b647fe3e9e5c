/* SHA-256, through libnettle, which uses the processor's instructions where there are any.
 * Comparisons always use all 32 bytes. */
#ifndef BASE_FILES_DIGEST_H
#define BASE_FILES_DIGEST_H

#include <nettle/sha2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define DIGEST_HEX_SIZE 65 /* 64 lower-case hex digits and NUL */

struct digest {
    unsigned char bytes[32];
};

struct digest_stream {
    struct sha256_ctx state;
};

void digest_start(struct digest_stream *s);
void digest_add(struct digest_stream *s, const void *data, size_t len);
struct digest digest_finish(struct digest_stream *s);
struct digest digest_bytes(const void *data, size_t len);
bool digest_equal(const struct digest *a, const struct digest *b);
bool digest_is_zero(const struct digest *d);
void digest_hex(const struct digest *d, char hex[DIGEST_HEX_SIZE]);
/* Exactly 64 lower-case hex digits, nothing else. */
int digest_from_hex(const char *hex, struct digest *out, struct err *err) MUST_CHECK;

/* Of a regular file's bytes; n_bytes may be NULL. Links are followed. */
int digest_file(const char *path, struct digest *out, int64_t *n_bytes, struct err *err) MUST_CHECK;

/* Of a folder: SHA-256 of its files' sorted "<sha256><space><space><relpath>\n" lines (sorted by
 * relpath bytes; docs/program-format.md). Links and special files anywhere inside are refused
 * (ERR_INVALID).
 */
int digest_folder(const char *path, struct digest *out, struct err *err) MUST_CHECK;

/* digest_file or digest_folder, whichever path is. */
int digest_path(const char *path, struct digest *out, struct err *err) MUST_CHECK;

/* How many bytes were hashed, for a progress display. */

/* From now on the files that this thread hashes (and those that it has others hash) are counted
 * there; NULL: nowhere. */
void digest_meter(_Atomic int64_t *bytes);

/* Sum of the sizes of the regular files at path, which is one or a folder of them; 0 where that
 * is not known. */
int64_t digest_bytes_at(const char *path);

#endif
