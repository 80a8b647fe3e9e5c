/*
 * Reading with a limit, atomic writing (temporary file, sync, rename, sync of the folder), folders
 * and their checks. Messages begin with the verb and the path: "open cells/x: Permission denied".
 */
#include "base/files/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/uuid.h"
#include "base/xalloc.h"

#define WRITER_BYTES ((size_t)1 << 20)

static enum file_kind kind_of(mode_t mode)
{
    return S_ISREG(mode) ? FILE_REGULAR : S_ISDIR(mode) ? FILE_FOLDER : FILE_OTHER;
}

enum file_kind file_kind_at(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? kind_of(st.st_mode) : FILE_ABSENT;
}

static int stat_failed(const char *path, struct err *err)
{
    int why = errno;
    return err_set(err, why == ENOENT || why == ENOTDIR ? ERR_NOT_FOUND : ERR_IO, "%s: %s", path,
                   strerror(why));
}

int file_look(const char *path, enum file_kind *kind, struct err *err)
{
    struct stat st;
    *kind = FILE_ABSENT;
    if (stat(path, &st) == 0) {
        *kind = kind_of(st.st_mode);
        return 0;
    }
    return stat_failed(path, err) == ERR_NOT_FOUND ? 0 : ERR_IO;
}

int file_lstat(const char *path, struct stat *st, struct err *err)
{
    return lstat(path, st) == 0 ? 0 : stat_failed(path, err);
}

static int read_fd(int fd, const char *path, size_t max_bytes, struct strbuf *out, struct err *err)
{
    size_t before = out->len;
    for (;;) {
        strbuf_reserve(out, (size_t)64 * 1024);
        ssize_t n = read(fd, out->buf + out->len, (size_t)64 * 1024);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_set_errno(err, errno, "read %s", path);
        }
        if (n == 0) {
            out->buf[out->len] = '\0';
            return 0;
        }
        out->len += (size_t)n;
        out->buf[out->len] = '\0';
        if (out->len - before > max_bytes) {
            return err_set(err, ERR_RANGE, "%s is larger than %zu bytes", path, max_bytes);
        }
    }
}

int file_read(const char *path, size_t max_bytes, struct strbuf *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return err_set_errno(err, errno, "open %s", path);
    }
    struct stat st;
    int rc;
    if (fstat(fd, &st) != 0) {
        rc = err_set_errno(err, errno, "stat %s", path);
    } else if (!S_ISREG(st.st_mode)) {
        rc = err_set(err, ERR_INVALID, "%s is %s, not a file", path,
                     S_ISDIR(st.st_mode) ? "a folder" : "a special file");
    } else {
        rc = read_fd(fd, path, max_bytes, out, err);
    }
    (void)close(fd);
    return rc;
}

int file_write_all(int fd, const void *data, size_t len, struct err *err)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_set_errno(err, errno, "write");
        }
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int file_in_memory(const char *name, const void *data, size_t len, int *fd, struct err *err)
{
    int made = memfd_create(name, MFD_CLOEXEC);
    *fd = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, 3);
    int why = errno;
    if (made >= 0) {
        (void)close(made);
    }
    if (*fd < 0) {
        return err_set_errno(err, why, "memfd_create");
    }
    int rc = file_write_all(*fd, data, len, err);
    if (rc == 0 && lseek(*fd, 0, SEEK_SET) != 0) {
        rc = err_set_errno(err, errno, "lseek");
    }
    if (rc != 0) {
        (void)close(*fd);
        *fd = -1;
    }
    return rc;
}

int dir_sync(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_set_errno(err, errno, "open folder %s", path);
    }
    /* Some file systems refuse fsync on folders with EINVAL: there is nothing to sync there. */
    int rc =
        fsync(fd) != 0 && errno != EINVAL ? err_set_errno(err, errno, "sync folder %s", path) : 0;
    (void)close(fd);
    return rc;
}

