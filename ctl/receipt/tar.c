/*
 * libarchive reads and writes the format; what may be in it is decided here. An archive is
 * untrusted: every entry is checked by name, kind and size before a file is made, files are made
 * with O_EXCL below a folder of our own, and nothing may follow after the archive's end, where no
 * sum would cover it.
 */
#include "ctl/receipt/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "ctl/receipt/files.h"

#define BLOCK_BYTES ((size_t)64 << 10)
#define PADDING_MAX ((size_t)1 << 20) /* far more than any tar pads to */

/* ---- writing ---- */

/* The state of writing an archive. */
struct writing {
    struct archive *a;
    struct archive_entry *entry;
    struct file_writer *w;
    const char *name;
    struct wall_time time;
    struct err *err;
};

/* libarchive's output goes to the file writer; an error is kept in t->err. */
static la_ssize_t on_write(struct archive *a, void *ctx, const void *data, size_t len)
{
    struct writing *t = ctx;
    (void)a;
    return file_writer_add(t->w, data, len, t->err) == 0 ? (la_ssize_t)len : -1;
}

/* The error of libarchive, unless writing failed for a reason that is known already. */
static int archive_says(struct archive *a, struct err *err)
{
    const char *said = archive_error_string(a);
    return err->code != 0 ? err->code
                          : err_set(err, ERR_IO, "tar: %s", said != NULL ? said : "no reason");
}

/* A header with nothing of this machine: owner 0, mode 0644, the given time. */
static int add_header(struct writing *t, const char *name, int64_t bytes)
{
    char *path = xasprintf("%s/%s", t->name, name);
    archive_entry_clear(t->entry);
    archive_entry_set_pathname(t->entry, path);
    archive_entry_set_size(t->entry, bytes);
    archive_entry_set_filetype(t->entry, AE_IFREG);
    archive_entry_set_perm(t->entry, 0644);
    archive_entry_set_mtime(t->entry, (time_t)(t->time.ms / 1000), 0);
    archive_entry_set_uid(t->entry, 0);
    archive_entry_set_gid(t->entry, 0);
    free(path);
    return archive_write_header(t->a, t->entry) == ARCHIVE_OK ? 0 : archive_says(t->a, t->err);
}

