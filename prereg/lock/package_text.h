/*
 * The text files of a Python environment, read as Python reads them: pyvenv.cfg, .pth files, and
 * the RECORD of a package. Nothing of them is trusted, and no file is opened here.
 */
#ifndef PREREG_LOCK_PACKAGE_TEXT_H
#define PREREG_LOCK_PACKAGE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/files/digest.h"

/* The value of a key of pyvenv.cfg, for free(); NULL when it has none. Of several lines the last
 * one counts, in any case. */
char *pyvenv_setting(const char *text, const char *key);

/* The first line of a .pth file that names a folder: *n is its length. NULL: there is none. */
const char *pth_folder(const char *text, size_t *n);

/* A line of a RECORD: "path,sha256=HASH,size". */
struct record_entry {
    char *path;
    bool has_digest; /* not of RECORD itself and of bytecode */
    struct digest digest;
};

/* Reads a line of n bytes without its end. False when it has no such form; the caller frees the
 * path otherwise. An empty line is an empty path. */
bool record_entry_read(const char *line, size_t n, struct record_entry *out);

/* Whether a path from a folder on, which is `depth` folders deep in the environment, stays in it.
 */
bool package_path_stays_in(const char *path, int depth);

/* Whether it is bytecode that Python rewrites; elsewhere a module may be bytecode alone. */
bool package_path_is_cache(const char *path);

#endif
