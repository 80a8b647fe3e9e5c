/* Reads /proc and sends signals so that a reused pid is never mistaken for the process that had it
 * before. The order is always the same: open a pidfd, which pins the process, then compare its
 * start time. */
#include "daemon/shim/pid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/xalloc.h"

#define STAT_FIELD_STATE  3
#define STAT_FIELD_PARENT 4
#define STAT_FIELD_START  22

/* Fields after the command name, which is in parentheses and may hold anything, parentheses too. */
static bool stat_parse(char *text, struct pid_stat *out)
{
    char *p = strrchr(text, ')');
    if (p == NULL) {
        return false;
    }
    struct err err;
    char *save = NULL;
    int field = STAT_FIELD_STATE;
    for (char *word = strtok_r(p + 1, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save), field++) {
        int64_t value = 0;
        if (field == STAT_FIELD_STATE) {
            out->state = word[0];
        } else if (field == STAT_FIELD_PARENT || field == STAT_FIELD_START) {
            if (text_to_int(word, 0, INT64_MAX, &value, &err) != 0) {
                return false;
            }
            if (field == STAT_FIELD_START) {
                out->start = value;
                return true;
            }
            out->parent = (pid_t)value;
        }
    }
    return false;
}

bool pid_stat_read(pid_t pid, struct pid_stat *out)
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (n <= 0) {
        return false;
    }
    text[n] = '\0';
    *out = (struct pid_stat){.pid = pid};
    return stat_parse(text, out);
}

int pid_open(pid_t pid, int64_t start, const char *boot_id, int *fd, struct err *err)
{
    char boot[40];
    *fd = -1;
    clock_boot_id(boot);
    if (pid <= 0 || strcmp(boot, boot_id) != 0) {
        return 0; /* nothing of another boot is alive */
    }
    int f = (int)syscall(SYS_pidfd_open, pid, 0);
    if (f < 0) {
        return errno == ESRCH ? 0 : err_set_errno(err, errno, "pidfd of %ld", (long)pid);
    }
    /* In this order: the pidfd pins the process that has the number now, and then its start
     * time says whether it is the one meant. */
    struct pid_stat now;
    if (!pid_stat_read(pid, &now) || now.start != start) {
        (void)close(f);
        return 0;
    }
    *fd = f;
    return 0;
}

int pid_signal(int pidfd, int sig, struct err *err)
{
    if (syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) != 0 && errno != ESRCH) {
        return err_set_errno(err, errno, "signal %d", sig);
    }
    return 0;
}

void pid_list_release(struct pid_list *l)
{
    free(l->pids);
    *l = (struct pid_list){0};
}

struct pid_table {
    struct pid_stat *all;
    size_t n;
    size_t cap;
};

/* All processes, from one pass over /proc; one that ends meanwhile is skipped. */
static int family_read(struct pid_table *f, struct err *err)
{
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return err_set_errno(err, errno, "open /proc");
    }
    const struct dirent *e;
    while ((e = readdir(proc)) != NULL) {
        int64_t pid = 0;
        struct pid_stat s;
        struct err ignored;
        if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
            text_to_int(e->d_name, 1, INT32_MAX, &pid, &ignored) != 0 ||
            !pid_stat_read((pid_t)pid, &s)) {
            continue;
        }
        ARRAY_GROW(f->all, f->n, f->cap);
        f->all[f->n++] = s;
    }
    (void)closedir(proc);
    return 0;
}

static bool list_has(const struct pid_list *l, pid_t pid)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->pids[i] == pid) {
            return true;
        }
    }
    return false;
}

int pid_descendants(pid_t root, struct pid_list *out, struct err *err)
{
    struct pid_table f = {0};
    *out = (struct pid_list){0};
    int rc = family_read(&f, err);
    /* Children can have lower numbers than their parents: repeat until nothing is added. */
    bool grew = rc == 0;
    while (grew) {
        grew = false;
        for (size_t i = 0; i < f.n; i++) {
            const struct pid_stat *s = &f.all[i];
            if (s->state == 'Z' || list_has(out, s->pid) ||
                (s->parent != root && !list_has(out, s->parent))) {
                continue;
            }
            ARRAY_GROW(out->pids, out->n, out->cap);
            out->pids[out->n++] = s->pid;
            grew = true;
        }
    }
    free(f.all);
    return rc;
}
