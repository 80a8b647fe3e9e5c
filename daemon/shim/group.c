/* Cgroups of attempts: finding where they may be made, and making, killing and removing one. Called
 * by the daemon at its start and when it buries an attempt, and by the shim around its worker. The
 * base is found through /proc/self/cgroup and mountinfo and then tried out, because mounts and
 * namespaces can make both of them misleading. */
#include "daemon/shim/group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/shim/pid.h"

#define PREFIX       "prereg-"
#define PROC_MAX     ((size_t)4 * 1024 * 1024)
#define DEPTH_MAX    32
#define SWEEP_MS     ((int64_t)60 * 1000)
#define BASE_MAX     3072 /* what is made below it fits into PATH_MAX and start.json */
#define SYSTEMD_RUNS "/run/systemd/system"

/* ---- where ---- */

static bool is_cgroup2(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* The path after "0::" of /proc/PID/cgroup, on the heap; NULL when the process has none. */
static char *hierarchy_path(const char *proc_file)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    char *found = NULL;
    char *save = NULL;
    if (file_read(proc_file, PROC_MAX, &text, &ignored) == 0) {
        for (char *line = strtok_r(text.buf, "\n", &save); line != NULL && found == NULL;
             line = strtok_r(NULL, "\n", &save)) {
            found = strncmp(line, "0::/", 4) == 0 ? xstrdup(line + 3) : NULL;
        }
    }
    strbuf_release(&text);
    return found;
}

/* mountinfo writes blanks, tabs, line ends and backslashes as \ooo. */
static void unescape(char *s)
{
    char *to = s;
    while (*s != '\0') {
        if (s[0] == '\\' && strspn(s + 1, "01234567") >= 3) {
            *to++ = (char)(((s[1] - '0') * 8 + (s[2] - '0')) * 8 + (s[3] - '0'));
            s += 4;
        } else {
            *to++ = *s++;
        }
    }
    *to = '\0';
}

/* The rest of `path` below `root`, with its first slash; NULL when it is not below. */
static const char *below(const char *path, const char *root)
{
    size_t n = strlen(root);
    if (strcmp(root, "/") == 0) {
        return path;
    }
    return strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n : NULL;
}

/* A line of /proc/self/mountinfo: "ID PARENT DEV ROOT MOUNTPOINT OPTIONS... - TYPE SOURCE OPTIONS".
 * The folder that shows the cgroup `path`, on the heap, or NULL. */
static char *folder_by_mount(char *line, const char *path)
{
    char *words[5];
    char *save = NULL;
    size_t n = 0;
    const char *type = strstr(line, " - ");
    if (type == NULL || strncmp(type, " - cgroup2 ", strlen(" - cgroup2 ")) != 0) {
        return NULL;
    }
    for (char *w = strtok_r(line, " ", &save); w != NULL && n < ARRAY_LEN(words);
         w = strtok_r(NULL, " ", &save)) {
        words[n++] = w;
    }
    if (n < ARRAY_LEN(words)) {
        return NULL;
    }
    unescape(words[3]);
    unescape(words[4]);
    const char *rest = below(path, words[3]);
    return rest == NULL ? NULL : xasprintf("%s%s", words[4], strcmp(rest, "/") == 0 ? "" : rest);
}

/* Whether this process is listed in the folder's cgroup.procs: the proof that it is our own. */
static bool holds_us(const char *folder)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    char own[24];
    char *procs = path_join(folder, "cgroup.procs");
    (void)snprintf(own, sizeof(own), "%ld\n", (long)getpid());
    bool found = false;
    if (file_read(procs, PROC_MAX, &text, &ignored) == 0) {
        const char *at = strstr(text.buf, own);
        while (at != NULL && !found) {
            found = at == text.buf || at[-1] == '\n';
            at = strstr(at + 1, own);
        }
    }
    strbuf_release(&text);
    free(procs);
    return found;
}

/* The folder of this process's cgroup, on the heap; NULL when no mount shows it. */
static char *own_folder(void)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    char *path = hierarchy_path("/proc/self/cgroup");
    char *found = NULL;
    char *save = NULL;
    if (path != NULL && file_read("/proc/self/mountinfo", PROC_MAX, &text, &ignored) == 0) {
        for (char *line = strtok_r(text.buf, "\n", &save); line != NULL && found == NULL;
             line = strtok_r(NULL, "\n", &save)) {
            found = folder_by_mount(line, path);
            if (found != NULL && !(is_cgroup2(found) && holds_us(found))) {
                free(found); /* another mount covers it, or it shows another namespace's */
                found = NULL;
            }
        }
    }
    strbuf_release(&text);
    free(path);
    return found;
}

/* systemd marks what it delegates; where it does not run, no other manager owns the hierarchy. */
static bool is_delegated_to_root(const char *folder)
{
    static const char *const names[] = {"trusted.delegate", "user.delegate"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char value = '\0';
        if (getxattr(folder, names[i], &value, 1) == 1 && value == '1') {
            return true;
        }
    }
    return file_kind_at(SYSTEMD_RUNS) != FILE_FOLDER;
}

/* Tests the base by making a group there: the folder must be writable, and the group of type domain
 * (below a threaded one it would not hold whole processes). */
