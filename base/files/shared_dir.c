/*
 * Lists a folder before anything in it is opened (shared_dir.h says why). A name that is listed and
 * cannot be opened was removed or replaced by another host a moment ago: the folder is listed
 * again, and after SHARED_TRIES the caller gets ERR_IO, which decides nothing.
 */
#include "base/files/shared_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/xalloc.h"

#define SHARED_TRIES 3
#define LEVELS_UP    4
#define LEVELS_DOWN  3

/* From linux/magic.h and the file systems' own headers; not all of them are in every distribution's
 * copy. */
static const struct {
    unsigned long magic;
    const char *name;
} NETWORK[] = {
    {0x6969, "NFS"},        {0xff534d42, "CIFS"},  {0xfe534d42, "SMB2"}, {0x517b, "SMB"},
    {0x65735546, "FUSE"},   {0x01021997, "9p"},    {0x5346414f, "AFS"},  {0x00c36400, "Ceph"},
    {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},  {0x564c, "NCP"},      {0x73757245, "Coda"},
    {0x19830326, "BeeGFS"}, {0x7461636f, "OCFS2"}, {0x01161970, "GFS2"}, {0x20030528, "OrangeFS"},
    {0x786f4256, "vboxsf"},
};

const char *shared_network_name(const char *path, struct err *err)
{
    struct statfs fs;
    err_clear(err);
    if (statfs(path, &fs) != 0) {
        (void)err_set_errno(err, errno, "look at the file system of %s", path);
        return NULL;
    }
    unsigned long magic = (unsigned long)fs.f_type & 0xffffffffUL;
    for (size_t i = 0; i < ARRAY_LEN(NETWORK); i++) {
        if (NETWORK[i].magic == magic) {
            return NETWORK[i].name;
        }
    }
    return NULL;
}

static int find_in(const char *folder, const char *name, int levels, bool *there, struct err *err);

/* After opendir() failed: NULL with *rc where the folder is not there, or cannot be opened. */
static DIR *open_listed(const char *folder, int levels, int *rc, struct err *err)
{
    bool listed = false;
    DIR *dir = NULL;
    int why = errno;
    *rc = 0;
    if (why == ENOENT && levels > 0) {
        char *above = path_folder(folder);
        *rc = find_in(above, path_name(folder), levels - 1, &listed, err);
        free(above);
        dir = *rc == 0 && listed ? opendir(folder) : NULL;
        why = *rc == 0 && listed ? errno : why;
    }
    if (dir == NULL && *rc == 0 && why != ENOENT && why != ENOTDIR) {
        *rc = err_set(err, ERR_IO, "open folder %s: %s", folder, strerror(why));
    }
    return dir;
}

/* To the end of the listing: only a whole one replaces what the client remembers. */
static int find_in(const char *folder, const char *name, int levels, bool *there, struct err *err)
{
    int opened = 0;
    DIR *dir = opendir(folder);
    dir = dir != NULL ? dir : open_listed(folder, levels, &opened, err);
    if (dir == NULL) {
        return opened;
    }
    const struct dirent *e;
    errno = 0;
    while ((e = readdir(dir)) != NULL) {
        *there = *there || strcmp(e->d_name, name) == 0;
        errno = 0;
    }
    int rc = errno == 0 ? 0 : err_set(err, ERR_IO, "list %s: %s", folder, strerror(errno));
    (void)closedir(dir);
    return rc;
}

int shared_find(const char *path, bool *there, struct err *err)
{
    char *folder = path_folder(path);
    *there = false;
    int rc = find_in(folder, path_name(path), LEVELS_UP, there, err);
    free(folder);
    return rc;
}

int shared_look(const char *path, enum file_kind *kind, struct err *err)
{
    *kind = FILE_ABSENT;
    for (int i = 0; i < SHARED_TRIES; i++) {
        bool there = false;
        int rc = shared_find(path, &there, err);
        if (rc != 0 || !there) {
            return rc;
        }
        rc = file_look(path, kind, err);
        if (rc == 0 && *kind != FILE_ABSENT) {
            return 0;
        }
    }
    return err_set(err, ERR_IO, "%s: listed, and cannot be examined (a stale handle?)", path);
}

int shared_read(const char *path, size_t max_bytes, struct strbuf *out, struct err *err)
{
    size_t before = out->len;
    int rc = 0;
    for (int i = 0; i < SHARED_TRIES; i++) {
        bool there = false;
        rc = shared_find(path, &there, err);
        if (rc == 0 && !there) {
            return err_set(err, ERR_NOT_FOUND, "%s: no such file", path);
        }
        if (rc == 0) {
            rc = file_read(path, max_bytes, out, err);
        }
        if (rc != ERR_NOT_FOUND && rc != ERR_IO) {
            return rc;
        }
        out->len = before;
    }
    if (rc == ERR_NOT_FOUND) { /* it is listed: its handle is stale */
        err->code = rc = ERR_IO;
    }
    return rc;
}

/* By descriptors, so that each folder is looked up once. Closes fd. */
static void list_below(int fd, int levels)
{
    DIR *dir = fdopendir(fd);
    const struct dirent *e;
    while (dir != NULL && (e = readdir(dir)) != NULL) {
        bool is_folder = e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN);
        int below = is_folder && levels > 0
                        ? openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
                        : -1;
        if (below >= 0) {
            list_below(below, levels - 1);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    } else {
        (void)close(fd);
    }
}

void shared_list_tree(const char *folder)
{
    struct err ignored;
    bool there = false;
    if (shared_network_name(folder, &ignored) == NULL && ignored.code == 0) {
        return;
    }
    if (shared_find(folder, &there, &ignored) == 0 && there) {
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            list_below(fd, LEVELS_DOWN);
        }
    }
}
