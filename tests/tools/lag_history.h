/*
 * What each of two mounts of one backing folder may see by now. A change that one mount makes is
 * seen there at once, and by the other mount after a delay; until then that one sees what was
 * before. A name that a mount found absent stays absent there for the delay, even if it exists by
 * then, unless its folder is listed: as with a client of NFS.
 */
#ifndef TESTS_TOOLS_LAG_HISTORY_H
#define TESTS_TOOLS_LAG_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define LAG_MOUNTS 2

void lag_init(int backing, int64_t delay_ms);

/* Before a change of a name, or a removal: what is there now becomes what the other mount sees.
 * The path is relative to the backing folder. */
void lag_note_name(int mount, const char *path);
/* Before a file's size or content changes: [from, from + n) is overwritten; n < 0: it is cut at
 * `from`. */
void lag_note_content(int mount, int fd, off_t from, off_t n);

enum lag_seen {
    LAG_NOW,    /* as the backing folder has it */
    LAG_ABSENT, /* ENOENT */
    LAG_OLD,    /* as `fd` has it: replaced or removed by the other mount a moment ago */
    LAG_STALE,  /* removed by the other mount a moment ago: its attributes are known, it cannot be
                   opened */
};

/* fd: owned by the history, O_PATH. */
enum lag_seen lag_look(int mount, const char *path, int *fd);
/* The folder was listed by this mount: what it found absent in there is asked for again. */
void lag_listed(int mount, const char *folder);
/* After each name that lag_look() shows in `folder` but the backing folder no longer has. */
void lag_each_removed(int mount, const char *folder, void (*fn)(void *ctx, const char *name),
                      void *ctx);
/* How many bytes of this file the mount sees; *fd: where its content is, if not in the file. */
off_t lag_size(int mount, const struct stat *st, int *fd);
/* Whether the other mount removed the file longer than the delay ago. */
bool lag_is_stale(int mount, const struct stat *st);

#endif
