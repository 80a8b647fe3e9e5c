/* How many bytes were hashed, for a progress display. */
#ifndef BASE_FILES_DIGEST_METER_H
#define BASE_FILES_DIGEST_METER_H

#include <stdatomic.h>
#include <stdint.h>

/* From now on the files that this thread hashes (and those that it has others hash) are counted
 * there; NULL: nowhere. */
void digest_meter(_Atomic int64_t *bytes);

/* Sum of the sizes of the regular files at path, which is one or a folder of them; 0 where that
 * is not known. */
int64_t digest_bytes_at(const char *path);

#endif