/* Opens a fresh temporary file beside path. */
static int temp_open(const char *path, mode_t mode, char **temp, struct err *err)
{
    char id[UUID_TEXT_SIZE];
    uuid_make(id);
    char *folder = path_folder(path);
    *temp = xasprintf("%s/.%s.%s.tmp", folder, path_name(path), id);
    free(folder);
    int fd = open(*temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    return fd < 0 ? err_set_errno(err, errno, "create %s", *temp) : fd;
}

static int temp_publish(int fd, const char *temp, const char *path, struct err *err)
{
    if (fsync(fd) != 0) {
        return err_set_errno(err, errno, "sync %s", temp);
    }
    if (rename(temp, path) != 0) {
        return err_set_errno(err, errno, "rename to %s", path);
    }
    char *folder = path_folder(path);
    int rc = dir_sync(folder, err);
    free(folder);
    return rc;
}

int file_writer_open(struct file_writer *w, const char *path, mode_t mode, struct err *err)
{
    *w = (struct file_writer){.fd = -1, .path = xstrdup(path), .pending = STRBUF_INIT};
    int fd = temp_open(path, mode, &w->temp, err);
    if (fd < 0) {
        return fd;
    }
    w->fd = fd;
    return 0;
}

static int writer_flush(struct file_writer *w, struct err *err)
{
    int rc = file_write_all(w->fd, w->pending.buf, w->pending.len, err);
    strbuf_clear(&w->pending);
    return rc == 0 ? 0 : err_wrap(err, "%s", w->path);
}

int file_writer_add(struct file_writer *w, const void *data, size_t len, struct err *err)
{
    if (data != NULL) {
        strbuf_add(&w->pending, data, len);
    }
    return w->pending.len < WRITER_BYTES ? 0 : writer_flush(w, err);
}

int file_writer_publish(struct file_writer *w, struct err *err)
{
    int rc = writer_flush(w, err);
    if (rc == 0) {
        rc = temp_publish(w->fd, w->temp, w->path, err);
    }
    if (rc == 0) {
        (void)close(w->fd);
        w->fd = -1;
    }
    return rc;
}

void file_writer_release(struct file_writer *w)
{
    if (w->fd >= 0) {
        (void)unlink(w->temp);
        (void)close(w->fd);
    }
    w->fd = -1;
    free(w->path);
    free(w->temp);
    w->path = NULL;
    w->temp = NULL;
    strbuf_release(&w->pending);
}

int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode, struct err *err)
{
    struct file_writer w;
    int rc = file_writer_open(&w, path, mode, err);
    if (rc == 0 && (rc = file_write_all(w.fd, data, len, err)) != 0) {
        (void)err_wrap(err, "%s", path);
    }
    if (rc == 0) {
        rc = file_writer_publish(&w, err);
    }
    file_writer_release(&w);
    return rc;
}

static int copy_bytes(int in, int out, struct err *err)
{
    char chunk[65536];
    for (;;) {
        ssize_t n = read(in, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0 ? 0 : err_set_errno(err, errno, "read");
        }
        int rc = file_write_all(out, chunk, (size_t)n, err);
        if (rc != 0) {
            return rc;
        }
    }
}

int file_copy(const char *from, const char *to, mode_t mode, struct err *err)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0) {
        return err_set_errno(err, errno, "open %s", from);
    }
    char *temp = NULL;
    int out = temp_open(to, mode, &temp, err);
    int rc = out < 0 ? out : copy_bytes(in, out, err);
    if (out >= 0 && rc != 0) {
        (void)err_wrap(err, "copy %s to %s", from, to);
    } else if (out >= 0) {
        rc = temp_publish(out, temp, to, err);
    }
    if (out >= 0) {
        if (rc != 0) {
            (void)unlink(temp);
        }
        (void)close(out);
    }
    (void)close(in);
    free(temp);
    return rc;
}

/* One folder whose parent is there; with `durable` its name is on disk before this returns. */
static int make_one(const char *path, mode_t mode, bool durable, struct err *err)
{
    if (mkdir(path, mode) != 0) {
        if (errno == EEXIST && file_kind_at(path) == FILE_FOLDER) {
            return 0;
        }
        return errno == EEXIST ? err_set(err, ERR_EXISTS, "%s exists and is not a folder", path)
                               : err_set_errno(err, errno, "make folder %s", path);
    }
    if (!durable) {
        return 0;
    }
    char *parent = path_folder(path);
    /* A folder that one may write but not read cannot be opened, and so not synced. */
    int rc = access(parent, R_OK) == 0 ? dir_sync(parent, err) : 0;
    free(parent);
    return rc;
}

/* Length of the longest part of the path, short of its last name, that is a folder; 0: none is.
 * Searched from the end: most folders that are made have one or two new ones above them. */
static size_t length_there(const char *path)
{
    char *part = xstrdup(path);
    char *slash;
    size_t n = 0;
    while (n == 0 && (slash = strrchr(part, '/')) != NULL && slash > part) {
        *slash = '\0';
        n = file_kind_at(part) == FILE_FOLDER ? (size_t)(slash - part) : 0;
    }
    free(part);
    return n;
}

