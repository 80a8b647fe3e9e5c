/* Writes under a temporary name, links it to its own, and removes the temporary one. A claimant
 * that is killed in between leaves it; claim_sweep() removes it an hour later. */
#include "base/files/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/uuid.h"
#include "base/xalloc.h"

#define TEMP_SUFFIX ".tmp"
#define TRIES       3 /* of a claimant whose temporary file was swept, as it slept for an hour */

char *claim_temp(const char *folder)
{
    char id[UUID_TEXT_SIZE];
    uuid_make(id);
    return xasprintf("%s/.%s" TEMP_SUFFIX, folder, id);
}

int claim_write(const char *path, const void *data, size_t len, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return err_set_errno(err, errno, "create %s", path);
    }
    int rc = file_write_all(fd, data, len, err);
    if (rc != 0) {
        err_wrap(err, "%s", path);
    } else if (fsync(fd) != 0) {
        rc = err_set_errno(err, errno, "sync %s", path);
    }
    if (close(fd) != 0 && rc == 0) {
        rc = err_set_errno(err, errno, "write %s", path);
    }
    return rc;
}

/* A network file system may answer "exists" to its own repeated call: two names of one file say who
 * it was. *swept: the temporary file is gone. */
static int link_once(const char *temp, const char *path, bool *swept, struct err *err)
{
    struct stat st;
    *swept = false;
    if (link(temp, path) == 0) {
        return 0;
    }
    int why = errno;
    if (stat(temp, &st) == 0 && st.st_nlink == 2) {
        return 0;
    }
    *swept = why == ENOENT;
    return why == EEXIST ? err_set(err, ERR_EXISTS, "%s exists already", path)
                         : err_set_errno(err, why, "link %s", path);
}

int claim_file(const char *path, const void *data, size_t len, struct err *err)
{
    char *folder = path_folder(path);
    char *temp = claim_temp(folder);
    bool swept = true;
    int rc = 0;
    for (int i = 0; swept && i < TRIES; i++) {
        swept = false;
        rc = claim_write(temp, data, len, err);
        if (rc == 0) {
            rc = link_once(temp, path, &swept, err);
        }
    }
    (void)unlink(temp);
    if (rc == 0) {
        rc = dir_sync(folder, err);
    }
    free(temp);
    free(folder);
    return rc;
}

/* ".<uuid>.tmp" and nothing else. */
static bool is_temp(const char *name)
{
    char id[UUID_TEXT_SIZE] = "";
    if (strlen(name) != 1 + sizeof(id) - 1 + sizeof(TEMP_SUFFIX) - 1 || name[0] != '.' ||
        strcmp(name + sizeof(id), TEMP_SUFFIX) != 0) {
        return false;
    }
    memcpy(id, name + 1, sizeof(id) - 1);
    return uuid_is_valid(id);
}

/* The time at the file system: that of a file which is written there now. */
static bool time_there(const char *folder, struct timespec *now)
{
    struct stat st;
    struct err ignored;
    char *temp = claim_temp(folder);
    bool known = claim_write(temp, "\n", 1, &ignored) == 0 && lstat(temp, &st) == 0;
    (void)unlink(temp);
    free(temp);
    if (known) {
        *now = st.st_mtim;
    }
    return known;
}

void claim_sweep(const char *folder)
{
    struct name_list names = {0};
    struct timespec now;
    struct err ignored;
    if (dir_list(folder, &names, &ignored) == 0) {
        bool known = false;
        for (size_t i = 0; i < names.n; i++) {
            struct stat st;
            if (!is_temp(names.names[i]) || (!known && !(known = time_there(folder, &now)))) {
                continue;
            }
            char *path = path_join(folder, names.names[i]);
            if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
                now.tv_sec - st.st_mtim.tv_sec >= CLAIM_STALE_S) {
                (void)unlink(path);
            }
            free(path);
        }
    }
    name_list_release(&names);
}
