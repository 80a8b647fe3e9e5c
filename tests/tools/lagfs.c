/*
 * lagfs BACKING DELAY_MS MOUNT_A MOUNT_B: a test tool, two FUSE mounts of one folder that behave as
 * two hosts do on a network file system. Each mount sees its own changes at once and the other's
 * after the delay (lag_history.h), keeps names absent for that long, answers ESTALE for what the
 * other one has removed, and has locks (flock) of its own. As on NFS, files cannot be exchanged or
 * reserved, and have a name.
 *
 * It runs in the foreground until both mounts are gone (fusermount3 -u). One lock serializes the
 * calls of both.
 */
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/tools/lag_history.h"

static int root = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int here(void)
{
    return (int)(intptr_t)fuse_get_context()->private_data;
}

static const char *at(const char *path)
{
    return path[1] == '\0' ? "." : path + 1;
}

/* The answer to a call of the kernel, from a result as of a system call. */
static int done(int rc)
{
    int why = rc < 0 ? -errno : 0;
    (void)pthread_mutex_unlock(&lock);
    return why;
}

/* Whether this mount sees the path at all: 0, or what the kernel is answered, with the lock let go.
 */
static int enter(const char *path, int *old)
{
    (void)pthread_mutex_lock(&lock);
    enum lag_seen seen = lag_look(here(), at(path), old);
    if (seen == LAG_ABSENT || seen == LAG_STALE) {
        (void)pthread_mutex_unlock(&lock);
        return seen == LAG_ABSENT ? -ENOENT : -ESTALE;
    }
    return 0;
}

static void enter_to_change(const char *path)
{
    (void)pthread_mutex_lock(&lock);
    lag_note_name(here(), at(path));
}

static void show_size(struct stat *st)
{
    int ignored;
    if (S_ISREG(st->st_mode)) {
        st->st_size = lag_size(here(), st, &ignored);
    }
}

static int op_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    int old = -1;
    (void)pthread_mutex_lock(&lock);
    int rc;
    if (fi != NULL) {
        rc = fstat((int)fi->fh, st);
    } else {
        enum lag_seen seen = lag_look(here(), at(path), &old);
        errno = ENOENT;
        rc = seen == LAG_ABSENT ? -1
             : seen == LAG_NOW  ? fstatat(root, at(path), st, AT_SYMLINK_NOFOLLOW)
                                : fstat(old, st);
    }
    if (rc == 0) {
        show_size(st);
    }
    return done(rc);
}

static int op_readlink(const char *path, char *out, size_t size)
{
    int old = -1;
    int rc = enter(path, &old);
    if (rc != 0) {
        return rc;
    }
    ssize_t n =
        old < 0 ? readlinkat(root, at(path), out, size - 1) : readlinkat(old, "", out, size - 1);
    if (n >= 0) {
        out[n] = '\0';
    }
    return done(n < 0 ? -1 : 0);
}

struct listing {
    void *buf;
    fuse_fill_dir_t fill;
};

static void add_name(void *ctx, const char *name)
{
    struct listing *l = ctx;
    (void)l->fill(l->buf, name, NULL, 0, (enum fuse_fill_dir_flags)0);
}

static int op_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    struct listing l = {buf, fill};
    (void)offset;
    (void)fi;
    (void)flags;
    (void)pthread_mutex_lock(&lock);
    int fd = openat(root, at(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        return done(-1);
    }
    lag_listed(here(), at(path));
    const struct dirent *e;
    while ((e = readdir(dir)) != NULL) {
        char full[8192];
        int old;
        (void)snprintf(full, sizeof(full), "%s%s%s", path[1] == '\0' ? "" : at(path),
                       path[1] == '\0' ? "" : "/", e->d_name);
        if (e->d_name[0] == '.' && (e->d_name[1] == '\0' || strcmp(e->d_name, "..") == 0)) {
            add_name(&l, e->d_name);
        } else if (lag_look(here(), full, &old) != LAG_ABSENT) {
            add_name(&l, e->d_name);
        }
    }
    lag_each_removed(here(), at(path), add_name, &l);
    lag_listed(here(), at(path)); /* a listing leaves nothing behind as absent */
    (void)closedir(dir);
    return done(0);
}