/* The first `n_there` bytes of the path are a folder that is not made. */
static int make_rest(const char *path, size_t n_there, mode_t mode, bool durable, struct err *err)
{
    if (path[0] == '\0') {
        return err_set(err, ERR_NOT_FOUND, "make folder: the path is empty");
    }
    char *copy = xstrdup(path);
    int rc = 0;
    for (char *p = copy + n_there + 1; rc == 0; p++) {
        if (*p != '/' && *p != '\0') {
            continue;
        }
        char saved = *p;
        *p = '\0';
        rc = make_one(copy, mode, durable, err);
        *p = saved;
        if (saved == '\0') {
            break;
        }
    }
    free(copy);
    return rc;
}

int dir_make(const char *path, mode_t mode, struct err *err)
{
    return make_rest(path, length_there(path), mode, false, err);
}

int dir_make_durable(const char *path, mode_t mode, struct err *err)
{
    return make_rest(path, length_there(path), mode, true, err);
}

int dir_make_below(const char *base, const char *path, bool durable, struct err *err)
{
    size_t n_base = strlen(base);
    while (n_base > 0 && base[n_base - 1] == '/') {
        n_base--;
    }
    assert(strncmp(path, base, n_base) == 0 && path[n_base] == '/');
    const size_t n_there = length_there(path);
    return make_rest(path, n_there < n_base ? n_base : n_there, 0700, durable, err);
}

static int refuse_owner(const char *path, uid_t owner, struct err *err)
{
    return err_set(err, ERR_REFUSED,
                   "%s belongs to the user with the number %u, not to you (%u): use a folder of "
                   "your own",
                   path, (unsigned)owner, (unsigned)geteuid());
}

int dir_check_private(const char *path, struct err *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return err_set_errno(err, errno, "stat %s", path);
    }
    if (st.st_uid != geteuid()) {
        return refuse_owner(path, st.st_uid, err);
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return err_set(
            err, ERR_REFUSED,
            "%s has mode %04o: others may write to it; chmod 0700 it, once you have made sure that "
            "no other user did",
            path, (unsigned)(st.st_mode & 07777));
    }
    return 0;
}

int dir_check_own(const char *path, struct err *err)
{
    struct stat st;
    int rc = file_lstat(path, &st, err);
    if (rc != 0) {
        return rc;
    }
    if (!S_ISDIR(st.st_mode)) {
        return err_set(err, ERR_REFUSED,
                       "%s is a %s of the user with the number %u, where a folder of your own is "
                       "expected: remove it, once you know who made it",
                       path, S_ISLNK(st.st_mode) ? "symbolic link" : "file", (unsigned)st.st_uid);
    }
    return dir_check_private(path, err);
}

int dir_check_keeps(const char *path, struct err *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return err_set_errno(err, errno, "stat %s", path);
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        return refuse_owner(path, st.st_uid, err);
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (st.st_mode & S_ISVTX) == 0) {
        return err_set(err, ERR_REFUSED,
                       "%s has mode %04o: others may write to it, and replace what is in it; chmod "
                       "0700 it, or set its sticky bit (chmod +t), once you have made sure that no "
                       "other user did",
                       path, (unsigned)(st.st_mode & 07777));
    }
    return 0;
}

static int remove_at(int parent, const char *name, int depth, struct err *err)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
        return 0;
    }
    if (errno != EISDIR && errno != EPERM) {
        return err_set_errno(err, errno, "remove %s", name);
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL || depth > 128) {
        int rc = err_set_errno(err, depth > 128 ? ELOOP : errno, "open folder %s", name);
        if (dir != NULL) {
            (void)closedir(dir);
        } else if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    int rc = 0;
    const struct dirent *e;
    while (rc == 0 && (e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            rc = remove_at(dirfd(dir), e->d_name, depth + 1, err);
        }
    }
    (void)closedir(dir);
    if (rc == 0 && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        rc = err_set_errno(err, errno, "remove folder %s", name);
    }
    return rc;
}

int dir_remove(const char *path, struct err *err)
{
    return remove_at(AT_FDCWD, path, 0, err);
}

