/* Whose a process is: its name and user, and whether it belongs to an attempt. A worker's process
 * carries the attempt's mark or is in its control group; so does whatever it starts, or a process
 * above it does. */
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/gpus/gpus.h"
#include "daemon/shim/mark.h"
#include "daemon/shim/pid.h"

#define ANCESTORS_MAX 64
#define SMALL_MAX     ((size_t)64 * 1024)
#define GROUP_PREFIX  "/prereg-" /* of an attempt's control group (shim/group.h) */

static void fill_name(struct gpu_process *p)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    char *path = xasprintf("/proc/%lld/comm", (long long)p->pid);
    if (file_read(path, SMALL_MAX, &text, &ignored) == 0) {
        text.buf[strcspn(text.buf, "\n")] = '\0';
        text_copy_line(p->name, sizeof(p->name), text.buf[0] == '\0' ? "unnamed" : text.buf);
    }
    free(path);
    strbuf_release(&text);
}

static void fill_user(struct gpu_process *p)
{
    struct stat st;
    char *path = xasprintf("/proc/%lld", (long long)p->pid);
    if (stat(path, &st) == 0) {
        const struct passwd *user = getpwuid(st.st_uid);
        if (user != NULL) {
            text_copy_line(p->user, sizeof(p->user), user->pw_name);
        } else {
            (void)snprintf(p->user, sizeof(p->user), "%lu", (unsigned long)st.st_uid);
        }
    }
    free(path);
}

/* The attempt in the last "/prereg-<attempt>" of its control group's path. */
static void fill_group(struct gpu_process *p)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    char *path = xasprintf("/proc/%lld/cgroup", (long long)p->pid);
    if (file_read(path, SMALL_MAX, &text, &ignored) == 0) {
        for (const char *at = text.buf; (at = strstr(at, GROUP_PREFIX)) != NULL;) {
            char id[UUID_TEXT_SIZE];
            at += strlen(GROUP_PREFIX);
            (void)snprintf(id, sizeof(id), "%s", at);
            if (uuid_is_valid(id)) {
                memcpy(p->attempt, id, sizeof(id));
            }
        }
    }
    free(path);
    strbuf_release(&text);
}

void gpu_process_fill(struct gpu_process *p)
{
    struct pid_stat at;
    if (!pid_stat_read((pid_t)p->pid, &at)) {
        if (p->name[0] == '\0' && kill((pid_t)p->pid, 0) != 0 && errno == EPERM) {
            (void)snprintf(p->name, sizeof(p->name), "hidden"); /* another's, and /proc hides it */
        }
        return;
    }
    if (p->name[0] == '\0') {
        fill_name(p);
    }
    if (p->user[0] == '\0') {
        fill_user(p);
    }
    fill_group(p);
    for (int i = 0; p->mark == 0 && at.pid > 1 && i < ANCESTORS_MAX; i++) {
        p->mark = mark_read(at.pid);
        if (!pid_stat_read(at.parent, &at)) {
            break;
        }
    }
}
