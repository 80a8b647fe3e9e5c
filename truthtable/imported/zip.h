/*
 * A zip file from elsewhere, read entry by entry. Its central directory says what is in it, as for
 * every other reader: bytes that no entry of it names are not read, and of several entries with one
 * name the last one counts. Read are stored, deflated and Zstandard entries, and ZIP64.
 *
 * Nothing is believed: places and sizes have to lie within the file, no more is unpacked of an
 * entry than the directory states, and its checksum has to hold.
 */
#ifndef TRUTHTABLE_IMPORTED_ZIP_H
#define TRUTHTABLE_IMPORTED_ZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

#define ZIP_BYTES_MAX     ((int64_t)16 << 30) /* of a file */
#define ZIP_DIRECTORY_MAX ((int64_t)128 << 20)
#define ZIP_ENTRIES_MAX   ((size_t)1 << 20)

struct zip_entry {
    const char *name;
    int64_t packed; /* bytes in the file */
    int64_t bytes;  /* unpacked */
    int64_t offset; /* of its local header */
    uint32_t crc;
    unsigned method;
};

struct zip {
    int fd; /* the caller's */
    int64_t size;
    int64_t directory; /* where the central directory begins, behind all entries */
    struct strbuf text;
    struct zip_entry *entries; /* sorted by name, one of each */
    size_t n;
};

/* Reads the directory of the file. ERR_SYNTAX: it is damaged; ERR_RANGE: more than the limits.
 * Valid to release whatever happened. */
int zip_open(struct zip *z, int fd, struct err *err) MUST_CHECK;
void zip_release(struct zip *z);

/* NULL when there is none of that name. */
const struct zip_entry *zip_find(const struct zip *z, const char *name);

/* Replaces `out` by the entry, unpacked. ERR_RANGE: it has more than `max` bytes; ERR_SYNTAX: it is
 * not what the directory states. */
int zip_read(const struct zip *z, const struct zip_entry *e, int64_t max, struct strbuf *out,
             struct err *err) MUST_CHECK;

#endif