int dir_publish(const char *made, const char *path, bool replace, struct err *err)
{
    char *parent = path_folder(path);
    int rc = 0;
    if (renameat2(AT_FDCWD, made, AT_FDCWD, path, RENAME_NOREPLACE) == 0 ||
        (errno == EINVAL && rename(made, path) == 0)) {
        rc = dir_sync(parent, err);
    } else if (errno == EEXIST && replace && file_kind_at(path) == FILE_FOLDER &&
               renameat2(AT_FDCWD, made, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
        rc = dir_sync(parent, err);
        if (rc == 0) {
            rc = dir_remove(made, err);
        }
    } else {
        rc = err_set_errno(err, errno, "rename to %s", path);
    }
    free(parent);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int dir_list(const char *path, struct name_list *out, struct err *err)
{
    *out = (struct name_list){0};
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return err_set_errno(err, errno, "open folder %s", path);
    }
    const struct dirent *e;
    errno = 0;
    while ((e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            ARRAY_GROW(out->names, out->n, out->cap);
            out->names[out->n++] = xstrdup(e->d_name);
        }
        errno = 0;
    }
    int rc = errno != 0 ? err_set_errno(err, errno, "read folder %s", path) : 0;
    (void)closedir(dir);
    if (out->n > 1) {
        qsort(out->names, out->n, sizeof(*out->names), by_name);
    }
    return rc;
}

void name_list_release(struct name_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->names[i]);
    }
    free(list->names);
    *list = (struct name_list){0};
}

char *path_join(const char *a, const char *b)
{
    size_t len = strlen(a);
    bool slash = len > 0 && a[len - 1] == '/';
    return xasprintf("%s%s%s", a, slash ? "" : "/", b);
}

char *path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return xstrdup(".");
    }
    return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

bool path_stays_inside(const char *path)
{
    if (path[0] == '\0' || path[0] == '/') {
        return false;
    }
    for (const char *p = path; p != NULL; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0')) {
            return false;
        }
    }
    return true;
}

char *path_absolute(const char *base, const char *path)
{
    if (path[0] == '/') {
        return xstrdup(path);
    }
    char *cwd = NULL;
    if (base == NULL || base[0] != '/') {
        cwd = getcwd(NULL, 0);
    }
    char *root = base == NULL
                     ? xstrdup(cwd == NULL ? "/" : cwd)
                     : (base[0] == '/' ? xstrdup(base) : path_join(cwd == NULL ? "/" : cwd, base));
    char *out = path_join(root, path);
    free(root);
    free(cwd);
    return out;
}

int path_of_self(struct strbuf *out, struct err *err)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0) {
        return err_set_errno(err, errno, "read /proc/self/exe");
    }
    self[n] = '\0';
    char *folder = path_folder(self);
    strbuf_adds(out, folder);
    free(folder);
    return 0;
}

#define RESERVE_BYTES ((int64_t)64 * 1024 * 1024)
#define RESERVE_FILES ((int64_t)1024)
#define RESERVE_SHARE 16

static int64_t reserve_of(int64_t all, int64_t most)
{
    return all / RESERVE_SHARE < most ? all / RESERVE_SHARE : most;
}

bool disk_room(const char *path, struct disk_room *out)
{
    struct statvfs st;
    if (statvfs(path, &st) != 0) {
        return false;
    }
    *out = (struct disk_room){
        .free_bytes = (int64_t)st.f_bavail * (int64_t)st.f_frsize,
        .reserve_bytes = reserve_of((int64_t)st.f_blocks * (int64_t)st.f_frsize, RESERVE_BYTES),
        .free_files = st.f_files == 0 ? -1 : (int64_t)st.f_favail,
        .reserve_files = reserve_of((int64_t)st.f_files, RESERVE_FILES)};
    return true;
}

bool disk_has_room(const struct disk_room *room, int tenths, const char **what)
{
    bool bytes = room->free_bytes >= room->reserve_bytes / 10 * tenths;
    bool files = room->free_files < 0 || room->free_files >= room->reserve_files * tenths / 10;
    *what = bytes ? "inodes" : "space";
    return bytes && files;
}

int disk_try(const char *folder, int64_t bytes, struct err *err)
{
    char *temp = NULL;
    int fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0) { /* not every file system has files without a name; this name is swept */
        char *path = path_join(folder, "room");
        fd = temp_open(path, 0600, &temp, err);
        free(path);
    }
    int rc = fd < 0 ? fd : 0;
    if (rc == 0 && fallocate(fd, 0, 0, bytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
        rc = err_set_errno(err, errno, "make room for %lld KiB in %s", (long long)(bytes >> 10),
                           folder);
    }
    if (fd >= 0) {
        if (temp != NULL) {
            (void)unlink(temp);
        }
        (void)close(fd);
    }
    free(temp);
    return rc;
}

int64_t disk_free_bytes(const char *path)
{
    struct statvfs st;
    if (statvfs(path, &st) != 0) {
        return -1;
    }
    return (int64_t)st.f_bavail * (int64_t)st.f_frsize;
}