static int op_mknod(const char *path, mode_t mode, dev_t dev)
{
    enter_to_change(path);
    return done(mknodat(root, at(path), mode, dev));
}

static int op_mkdir(const char *path, mode_t mode)
{
    enter_to_change(path);
    return done(mkdirat(root, at(path), mode));
}

static int op_unlink(const char *path)
{
    enter_to_change(path);
    return done(unlinkat(root, at(path), 0));
}

static int op_rmdir(const char *path)
{
    enter_to_change(path);
    return done(unlinkat(root, at(path), AT_REMOVEDIR));
}

static int op_symlink(const char *to, const char *path)
{
    enter_to_change(path);
    return done(symlinkat(to, root, at(path)));
}

static int op_rename(const char *from, const char *to, unsigned flags)
{
    if (flags != 0) {
        return -EINVAL; /* as NFS */
    }
    enter_to_change(from);
    lag_note_name(here(), at(to));
    return done(renameat(root, at(from), root, at(to)));
}

static int op_link(const char *from, const char *to)
{
    enter_to_change(to);
    return done(linkat(root, at(from), root, at(to), 0));
}

static int op_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    (void)pthread_mutex_lock(&lock);
    return done(fi != NULL ? fchmod((int)fi->fh, mode) : fchmodat(root, at(path), mode, 0));
}

static int op_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
    (void)pthread_mutex_lock(&lock);
    return done(fi != NULL ? fchown((int)fi->fh, uid, gid)
                           : fchownat(root, at(path), uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int op_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    (void)pthread_mutex_lock(&lock);
    int fd = fi != NULL ? (int)fi->fh : openat(root, at(path), O_WRONLY | O_CLOEXEC);
    int rc = -1;
    if (fd >= 0) {
        lag_note_content(here(), fd, size, -1);
        rc = ftruncate(fd, size);
    }
    int why = errno;
    if (fi == NULL && fd >= 0) {
        (void)close(fd);
    }
    errno = why;
    return done(rc);
}

static int op_utimens(const char *path, const struct timespec ts[2], struct fuse_file_info *fi)
{
    (void)pthread_mutex_lock(&lock);
    return done(fi != NULL ? futimens((int)fi->fh, ts)
                           : utimensat(root, at(path), ts, AT_SYMLINK_NOFOLLOW));
}

/* The kernel has no handle for appending of its own here: it gives offsets. */
static int op_open(const char *path, struct fuse_file_info *fi)
{
    int old = -1;
    int rc = enter(path, &old);
    if (rc != 0) {
        return rc;
    }
    int flags = (fi->flags & ~(O_APPEND | O_TRUNC | O_CREAT | O_EXCL)) | O_CLOEXEC;
    int fd;
    if (old >= 0 && (fi->flags & O_ACCMODE) == O_RDONLY) {
        char name[64];
        (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", old);
        fd = open(name, (flags & ~O_NOFOLLOW) | O_NONBLOCK);
    } else {
        fd = openat(root, at(path), flags);
    }
    if (fd >= 0 && (fi->flags & O_TRUNC) != 0) {
        lag_note_content(here(), fd, 0, -1);
        if (ftruncate(fd, 0) != 0) {
            (void)close(fd);
            fd = -1;
        }
    }
    fi->fh = (uint64_t)fd;
    return done(fd < 0 ? -1 : 0);
}

static int op_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    enter_to_change(path);
    int fd = openat(root, at(path), (fi->flags & ~O_APPEND) | O_CREAT | O_CLOEXEC, mode);
    fi->fh = (uint64_t)fd;
    return done(fd < 0 ? -1 : 0);
}

static int op_read(const char *path, char *out, size_t size, off_t from, struct fuse_file_info *fi)
{
    struct stat st;
    int copy = -1;
    ssize_t n = 0;
    (void)path;
    (void)pthread_mutex_lock(&lock);
    if (fstat((int)fi->fh, &st) != 0) {
        return done(-1);
    }
    if (lag_is_stale(here(), &st)) {
        errno = ESTALE;
        return done(-1);
    }
    off_t seen = lag_size(here(), &st, &copy);
    if (from < seen) {
        size_t most = (size_t)(seen - from) < size ? (size_t)(seen - from) : size;
        n = pread(copy >= 0 ? copy : (int)fi->fh, out, most, from);
    }
    int rc = done(n < 0 ? -1 : 0);
    return rc != 0 ? rc : (int)n;
}

static int op_write(const char *path, const char *data, size_t size, off_t from,
                    struct fuse_file_info *fi)
{
    (void)path;
    (void)pthread_mutex_lock(&lock);
    lag_note_content(here(), (int)fi->fh, from, (off_t)size);
    ssize_t n = pwrite((int)fi->fh, data, size, from);
    int rc = done(n < 0 ? -1 : 0);
    return rc != 0 ? rc : (int)n;
}

static int op_release(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    return close((int)fi->fh) == 0 ? 0 : -errno;
}

static int op_fsync(const char *path, int data, struct fuse_file_info *fi)
{
    (void)path;
    return (data != 0 ? fdatasync((int)fi->fh) : fsync((int)fi->fh)) == 0 ? 0 : -errno;
}

static int op_statfs(const char *path, struct statvfs *st)
{
    (void)path;
    return fstatvfs(root, st) == 0 ? 0 : -errno;
}

/* Nothing is remembered by the kernel: what a mount may see is decided here alone. */
static void *op_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    (void)conn;
    config->use_ino = 1;
    config->hard_remove = 1;
    config->direct_io = 1;
    config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
    return fuse_get_context()->private_data;
}

