/*
 * Two lists, oldest first: of names (what a path was before a change) and of contents (how long a
 * file was before one, with a copy where it was overwritten). lag_look() and lag_size() go back
 * through the changes that a mount may not see yet. Entries older than the delay are dropped.
 */
#include "tests/tools/lag_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/xalloc.h"

#define COPY_MAX    ((off_t)1 << 20) /* of a file that is overwritten; a larger one shows at once */
#define COALESCE_MS 50               /* appends to one file */
#define REMOVED_MS  ((int64_t)600 * 1000)

struct name_change {
    char *path;
    int mount;
    int64_t at_ms;
    int before; /* O_PATH; -1: absent */
};

struct content_change {
    dev_t dev;
    ino_t ino;
    int mount;
    int64_t at_ms;
    off_t size; /* before */
    int copy;   /* of what was overwritten; -1: it was appended to */
};

struct removed {
    dev_t dev;
    ino_t ino;
    int mount;
    int64_t at_ms;
};

struct absent {
    char *path;
    int64_t until_ms;
};

static int backing;
static int64_t delay;
static struct name_change *names;
static size_t n_names, cap_names;
static struct content_change *contents;
static size_t n_contents, cap_contents;
static struct removed *gone;
static size_t n_gone, cap_gone;
static struct absent *absents[LAG_MOUNTS];
static size_t n_absents[LAG_MOUNTS], cap_absents[LAG_MOUNTS];

void lag_init(int backing_fd, int64_t delay_ms)
{
    backing = backing_fd;
    delay = delay_ms;
}

static bool is_hidden(int mount, int by, int64_t at_ms)
{
    return by != mount && clock_mono().ms - at_ms < delay;
}

static void close_copy(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Twice the delay: an answer that is being given still uses an entry of just the delay. */
static void drop_old(void)
{
    const int64_t now = clock_mono().ms;
    size_t n = 0;
    while (n < n_names && now - names[n].at_ms > 2 * delay) {
        free(names[n].path);
        close_copy(names[n++].before);
    }
    n_names -= n;
    memmove(names, names + n, n_names * sizeof(*names));
    for (n = 0; n < n_contents && now - contents[n].at_ms > 2 * delay; n++) {
        close_copy(contents[n].copy);
    }
    n_contents -= n;
    memmove(contents, contents + n, n_contents * sizeof(*contents));
    for (n = 0; n < n_gone && now - gone[n].at_ms > REMOVED_MS;) {
        n++;
    }
    n_gone -= n;
    memmove(gone, gone + n, n_gone * sizeof(*gone));
}

static void forget_absent(int mount, const char *path)
{
    for (size_t i = 0; i < n_absents[mount]; i++) {
        if (strcmp(absents[mount][i].path, path) == 0) {
            free(absents[mount][i].path);
            absents[mount][i] = absents[mount][--n_absents[mount]];
            return;
        }
    }
}

void lag_note_name(int mount, const char *path)
{
    struct stat st;
    if (names != NULL) {
        drop_old();
    }
    ARRAY_GROW(names, n_names, cap_names);
    ARRAY_GROW(gone, n_gone, cap_gone);
    ARRAY_GROW(contents, n_contents, cap_contents);
    const int64_t now = clock_mono().ms;
    int fd = openat(backing, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    names[n_names++] = (struct name_change){xstrdup(path), mount, now, fd};
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        gone[n_gone++] = (struct removed){st.st_dev, st.st_ino, mount, now};
    }
    forget_absent(mount, path);
}

static int copy_of(int fd, off_t size)
{
    if (size > COPY_MAX) {
        return -1;
    }
    int copy = memfd_create("lag", MFD_CLOEXEC);
    char block[65536];
    for (off_t at = 0; copy >= 0 && at < size;) {
        ssize_t n = pread(fd, block, sizeof(block), at);
        if (n <= 0 || write(copy, block, (size_t)n) != n) {
            break;
        }
        at += n;
    }
    return copy;
}

/* fd may be open for writing alone: the copy is read through another one. */
void lag_note_content(int mount, int fd, off_t from, off_t n)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return;
    }
    const bool overwrites = st.st_size > 0 && (n < 0 || from < st.st_size);
    const struct content_change *last = n_contents > 0 ? &contents[n_contents - 1] : NULL;
    const int64_t now = clock_mono().ms;
    if (!overwrites && last != NULL && last->ino == st.st_ino && last->dev == st.st_dev &&
        last->mount == mount && now - last->at_ms < COALESCE_MS) {
        return;
    }
    int copy = -1;
    if (overwrites) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        int reader = open(path, O_RDONLY | O_CLOEXEC);
        copy = reader < 0 ? -1 : copy_of(reader, st.st_size);
        close_copy(reader);
        if (copy < 0) {
            return;
        }
    }
    ARRAY_GROW(contents, n_contents, cap_contents);
    contents[n_contents++] =
        (struct content_change){st.st_dev, st.st_ino, mount, now, st.st_size, copy};
}

