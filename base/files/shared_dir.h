/*
 * Reading what another host wrote, through a network file system.
 *
 * Such a file system may answer from what it remembers: a name that was looked up before it existed
 * stays absent for up to a minute, sizes and contents lag behind, and a handle of a file that
 * another host removed or replaced fails (ESTALE). Listing the folder makes the client ask the
 * server again. So a reader of such a file lists its folder first, and never asks for a name that
 * is not listed. Writers publish with rename(2), so that a file is whole once it is seen.
 *
 * An answer "absent" means: not visible here now. It is never proof that the file does not exist.
 */
#ifndef BASE_FILES_SHARED_DIR_H
#define BASE_FILES_SHARED_DIR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/files/file.h"
#include "base/strbuf.h"

/* Lists the folder that `path` is in; *there: the name is listed. A folder that does not exist
 * lists nothing; one that only seems not to, because it was asked for too early, is searched in
 * its own folder, up to four levels up. ERR_IO where the listing fails for another reason. */
int shared_find(const char *path, bool *there, struct err *err) MUST_CHECK;

/* file_look() after shared_find(): ERR_IO also for a name that is listed and stays stale. */
int shared_look(const char *path, enum file_kind *kind, struct err *err) MUST_CHECK;

/* file_read() after shared_find(): ERR_NOT_FOUND for a name that is not listed. A file that was
 * replaced while it was read is read again; one that stays stale is ERR_IO. */
int shared_read(const char *path, size_t max_bytes, struct strbuf *out, struct err *err) MUST_CHECK;

/* On a network file system: lists the folder and what is below it, up to three levels, so that what
 * is opened there next is what the server has. Nothing on a local disk, and no error: what cannot
 * be listed cannot be opened either. */
void shared_list_tree(const char *folder);

/* Whether statfs(2) names a file system of a network (or FUSE, behind which one may be) at `path`:
 * its name, else NULL. *err is set, and NULL returned, where it cannot be asked. */
const char *shared_network_name(const char *path, struct err *err);

#endif
