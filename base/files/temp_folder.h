/*
 * A folder under $TMPDIR, or /tmp, for as long as its process works in it. The process holds a lock
 * on the folder itself, which ends with it: what a killed one left is removed by the next that
 * makes a folder of the same kind. Folders of other users are left alone.
 */
#ifndef BASE_FILES_TEMP_FOLDER_H
#define BASE_FILES_TEMP_FOLDER_H

#include "base/err.h"

struct temp_folder {
    char *path; /* absolute */
    int fd;     /* open and locked */
};

/* Makes $TMPDIR/prereg-<kind>.XXXXXX, mode 0700. On an error there is nothing to remove. */
int temp_folder_make(const char *kind, struct temp_folder *out, struct err *err) MUST_CHECK;
/* With all that is in it; the error names it where it stays. Frees the path. */
int temp_folder_remove(struct temp_folder *t, struct err *err) MUST_CHECK;

#endif