static const struct fuse_operations OPS = {
    .init = op_init,
    .getattr = op_getattr,
    .readlink = op_readlink,
    .readdir = op_readdir,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .symlink = op_symlink,
    .rename = op_rename,
    .link = op_link,
    .chmod = op_chmod,
    .chown = op_chown,
    .truncate = op_truncate,
    .utimens = op_utimens,
    .open = op_open,
    .create = op_create,
    .read = op_read,
    .write = op_write,
    .release = op_release,
    .fsync = op_fsync,
    .statfs = op_statfs,
};

static void *serve(void *arg)
{
    (void)fuse_loop(arg);
    fuse_unmount(arg);
    return NULL;
}

static struct fuse *mount_at(const char *folder, int no)
{
    static char words[][40] = {"lagfs", "-o", "default_permissions,fsname=lagfs"};
    char *argv[] = {words[0], words[1], words[2], NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, argv);
    struct fuse *f = fuse_new(&args, &OPS, sizeof(OPS), (void *)(intptr_t)no);
    if (f == NULL || fuse_mount(f, folder) != 0) {
        (void)fprintf(stderr, "lagfs: cannot mount %s\n", folder);
        exit(1);
    }
    return f;
}

int main(int argc, char **argv)
{
    pthread_t threads[LAG_MOUNTS];
    struct rlimit files;
    char *end = NULL;
    long delay = argc == 5 ? strtol(argv[2], &end, 10) : -1;
    if (delay < 0 || *end != '\0') {
        (void)fprintf(stderr, "usage: lagfs BACKING DELAY_MS MOUNT_A MOUNT_B\n");
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    (void)umask(0);
    root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        perror(argv[1]);
        return 1;
    }
    lag_init(root, delay);
    for (int i = 0; i < LAG_MOUNTS; i++) {
        struct fuse *f = mount_at(argv[3 + i], i);
        if (pthread_create(&threads[i], NULL, serve, f) != 0) {
            return 1;
        }
    }
    (void)printf("mounted\n");
    (void)fflush(stdout);
    for (int i = 0; i < LAG_MOUNTS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return 0;
}