/* One file; it must keep the size that it was listed with. */
static int add_file(struct writing *t, const struct receipt_files *files, size_t i)
{
    const struct receipt_file *file = &files->items[i];
    static char block[BLOCK_BYTES];
    int64_t left = file->bytes;
    int rc = add_header(t, file->name, file->bytes);
    int fd = rc == 0 ? files_open_one(files, file->name) : -1;
    if (rc == 0 && fd < 0) {
        rc = err_set_errno(t->err, errno, "open %s", file->name);
    }
    while (rc == 0 && left > 0) {
        ssize_t n = read(fd, block, sizeof(block));
        if (n < 0) {
            rc = err_set_errno(t->err, errno, "read %s", file->name);
        } else if (n == 0 || n > left) {
            rc = err_set(t->err, ERR_CORRUPT, "%s was changed while it was packed", file->name);
        } else if (archive_write_data(t->a, block, (size_t)n) != n) {
            rc = archive_says(t->a, t->err);
        } else {
            left -= n;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

/* All files in the listing's order, then the end of the archive. */
static int write_files(struct writing *t, const struct receipt_files *files)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < files->n; i++) {
        rc = add_file(t, files, i);
    }
    if (rc == 0 && archive_write_close(t->a) != ARCHIVE_OK) {
        rc = archive_says(t->a, t->err);
    }
    return rc;
}

/* The listing of the folder decides what is packed, so it can hold nothing but a receipt. */
int tar_write(const char *folder, const char *name, struct wall_time time, struct file_writer *w,
              struct err *err)
{
    struct receipt_files files;
    struct err f = {0};
    struct writing t = {.w = w, .name = name, .time = time, .err = err};
    err_clear(err);
    int rc = files_open(&files, folder, &f) != 0 ? err_join(&f, err) : 0;
    t.a = archive_write_new();
    t.entry = archive_entry_new();
    if (rc != 0) {
        goto out;
    }
    if (t.a == NULL || t.entry == NULL) {
        rc = err_set(err, ERR_OTHER, "no memory for the archive");
        goto out;
    }
    if (archive_write_set_format_ustar(t.a) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(t.a, 1) != ARCHIVE_OK ||
        archive_write_open(t.a, &t, NULL, on_write, NULL) != ARCHIVE_OK) {
        rc = archive_says(t.a, err);
        goto out;
    }
    rc = write_files(&t, &files);
out:
    archive_entry_free(t.entry);
    (void)archive_write_free(t.a);
    files_release(&files);
    return rc;
}

/* ---- reading ---- */

/* The state of extracting an archive. */
struct unpacking {
    struct archive *a;
    const char *folder;
    char top[256]; /* the one folder that contains everything; "" before the first entry */
    int64_t bytes;
    size_t n;         /* files */
    size_t n_entries; /* and folders */
    struct err *err;
};

/* The fault for an archive that libarchive cannot read. */
static int damaged(struct unpacking *u)
{
    const char *said = archive_error_string(u->a);
    return err_set(u->err, ERR_LOCK, "is not a complete tar archive: %s",
                   said != NULL ? said : "no reason given");
}

/* The name inside the receipt's folder; NULL for that folder itself or after a fault. */
static const char *inner_name(struct unpacking *u, const char *path, int *rc)
{
    const char *slash = path == NULL ? NULL : strchr(path, '/');
    const size_t n = slash == NULL ? 0 : (size_t)(slash - path);
    err_at(u->err, path == NULL ? "an entry without a name" : path, 0);
    if (n == 0 || n >= sizeof(u->top) || strncmp(path, "..", n) == 0) {
        *rc = err_set(u->err, ERR_LOCK,
                      "an archive of a receipt holds one folder, and nothing beside it");
        return NULL;
    }
    /* the first entry decides the folder's name */
    if (u->top[0] == '\0') {
        memcpy(u->top, path, n);
        u->top[n] = '\0';
    }
    if (strncmp(u->top, path, n) != 0 || u->top[n] != '\0') {
        *rc = err_set(u->err, ERR_LOCK,
                      "an archive of a receipt holds one folder, and nothing beside it");
        return NULL;
    }
    return slash + 1;
}

/* Kind, name and size of an entry; counts against the limits of a receipt. */
static int check_entry(struct unpacking *u, struct archive_entry *e, const char *name)
{
    if (archive_entry_hardlink(e) != NULL || archive_entry_symlink(e) != NULL) {
        return err_set(u->err, ERR_LOCK, "is a link: a receipt holds files");
    }
    if (archive_entry_filetype(e) != AE_IFREG || archive_entry_sparse_count(e) > 0 ||
        !archive_entry_size_is_set(e)) {
        return err_set(u->err, ERR_LOCK,
                       "is not a plain file, but a device, pipe, sparse file or the like");
    }
    const char *why = layout_refuses(name);
    if (why != NULL) {
        return err_set(u->err, ERR_LOCK, "%s", why);
    }
    const int64_t bytes = archive_entry_size(e);
    if (bytes < 0 || bytes > layout_bytes_max(name)) {
        return err_set(u->err, ERR_LOCK, "has %lld bytes; %lld are read at most", (long long)bytes,
                       (long long)layout_bytes_max(name));
    }
    u->bytes += bytes;
    u->n++;
    return u->bytes <= RECEIPT_BYTES_MAX
               ? 0
               : err_set(u->err, ERR_LOCK, "too many bytes for a receipt");
}

/* Writes exactly `bytes` bytes of the entry. */
static int copy_data(struct unpacking *u, int fd, int64_t bytes)
{
    static char block[BLOCK_BYTES];
    while (bytes > 0) {
        const size_t want = bytes < (int64_t)sizeof(block) ? (size_t)bytes : sizeof(block);
        la_ssize_t n = archive_read_data(u->a, block, want);
        if (n <= 0) {
            return damaged(u);
        }
        if (file_write_all(fd, block, (size_t)n, u->err) != 0) {
            return mismatch_code(u->err);
        }
        bytes -= n;
    }
    return 0;
}

/* Extracts one file; O_EXCL finds names that occur twice. */
static int take_out(struct unpacking *u, struct archive_entry *e, const char *name)
{
    char *path = path_join(u->folder, name);
    char *parent = path_folder(path);
    int rc = dir_make(parent, 0700, u->err) != 0 ? mismatch_code(u->err) : 0;
    if (rc != 0) {
        goto out;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        rc = copy_data(u, fd, archive_entry_size(e));
        (void)close(fd);
    } else if (errno == EEXIST) {
        rc = err_set(u->err, ERR_LOCK, "is in the archive twice");
    } else {
        (void)err_set_errno(u->err, errno, "write %s", path);
        rc = mismatch_code(u->err);
    }
out:
    free(parent);
    free(path);
    return rc;
}

/* Folders are counted and otherwise ignored; files are checked and extracted. */
static int take_entry(struct unpacking *u, struct archive_entry *e)
{
    int rc = 0;
    const char *name = inner_name(u, archive_entry_pathname(e), &rc);
    if (rc != 0) {
        return rc;
    }
    if (++u->n_entries > RECEIPT_FILES_MAX) {
        return err_set(u->err, ERR_LOCK, "more entries than a receipt has files");
    }
    if (archive_entry_filetype(e) == AE_IFDIR) {
        return 0; /* made where a file needs it */
    }
    rc = check_entry(u, e, name);
    return rc == 0 ? take_out(u, e, name) : rc;
}

/* Extracts entries until the end; anything but a clean end is a fault. */
static int take_all(struct unpacking *u)
{
    struct archive_entry *e = NULL;
    for (;;) {
        int got = archive_read_next_header(u->a, &e);
        if (got == ARCHIVE_EOF) {
            break;
        }
        if (got != ARCHIVE_OK) {
            return damaged(u);
        }
        int rc = take_entry(u, e);
        if (rc != 0) {
            return rc;
        }
    }
    err_at(u->err, "", 0);
    return u->n > 0 ? 0 : err_set(u->err, ERR_LOCK, "the archive holds nothing");
}

/* Checks that only padding follows the archive's end: no sum covers what is there. A pipe cannot
 * be checked. */
static int check_rest(struct unpacking *u, int fd)
{
    static char block[BLOCK_BYTES];
    /* libarchive stops at the two empty blocks, not at the end of the file */
    const off_t end = (off_t)archive_filter_bytes(u->a, 0);
    size_t left = PADDING_MAX + 1;
    ssize_t n = lseek(fd, 0, SEEK_CUR) < 0 ? 0 : 1;
    for (off_t at = end; n > 0 && left > 0; at += n, left -= (size_t)n) {
        n = pread(fd, block, left < sizeof(block) ? left : sizeof(block), at);
        if (n < 0) {
            (void)err_set_errno(u->err, errno, "read the archive's end");
            return mismatch_code(u->err);
        }
        for (ssize_t i = 0; i < n; i++) {
            if (block[i] != '\0') {
                return err_set(u->err, ERR_LOCK, "something follows after the archive's end");
            }
        }
    }
    return left > 0 ? 0
                    : err_set(u->err, ERR_LOCK, "too many bytes follow after the archive's end");
}

/* Only the tar format is enabled: no compression, whose size could not be bounded. */
int tar_read(const char *path, const char *folder, struct err *err)
{
    struct unpacking u = {.folder = folder, .err = err};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = 0;
    err_at(err, path, 0);
    if (fd < 0) {
        (void)err_set_errno(err, errno, "open %s", path);
        return mismatch_code(err);
    }
    u.a = archive_read_new();
    if (u.a == NULL || archive_read_support_format_tar(u.a) != ARCHIVE_OK ||
        archive_read_open_fd(u.a, fd, BLOCK_BYTES) != ARCHIVE_OK) {
        rc = u.a == NULL ? err_set(err, ERR_LOCK, "no memory for the archive") : damaged(&u);
        goto out;
    }
    rc = take_all(&u);
    if (rc == 0) {
        rc = check_rest(&u, fd);
    }
out:
    (void)archive_read_free(u.a);
    (void)close(fd);
    return rc;
}
