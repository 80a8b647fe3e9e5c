/*
 * Writes, reads and compares heartbeats (heartbeat.h). One writer per folder: the shim of its
 * attempt, so its temporary file has a fixed name and a killed writer leaves at most one.
 */
#include "daemon/shim/heartbeat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/layout/layout.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"

#define HEARTBEAT_MAX ((size_t)1024)

/* One word: the line is split at blanks. */
static void copy_word(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from == NULL || from[0] == '\0' ? "-" : from);
    for (char *c = to; *c != '\0'; c++) {
        *c = *c > ' ' && *c < 127 ? *c : '?';
    }
}

void heartbeat_init(struct heartbeat *h, const char *job)
{
    char host[256] = "";
    *h = (struct heartbeat){0};
    clock_boot_id(h->boot_id);
    if (gethostname(host, sizeof(host) - 1) != 0) {
        host[0] = '\0';
    }
    const char *node = job == NULL ? NULL : getenv("SLURMD_NODENAME");
    copy_word(h->host, sizeof(h->host), node != NULL ? node : host);
    copy_word(h->job, sizeof(h->job), job);
}

char *heartbeat_format(const struct heartbeat *h)
{
    return xasprintf("%lld %s %s %s\n", (long long)h->sequence, h->boot_id, h->host, h->job);
}

/* Closed before it is renamed: that is when a network file system sends it to the server. */
static int replace(const char *temp, const char *path, const char *line, struct err *err)
{
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return err_set_errno(err, errno, "create %s", temp);
    }
    int rc = file_write_all(fd, line, strlen(line), err);
    if (close(fd) != 0 && rc == 0) {
        rc = err_set_errno(err, errno, "write %s", temp);
    }
    if (rc == 0 && rename(temp, path) != 0) {
        rc = err_set_errno(err, errno, "rename to %s", path);
    }
    return rc;
}

int heartbeat_write(const char *folder, struct heartbeat *h, struct err *err)
{
    char *path = path_join(folder, LAYOUT_HEARTBEAT);
    char *temp = path_join(folder, "." LAYOUT_HEARTBEAT ".tmp");
    h->sequence++;
    char *line = heartbeat_format(h);
    int rc = replace(temp, path, line, err);
    free(line);
    free(temp);
    free(path);
    return rc;
}

/* Exactly four words and the end of the line. */
int heartbeat_parse(const char *line, struct heartbeat *out, struct err *err)
{
    char number[24] = "";
    int end = 0;
    *out = (struct heartbeat){0};
    int n = sscanf(line, "%23[0-9] %39[!-~] %255[!-~] %127[!-~]%n", number, out->boot_id, out->host,
                   out->job, &end);
    if (n != 4 || strcmp(line + end, "\n") != 0 ||
        text_to_int(number, 1, INT64_MAX, &out->sequence, err) != 0) {
        *out = (struct heartbeat){0};
        return err_set(err, ERR_CORRUPT,
                       "heartbeat: expected \"<sequence> <boot id> <host> <job>\" on one line");
    }
    return 0;
}

int heartbeat_read(const char *folder, struct heartbeat *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(folder, LAYOUT_HEARTBEAT);
    *out = (struct heartbeat){0};
    int rc = shared_read(path, HEARTBEAT_MAX, &text, err);
    if (rc == 0) {
        rc = heartbeat_parse(text.buf, out, err);
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

bool heartbeat_note(struct heartbeat_watch *w, const struct heartbeat *h, struct mono_time now)
{
    if (h->sequence <= w->sequence) {
        return false;
    }
    w->moved = w->sequence != 0;
    w->sequence = h->sequence;
    w->when = now;
    return true;
}

int64_t heartbeat_still_ms(const struct heartbeat_watch *w, struct mono_time now)
{
    return w->sequence == 0 ? -1 : now.ms - w->when.ms;
}