static bool is_absent_for(int mount, const char *path)
{
    const int64_t now = clock_mono().ms;
    for (size_t i = 0; i < n_absents[mount]; i++) {
        if (strcmp(absents[mount][i].path, path) == 0) {
            if (absents[mount][i].until_ms > now) {
                return true;
            }
            forget_absent(mount, path);
            return false;
        }
    }
    return false;
}

static void remember_absent(int mount, const char *path)
{
    if (!is_absent_for(mount, path)) {
        ARRAY_GROW(absents[mount], n_absents[mount], cap_absents[mount]);
        absents[mount][n_absents[mount]++] =
            (struct absent){xstrdup(path), clock_mono().ms + delay};
    }
}

/* Without what was remembered as absent. */
static enum lag_seen look(int mount, const char *path, int *fd)
{
    enum lag_seen seen = LAG_NOW;
    *fd = -1;
    for (size_t i = n_names; i-- > 0;) {
        if (strcmp(names[i].path, path) != 0) {
            continue;
        }
        if (!is_hidden(mount, names[i].mount, names[i].at_ms)) {
            break;
        }
        *fd = names[i].before;
        seen = *fd < 0 ? LAG_ABSENT : LAG_OLD;
    }
    return seen;
}

enum lag_seen lag_look(int mount, const char *path, int *fd)
{
    struct stat st;
    if (is_absent_for(mount, path)) {
        *fd = -1;
        return LAG_ABSENT;
    }
    enum lag_seen seen = look(mount, path, fd);
    bool there = fstatat(backing, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (seen == LAG_ABSENT || (seen == LAG_NOW && !there)) {
        remember_absent(mount, path);
        return LAG_ABSENT;
    }
    return seen == LAG_OLD && !there ? LAG_STALE : seen;
}

/* The name below the folder, or NULL if the path is not directly in it. */
static const char *name_in(const char *path, const char *folder)
{
    if (strcmp(folder, ".") == 0) {
        return strchr(path, '/') == NULL ? path : NULL;
    }
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/' && strchr(path + n + 1, '/') == NULL
               ? path + n + 1
               : NULL;
}

void lag_listed(int mount, const char *folder)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_absents[mount]; i++) {
        if (name_in(absents[mount][i].path, folder) != NULL) {
            free(absents[mount][i].path);
        } else {
            absents[mount][kept++] = absents[mount][i];
        }
    }
    n_absents[mount] = kept;
}

/* A name is given once: for its oldest hidden change. */
void lag_each_removed(int mount, const char *folder, void (*fn)(void *ctx, const char *name),
                      void *ctx)
{
    struct stat st;
    for (size_t i = 0; i < n_names; i++) {
        const char *name = name_in(names[i].path, folder);
        bool first = name != NULL && is_hidden(mount, names[i].mount, names[i].at_ms);
        for (size_t j = 0; first && j < i; j++) {
            first = strcmp(names[j].path, names[i].path) != 0 ||
                    !is_hidden(mount, names[j].mount, names[j].at_ms);
        }
        int fd;
        if (first && look(mount, names[i].path, &fd) == LAG_OLD &&
            fstatat(backing, names[i].path, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            fn(ctx, name);
        }
    }
}

off_t lag_size(int mount, const struct stat *st, int *fd)
{
    off_t size = st->st_size;
    *fd = -1;
    for (size_t i = n_contents; i-- > 0;) {
        const struct content_change *c = &contents[i];
        if (c->ino != st->st_ino || c->dev != st->st_dev) {
            continue;
        }
        if (!is_hidden(mount, c->mount, c->at_ms)) {
            break;
        }
        size = c->size;
        *fd = c->copy >= 0 ? c->copy : *fd;
    }
    return size;
}

bool lag_is_stale(int mount, const struct stat *st)
{
    for (size_t i = n_gone; st->st_nlink == 0 && i-- > 0;) { /* inode numbers are used again */
        if (gone[i].ino == st->st_ino && gone[i].dev == st->st_dev && gone[i].mount != mount) {
            return !is_hidden(mount, gone[i].mount, gone[i].at_ms);
        }
    }
    return false;
}
