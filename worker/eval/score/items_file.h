/*
 * items.jsonl: one header line, then one line an item, in order, a batch of them appended by one
 * write.
 *
 * The header names all that the lines follow from; lines under another header are worth nothing.
 * Beside it is items.sums, a running digest: after each batch one line with the bytes of the file
 * so far and the SHA-256 of the line's digest above (32 bytes) and the batch. The next attempt
 * adopts whole lines, up to the last place whose digest holds and the first line that it does not
 * believe, and continues from there.
 */
#ifndef WORKER_EVAL_SCORE_ITEMS_FILE_H
#define WORKER_EVAL_SCORE_ITEMS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/files/digest.h"
#include "base/layout/layout.h"
#include "base/strbuf.h"

#define ITEMS_SUMS_NAME "items.sums"
/* The new name of a file with another header that was in the working directory. */
#define ITEMS_FILE_ASIDE LAYOUT_ITEMS ".before"

/* Asked for each line in order: whether it is the right line number `index` (from 0). */
struct items_reader {
    bool (*believe)(void *self, size_t index, const char *line, size_t len);
    void *self;
};

enum items_found {
    ITEMS_NONE,    /* no such file, or not one whole line in it */
    ITEMS_OTHER,   /* under another header */
    ITEMS_CHANGED, /* as ITEMS_SAME, and bytes before a place in items.sums are not as written */
    ITEMS_SAME,
};

/* Reads <folder>/items.jsonl and appends to `taken` the bytes of its believed lines (not the
 * header). A file that cannot be read counts as none. `header` without line feed. */
enum items_found items_file_take(const char *folder, const char *header,
                                 const struct items_reader *reader, struct strbuf *taken,
                                 size_t *n_taken, struct strbuf *other_header);

struct items_file {
    int fd; /* -1 when closed */
    int sums_fd;
    int64_t n_bytes;   /* of whole lines */
    struct digest sum; /* the last of items.sums */
};

/* Creates items.jsonl in the working directory with the header and the adopted lines, synced;
 * after an error there is none. */
int items_file_create(struct items_file *f, const char *header, const struct strbuf *taken,
                      struct err *err) MUST_CHECK;
/* Appends whole lines; on error none of them is in the file. */
int items_file_append(struct items_file *f, const struct strbuf *lines, struct err *err) MUST_CHECK;
/* Synced to disk. */
int items_file_sync(struct items_file *f, struct err *err) MUST_CHECK;
void items_file_close(struct items_file *f);

#endif
