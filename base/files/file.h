/*
 * Files: whole reads with a limit, atomic durable writes, folders, locks.
 * Paths are C strings; functions returning char * hand out heap memory.
 */
#ifndef BASE_FILES_FILE_H
#define BASE_FILES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"

struct stat;

enum file_kind { FILE_ABSENT, FILE_REGULAR, FILE_FOLDER, FILE_OTHER };

/* Returns what is at path, links followed. FILE_ABSENT also where that cannot be determined: what
 * decides about a user's work calls file_look(). */
enum file_kind file_kind_at(const char *path);
/* The same; absent is only what certainly is not there (ENOENT, ENOTDIR), anything else that keeps
 * it from being examined (EIO, EACCES, a stale handle, ...) is ERR_IO. */
int file_look(const char *path, enum file_kind *kind, struct err *err) MUST_CHECK;
/* lstat(2), with ERR_NOT_FOUND and ERR_IO kept apart likewise. */
int file_lstat(const char *path, struct stat *st, struct err *err) MUST_CHECK;

/* Appends the whole regular file to out. ERR_RANGE over max_bytes, ERR_INVALID for a folder or
 * device. */
int file_read(const char *path, size_t max_bytes, struct strbuf *out, struct err *err) MUST_CHECK;

/* Writes path so that after a crash either the old or the new whole content is there: temporary
 * file in the same folder, fsync, rename, fsync of the folder. */
int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode,
                      struct err *err) MUST_CHECK;

/* The same for a file that is too large for memory, written piece by piece: nothing is at path
 * until it is published. Always valid to release, which takes back what was not published. */
struct file_writer {
    int fd; /* -1 when closed */
    char *path;
    char *temp;
    struct strbuf pending; /* the caller may append to it instead of calling file_writer_add */
};
int file_writer_open(struct file_writer *w, const char *path, mode_t mode,
                     struct err *err) MUST_CHECK;
/* Appends, and writes what has gathered once that is much; data may be NULL. */
int file_writer_add(struct file_writer *w, const void *data, size_t len,
                    struct err *err) MUST_CHECK;
int file_writer_publish(struct file_writer *w, struct err *err) MUST_CHECK;
void file_writer_release(struct file_writer *w);

/* All of data to fd, across short writes and EINTR. */
int file_write_all(int fd, const void *data, size_t len, struct err *err) MUST_CHECK;

/* A file of these bytes that is on no disk and is gone when it is closed; read from its start.
 * For a child that takes files only: never descriptor 0, 1 or 2, even where those are closed.
 * /proc/PID/fd shows it as "/memfd:<name> (deleted)". */
int file_in_memory(const char *name, const void *data, size_t len, int *fd,
                   struct err *err) MUST_CHECK;

/* Copies a regular file atomically (as file_write_atomic). */
int file_copy(const char *from, const char *to, mode_t mode, struct err *err) MUST_CHECK;

/* mkdir -p; no error when it is there already. */
int dir_make(const char *path, mode_t mode, struct err *err) MUST_CHECK;
/* The same; the parent of each new folder is synced, so that no power cut takes it back. */
int dir_make_durable(const char *path, mode_t mode, struct err *err) MUST_CHECK;
/* Makes what is missing of `path` below `base`, with which the path begins, for the user alone.
 * Never makes `base`: a state folder that was moved away must not be recreated by a job that was
 * running. ERR_NOT_FOUND when it is absent. */
int dir_make_below(const char *base, const char *path, bool durable, struct err *err) MUST_CHECK;
/* ERR_REFUSED when the folder belongs to another user, or group or others may write to it. */
int dir_check_private(const char *path, struct err *err) MUST_CHECK;
/* The same, and when it is a symbolic link, whichever user made it: for a name in a folder in which
 * others may make names. */
int dir_check_own(const char *path, struct err *err) MUST_CHECK;
/* ERR_REFUSED when another user could rename or remove a folder of ours in it: it belongs to
 * another user, who is not root, or group or others may write to it and its sticky bit is not set.
 */
int dir_check_keeps(const char *path, struct err *err) MUST_CHECK;
int dir_sync(const char *path, struct err *err) MUST_CHECK;
/* rm -rf without following links; no error when absent. */
int dir_remove(const char *path, struct err *err) MUST_CHECK;

/* Gives a finished folder its name in one step. What is there is ERR_EXISTS or, with `replace`, a
 * folder that is exchanged for it and removed; file systems that cannot exchange (NFS) replace
 * nothing but an empty one. */
int dir_publish(const char *made, const char *path, bool replace, struct err *err) MUST_CHECK;

struct name_list {
    char **names; /* sorted by bytes, without . and .. */
    size_t n;
    size_t cap;
};

int dir_list(const char *path, struct name_list *out,
             struct err *err) MUST_CHECK; /* out valid on error too */
void name_list_release(struct name_list *list);

char *path_join(const char *a, const char *b) __attribute__((returns_nonnull));
/* The folder part ("." when there is none) and the last component. */
char *path_folder(const char *path) __attribute__((returns_nonnull));
const char *path_name(const char *path) __attribute__((returns_nonnull));
/* A relative path whose every step leads further down: what others name inside a folder of ours. */
bool path_stays_inside(const char *path);
/* Absolute form without resolving links; relative paths are taken from base (or the working
 * directory). */
char *path_absolute(const char *base, const char *path) __attribute__((returns_nonnull));
/* The folder of this executable, or an error. */
int path_of_self(struct strbuf *out, struct err *err) MUST_CHECK;

/* Free bytes for an unprivileged writer on path's file system; -1 when it cannot be asked. */
int64_t disk_free_bytes(const char *path);

/* What a file system has left for an unprivileged writer, and what is kept free of it: 64 MiB and
 * 1024 files, or a sixteenth of a small one. */
struct disk_room {
    int64_t free_bytes;
    int64_t reserve_bytes;
    int64_t free_files; /* -1: it does not count them */
    int64_t reserve_files;
};
/* False when it cannot be asked. */
bool disk_room(const char *path, struct disk_room *out);
/* Whether more than `tenths` tenths of the reserve are free; *what: "space" or "inodes", whichever
 * is short. */
bool disk_has_room(const struct disk_room *room, int tenths, const char **what);
/* Whether a file of so many bytes can be written into the folder: what a quota allows is seen by
 * trying alone. ERR_NO_SPACE when not; other errors say nothing. Leaves nothing,
 * also when it is killed, where the file system has files without a name. */
int disk_try(const char *folder, int64_t bytes, struct err *err) MUST_CHECK;

/* flock(2), close-on-exec unless `inherit`. *fd is -1 when another process holds it (not an error).
 */
int lock_try(const char *path, bool inherit, int *fd, struct err *err) MUST_CHECK;
/* Whether any process holds it; an absent file is not held. Takes nothing. */
int lock_is_held(const char *path, bool *held, struct err *err) MUST_CHECK;

#endif