static int try_base(const char *base, struct err *err)
{
    char name[40];
    (void)snprintf(name, sizeof(name), PREFIX "try-%ld", (long)getpid());
    char *own = path_join(base, "cgroup.procs");
    char *path = path_join(base, name);
    char *type = path_join(path, "cgroup.type");
    struct strbuf text = STRBUF_INIT;
    int rc = access(own, W_OK) == 0 ? 0 : err_set_errno(err, errno, "%s", own);
    bool made = rc == 0 && mkdir(path, 0755) == 0;
    if (rc == 0 && !made) {
        rc = err_set_errno(err, errno, "make a group in %s", base);
    }
    if (rc == 0) {
        rc = file_read(type, 64, &text, err);
    }
    if (rc == 0 && strcmp(text.buf, "domain\n") != 0) {
        rc = err_set(err, ERR_INVALID, "%s is threaded", base);
    }
    if (made) {
        (void)rmdir(path);
    }
    strbuf_release(&text);
    free(type);
    free(path);
    free(own);
    return rc;
}

int group_find_base(char **base, struct err *err)
{
    *base = own_folder();
    if (*base == NULL) {
        return err_set(err, ERR_NOT_FOUND, "this process is in no cgroup of version 2");
    }
    int rc = 0;
    if (geteuid() == 0 && !is_delegated_to_root(*base)) {
        rc = err_set(err, ERR_NOT_FOUND, "%s is not delegated (Delegate= of its unit)", *base);
    } else if (strlen(*base) > BASE_MAX) {
        rc = err_set(err, ERR_NOT_FOUND, "the path of its cgroup is too long");
    } else {
        rc = try_base(*base, err);
    }
    if (rc != 0) {
        free(*base);
        *base = NULL;
        err->code = ERR_NOT_FOUND;
    }
    return rc == 0 ? 0 : ERR_NOT_FOUND;
}

/* ---- one group ---- */

char *group_path(const char *base, const char *attempt)
{
    return xasprintf("%s/" PREFIX "%s", base, attempt);
}

bool group_is_of(const char *path, const char *attempt)
{
    const char *name = path_name(path);
    size_t n = strlen(PREFIX);
    return path[0] == '/' && strncmp(name, PREFIX, n) == 0 && strcmp(name + n, attempt) == 0 &&
           strstr(path, "/../") == NULL && is_cgroup2(path);
}

int group_make(const char *path, int *fd, struct err *err)
{
    *fd = -1;
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return err_set_errno(err, errno, "make %s", path);
    }
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return *fd >= 0 ? 0 : err_set_errno(err, errno, "open %s", path);
}

/* Whether that process is in the group or below it. */
static bool is_in(pid_t pid, const char *group)
{
    char file[64];
    (void)snprintf(file, sizeof(file), "/proc/%ld/cgroup", (long)pid);
    char *path = hierarchy_path(file);
    const char *at = path == NULL ? NULL : strstr(path, path_name(group));
    bool in = at != NULL && at > path && at[-1] == '/' &&
              strchr("/", at[strlen(path_name(group))]) != NULL;
    free(path);
    return in;
}

/* Each pid is pinned by a pidfd and then checked again, so that a reused number is never hit. */
static void kill_members(const char *folder, const char *group)
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    char *procs = path_join(folder, "cgroup.procs");
    char *save = NULL;
    if (file_read(procs, PROC_MAX, &text, &err) == 0) {
        for (char *line = strtok_r(text.buf, "\n", &save); line != NULL;
             line = strtok_r(NULL, "\n", &save)) {
            int64_t pid = 0;
            int fd = text_to_int(line, 1, INT32_MAX, &pid, &err) != 0
                         ? -1
                         : (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
            if (fd >= 0 && is_in((pid_t)pid, group)) { /* the pidfd pins the number first */
                (void)pid_signal(fd, SIGKILL, &err);
            }
            if (fd >= 0) {
                (void)close(fd);
            }
        }
    }
    strbuf_release(&text);
    free(procs);
}

/* The groups below first, so that their parents are empty when it is their turn. */
static void walk(const char *folder, unsigned depth, void (*visit)(const char *, const char *),
                 const char *group)
{
    DIR *dir = depth < DEPTH_MAX ? opendir(folder) : NULL;
    const struct dirent *e;
    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (e->d_type == DT_DIR && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            char *path = path_join(folder, e->d_name);
            walk(path, depth + 1, visit, group);
            free(path);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    visit(folder, group);
}

static void remove_one(const char *folder, const char *group)
{
    (void)group;
    (void)rmdir(folder);
}

void group_kill(const char *path)
{
    char *file = path_join(path, "cgroup.kill");
    int fd = open(file, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "1", 1) == 1;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (!done) { /* Linux before 5.14 */
        walk(path, 0, kill_members, path);
    }
    free(file);
}

bool group_remove(const char *path)
{
    if (rmdir(path) != 0 && errno == EBUSY) {
        walk(path, 0, remove_one, path); /* a worker may have made groups of its own in it */
    }
    return access(path, F_OK) != 0 && errno == ENOENT;
}

/* The kernel dates a group's folder when it first looks it up, and again after it has forgotten it:
 * a group can seem younger than it is, and is then left for another start, but never older. */
static bool is_old(int dir, const char *name, int64_t now_ms)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
           now_ms - (int64_t)st.st_mtim.tv_sec * 1000 > SWEEP_MS;
}

size_t group_sweep(const char *base)
{
    size_t n = 0;
    int64_t now_ms = clock_wall().ms;
    DIR *dir = is_cgroup2(base) ? opendir(base) : NULL;
    const struct dirent *e;
    while (dir != NULL && (e = readdir(dir)) != NULL) {
        /* The kernel refuses to remove one that holds a process or another group. */
        n += strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0 &&
             is_old(dirfd(dir), e->d_name, now_ms) &&
             unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR) == 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}
