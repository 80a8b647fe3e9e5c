/* prereg-shim against workers that misbehave, and against its own death. Workers are shell
 * one-liners; every case has its own attempt folder under $TMPDIR. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/shim/fence.h"
#include "daemon/shim/files.h"
#include "daemon/shim/group.h"
#include "daemon/shim/mark.h"
#include "daemon/shim/pid.h"
#include "tests/unit/check.h"

#define SHIM     TEST_BIN_DIR "/prereg-shim"
#define PATIENCE 120000
#define MIB      ((int64_t)1024 * 1024)

extern char **environ;

struct fixture {
    char *folder;
    char attempt[UUID_TEXT_SIZE];
    struct strbuf spec; /* what a shim is told to run */
};

static int set_up(void **state)
{
    const char *tmp = getenv("TMPDIR");
    struct fixture *f = xcalloc(1, sizeof(*f));
    *f = (struct fixture){.spec = STRBUF_INIT};
    f->folder = xasprintf("%s/shim_fault_XXXXXX", tmp == NULL ? "/tmp" : tmp);
    assert_non_null(mkdtemp(f->folder));
    uuid_make(f->attempt);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    struct err err;
    int rc = dir_remove(f->folder, &err);
    strbuf_release(&f->spec);
    free(f->folder);
    free(f);
    return rc;
}

static void take_spec(struct fixture *f, struct shim_spec *s)
{
    struct err err;
    strbuf_clear(&f->spec);
    assert_int_equal(shim_spec_text(s, &f->spec, &err), 0);
    shim_spec_release(s);
}

static void write_spec(struct fixture *f, const char *script, int64_t memory, int64_t grace)
{
    struct shim_spec s = {.exec = xstrdup("/bin/bash"), .memory_bytes = memory, .grace_ms = grace};
    memcpy(s.attempt, f->attempt, sizeof(s.attempt));
    char *task = path_join(f->folder, "task.json");
    shim_spec_add_arg(&s, "bash");
    shim_spec_add_arg(&s, "-c");
    shim_spec_add_arg(&s, script);
    shim_spec_add_env(&s, "PATH", "/usr/bin:/bin");
    shim_spec_add_env(&s, "PREREG_TASK", task);
    take_spec(f, &s);
    free(task);
}

static pid_t start_shim_in(const struct fixture *f, const char *groups)
{
    pid_t pid = -1;
    char *path = xstrdup(SHIM);
    char *where = groups == NULL ? NULL : xstrdup(groups);
    char *argv[] = {path, f->folder, where, NULL};
    char *name = xasprintf(SHIM_MARK "%s", f->attempt);
    int fd = -1;
    struct err err;
    posix_spawn_file_actions_t actions;
    assert_int_equal(file_in_memory(name, f->spec.buf, f->spec.len, &fd, &err), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, fd, 0), 0);
    assert_int_equal(posix_spawn(&pid, SHIM, &actions, NULL, argv, environ), 0);
    assert_int_equal(posix_spawn_file_actions_destroy(&actions), 0);
    (void)close(fd);
    free(name);
    free(where);
    free(path);
    return pid;
}

static pid_t start_shim(const struct fixture *f)
{
    return start_shim_in(f, NULL);
}

static int wait_shim(pid_t pid)
{
    int status = 0;
    for (int64_t i = 0; i < PATIENCE / 5; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        }
        clock_sleep_ms(5);
    }
    (void)kill(pid, SIGKILL);
    fail_msg("the shim did not end");
    return -1;
}

static void wait_file(const struct fixture *f, const char *name)
{
    char *path = path_join(f->folder, name);
    for (int64_t i = 0; i < PATIENCE / 5 && file_kind_at(path) == FILE_ABSENT; i++) {
        clock_sleep_ms(5);
    }
    assert_int_equal(file_kind_at(path), FILE_REGULAR);
    free(path);
}

static void wait_started(const struct fixture *f)
{
    for (int64_t i = 0; i < PATIENCE / 5 && !shim_was_started(f->folder); i++) {
        clock_sleep_ms(5);
    }
    assert_true(shim_was_started(f->folder));
}

static char *slurp(const struct fixture *f, const char *name)
{
    struct strbuf sb = STRBUF_INIT;
    struct err err;
    char *path = path_join(f->folder, name);
    assert_int_equal(file_read(path, (size_t)1 << 30, &sb, &err), 0);
    free(path);
    return strbuf_detach(&sb);
}

static bool is_locked(const struct fixture *f)
{
    bool held = false;
    struct err err;
    char *path = shim_lock_path(f->folder);
    assert_int_equal(lock_is_held(path, &held, &err), 0);
    free(path);
    return held;
}

static pid_t pid_in(const struct fixture *f, const char *name)
{
    wait_file(f, name);
    char *text = NULL;
    for (int i = 0; i < 400; i++) { /* the file is there before the number is in it */
        text = slurp(f, name);
        if (strchr(text, '\n') != NULL) {
            break;
        }
        free(text);
        text = NULL;
        clock_sleep_ms(5);
    }
    assert_non_null(text);
    int64_t pid = 0;
    struct err err;
    *strchr(text, '\n') = '\0';
    assert_int_equal(text_to_int(text, 1, INT32_MAX, &pid, &err), 0);
    free(text);
    return (pid_t)pid;
}

static bool is_alive(pid_t pid)
{
    struct pid_stat s;
    return pid_stat_read(pid, &s) && s.state != 'Z' && s.state != 'X';
}

static void wait_gone(pid_t pid)
{
    for (int64_t i = 0; i < PATIENCE / 5 && is_alive(pid); i++) {
        clock_sleep_ms(5);
    }
    assert_false(is_alive(pid));
}

static struct shim_exit read_exit(const struct fixture *f)
{
    struct shim_exit x;
    struct err err;
    if (shim_exit_read(f->folder, f->attempt, &x, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return x;
}

static void set_oom_adjustment(const char *text)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
}

/* In the mount namespace of our own, a file that nobody can write to lies over cgroup.kill. */
static void hide_kill(const struct fixture *f, const char *group)
{
    char *kill_file = path_join(group, "cgroup.kill");
    char *cover = path_join(f->folder, "cover");
    struct err err;
    assert_int_equal(file_write_atomic(cover, "", 0, 0600, &err), 0);
    assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    assert_int_equal(mount(cover, kill_file, NULL, MS_BIND, NULL), 0);
    assert_int_equal(mount(NULL, kill_file, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
    free(cover);
    free(kill_file);
}

/* ---- how workers end ---- */

struct ending {
    const char *script;
    enum shim_reason reason;
    int code;
    int signal;
    int64_t left_behind; /* at least */
};

static void test_endings(void **state)
{
    static const struct ending cases[] = {
        {"exit 0", SHIM_EXITED, 0, 0, 0},
        {"exit 75", SHIM_EXITED, 75, 0, 0},
        {"exit 255", SHIM_EXITED, 255, 0, 0},
        {"kill -9 $$", SHIM_SIGNALLED, -1, SIGKILL, 0},
        {"kill -SEGV $$", SHIM_SIGNALLED, -1, SIGSEGV, 0},
        {"sleep 300 & exit 3", SHIM_EXITED, 3, 0, 1},
        {"setsid sleep 300 & exit 0", SHIM_EXITED, 0, 0, 1},
        {"(setsid bash -c 'exec 3>&- 4>&- 5>&- 6>&- 7>&-; sleep 300 & sleep 301' &) ; sleep 0.2",
         SHIM_EXITED, 0, 0, 1},
        {"trap '' TERM HUP INT; (trap '' TERM; sleep 300) & exit 1", SHIM_EXITED, 1, 0, 1},
        {"read -r x && exit 9; exit 4", SHIM_EXITED, 4, 0, 0}, /* standard input is empty */
        {"rm start.json; exit 5", SHIM_EXITED, 5, 0, 0},
        {"rm start.json; echo '{}' > start.json; exit 6", SHIM_EXITED, 6, 0, 0},
    };
    const struct fixture *base = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].script);
        struct fixture f = {.folder = xasprintf("%s/%zu", base->folder, i), .spec = STRBUF_INIT};
        struct err err;
        uuid_make(f.attempt);
        assert_int_equal(dir_make(f.folder, 0700, &err), 0);
        write_spec(&f, cases[i].script, 0, 1000);
        assert_int_equal(wait_shim(start_shim(&f)), 0);
        struct shim_exit x = read_exit(&f);
        assert_int_equal(x.reason, cases[i].reason);
        assert_int_equal(x.code, cases[i].code);
        assert_int_equal(x.signal, cases[i].signal);
        assert_true(x.left_behind >= cases[i].left_behind);
        assert_true(cases[i].left_behind > 0 || x.left_behind == 0);
        assert_false(x.asked_to_stop);
        assert_false(is_locked(&f));
        strbuf_release(&f.spec);
        free(f.folder);
    }
}

static void test_missing_worker_is_spawn_failed(void **state)
{
    struct fixture *f = *state;
    struct shim_spec s = {.exec = xstrdup("/nonexistent/worker")};
    memcpy(s.attempt, f->attempt, sizeof(s.attempt));
    shim_spec_add_arg(&s, "worker");
    shim_spec_add_env(&s, "PATH", "/bin");
    take_spec(f, &s);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    struct shim_exit x = read_exit(f);
    assert_int_equal(x.reason, SHIM_SPAWN_FAILED);
    assert_non_null(strstr(x.detail, "/nonexistent/worker"));
}

static void test_environment_is_what_was_given(void **state)
{
    struct fixture *f = *state;
    write_spec(f, "/usr/bin/env | sort; pwd -P; ulimit -c", 0, 1000);
    assert_int_equal(setenv("PREREG_LEAK", "yes", 1), 0);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    char *out = slurp(f, LAYOUT_STDOUT);
    char *real = realpath(f->folder, NULL);
    assert_null(strstr(out, "PREREG_LEAK"));
    assert_non_null(strstr(out, "PREREG_TASK="));
    assert_non_null(strstr(out, real));
    assert_non_null(strstr(out, "\n0\n")); /* no core files in attempt folders */
    free(real);
    free(out);
}

/* ---- being told to stop ---- */

static void test_sigterm_reaches_the_worker(void **state)
{
    struct fixture *f = *state;
    write_spec(f, "trap 'exit 75' TERM; echo $$ > up; while :; do sleep 0.02; done", 0, 10000);
    pid_t shim = start_shim(f);
    (void)pid_in(f, "up");
    assert_int_equal(kill(shim, SIGTERM), 0);
    assert_int_equal(wait_shim(shim), 0);
    struct shim_exit x = read_exit(f);
    assert_int_equal(x.reason, SHIM_EXITED);
    assert_int_equal(x.code, 75);
    assert_true(x.asked_to_stop);
}

static void test_deaf_worker_is_killed_after_the_grace_time(void **state)
{
    struct fixture *f = *state;
    write_spec(f, "trap '' TERM; echo $$ > up; while :; do sleep 0.02; done", 0, 300);
    pid_t shim = start_shim(f);
    (void)pid_in(f, "up");
    struct mono_time before = clock_mono();
    assert_int_equal(kill(shim, SIGTERM), 0);
    assert_int_equal(wait_shim(shim), 0);
    assert_true(clock_mono().ms - before.ms >= 290);
    struct shim_exit x = read_exit(f);
    assert_int_equal(x.signal, SIGKILL);
    assert_int_equal(x.reason, SHIM_SIGNALLED);
    assert_true(x.asked_to_stop);
    assert_true(x.ran_ms >= 290);
}

static void test_sigusr1_kills_at_once(void **state)
{
    struct fixture *f = *state;
    write_spec(f, "trap '' TERM; sleep 300 & echo $! > child; wait", 0, 600000);
    pid_t shim = start_shim(f);
    pid_t child = pid_in(f, "child");
    assert_int_equal(kill(shim, SIGUSR1), 0);
    assert_int_equal(wait_shim(shim), 0);
    wait_gone(child);
    assert_int_equal(read_exit(f).signal, SIGKILL);
}

/* ---- memory and output ---- */

static void test_memory_limit(void **state)
{
    struct fixture *f = *state;
    write_spec(f, "x=$(head -c 400000000 /dev/zero | tr '\\0' y); sleep 5; exit 0", 100 * MIB,
               1000);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    struct shim_exit x = read_exit(f);
    assert_int_equal(x.reason, SHIM_MEMORY);
    assert_int_equal(x.signal, SIGKILL);
}

static void test_memory_of_a_child_counts(void **state)
{
    struct fixture *f = *state;
    write_spec(f,
               "bash -c 'x=$(head -c 400000000 /dev/zero | tr \"\\0\" y); sleep 9' & wait; exit 0",
               100 * MIB, 1000);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    assert_int_equal(read_exit(f).reason, SHIM_MEMORY);
}

static void test_memory_within_the_limit(void **state)
{
    struct fixture *f = *state;
    write_spec(f, "x=$(head -c 20000000 /dev/zero | tr '\\0' y); sleep 0.3; exit 0", 300 * MIB,
               1000);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    assert_int_equal(read_exit(f).code, 0);
}

/* What the log takes on the disk. Its last line is there, whatever was cut. */
static int64_t log_bytes(const struct fixture *f)
{
    struct stat st;
    char tail[5];
    char *path = path_join(f->folder, LAYOUT_STDOUT);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pread(fd, tail, 5, st.st_size - 5), 5);
    assert_memory_equal(tail, "last\n", 5);
    (void)close(fd);
    free(path);
    return (int64_t)st.st_blocks * 512;
}

/* Its middle is given back while the worker runs. */
static void test_huge_output_is_bounded(void **state)
{
    struct fixture *f = *state;
    write_spec(f, "head -c 150000000 /dev/zero; echo last; > up; exec sleep 1000", 0, 1000);
    pid_t shim = start_shim(f);
    wait_file(f, "up");
    for (int64_t i = 0; i < PATIENCE / 5 && log_bytes(f) > 49 * MIB; i++) {
        clock_sleep_ms(5);
    }
    bool cut = log_bytes(f) <= 49 * MIB;
    assert_int_equal(kill(shim, SIGUSR1), 0);
    assert_int_equal(wait_shim(shim), 0);
    assert_true(cut);
}

/* Less than is cut while it runs, and more than is kept: cut at the end. */
static void test_large_output_is_bounded(void **state)
{
    struct fixture *f = *state;
    write_spec(f, "head -c 41943040 /dev/zero; echo last", 0, 1000);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    assert_int_equal(read_exit(f).code, 0);
    assert_true(log_bytes(f) <= 33 * MIB);
}

/* A worker whose folder was moved away looks for its files in vain: that says nothing of its data.
 */
static void test_moved_folder(void **state)
{
    struct fixture *f = *state;
    struct err err;
    char *away = xasprintf("%s.away", f->folder);
    char *go = path_join(away, "go");
    write_spec(f, "while [ ! -e go ]; do sleep 0.02; done; exit 65", 0, 1000);
    pid_t shim = start_shim(f);
    wait_started(f);
    assert_int_equal(rename(f->folder, away), 0);
    assert_int_equal(file_write_atomic(go, "", 0, 0600, &err), 0);
    assert_int_equal(wait_shim(shim), 0);
    assert_int_equal(rename(away, f->folder), 0);
    assert_int_equal(read_exit(f).reason, SHIM_MOVED);
    free(go);
    free(away);
}

/* ---- its own death ---- */

/* What a worker can throw away: environment, session, descriptors; and more. */
#define HIDDEN(more)                                                                               \
    "env -i setsid bash -c 'for i in /proc/$$/fd/*; do i=${i##*/}; [ $i -gt 2 ] && eval "          \
    "\"exec $i>&-\"; done; " more " echo $$ > orphan; exec sleep 1000' < /dev/null & wait"
#define LOWER_LIMIT "ulimit -R 1000000;"
#define LOWER_OOM   "echo 0 > /proc/self/oom_score_adj;"

static void bury(const struct fixture *f, const char *groups)
{
    const struct fence fence = {.folder = f->folder, .attempt = f->attempt, .groups = groups};
    bool fenced = false;
    size_t n = 1;
    struct err err;
    for (int i = 0; i < 600 && !fenced; i++) {
        assert_int_equal(fence_set(f->folder, &fenced, &err), 0);
        clock_sleep_ms(10);
    }
    assert_true(fenced);
    for (int i = 0; i < 600 && n > 0; i++) {
        assert_int_equal(fence_clear_tree(&fence, &n, &err), 0);
        clock_sleep_ms(10);
    }
    assert_int_equal(n, 0);
}

/* Starts the worker, kills its shim, and gives back what it left behind. */
static pid_t orphan_of(struct fixture *f, const char *groups, const char *script)
{
    write_spec(f, script, 0, 1000);
    pid_t shim = start_shim_in(f, groups);
    pid_t orphan = pid_in(f, "orphan");
    (void)kill(shim, SIGKILL);
    (void)wait_shim(shim);
    return orphan;
}

/* Neither a lock nor an environment names it, it has a session of its own and went to init: it is
 * known by the limit that it carries. */
static void test_fence_ends_hidden_orphans(void **state)
{
    struct fixture *f = *state;
    struct fixture other = {.folder = f->folder};
    uuid_make(other.attempt);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    pid_t orphan = orphan_of(f, NULL, HIDDEN(LOWER_OOM));
    bury(&other, NULL); /* by its mark it is another attempt's */
    assert_true(is_alive(orphan));
    bury(f, NULL);
    wait_gone(orphan);
}

/* A daemon that was started from inside a worker hands that worker's limit on to all it starts: one
 * attempt's burial leaves its other children alone, and still ends what came to it. */
static bool bury_inside_a_worker(struct fixture *f)
{
    char outer[UUID_TEXT_SIZE];
    uuid_make(outer);
    mark_set(mark_limit(outer));
    char *argv[] = {(char[]){"sleep"}, (char[]){"1000"}, NULL};
    pid_t living = -1;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(posix_spawn(&living, "/bin/sleep", NULL, NULL, argv, environ), 0);
    assert_int_equal(mark_read(living), mark_limit(outer));
    pid_t orphan = orphan_of(f, NULL, HIDDEN(LOWER_LIMIT));
    bury(f, NULL);
    bool spared = is_alive(living);
    (void)kill(living, SIGKILL);
    (void)waitpid(living, NULL, 0);
    wait_gone(orphan);
    return spared;
}

static void test_fence_inside_a_worker(void **state)
{
    pid_t daemon = fork(); /* the limit cannot be undone */
    assert_true(daemon >= 0);
    if (daemon == 0) {
        _exit(bury_inside_a_worker(*state) ? 0 : 1);
    }
    assert_int_equal(wait_shim(daemon), 0);
}

/* Without that limit, too, it is found because it came to us, whatever our own adjustment is. */
static void test_fence_ends_orphans_that_came_to_us(void **state)
{
    static const char *const adjustments[] = {"0", "700"};
    struct strbuf before = STRBUF_INIT;
    struct err err;
    assert_int_equal(file_read("/proc/self/oom_score_adj", 64, &before, &err), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (size_t i = 0; i < ARRAY_LEN(adjustments); i++) {
        CHECK_ROW("%s", adjustments[i]);
        struct fixture *f = *state;
        set_oom_adjustment(adjustments[i]);
        pid_t orphan = orphan_of(f, NULL, HIDDEN(LOWER_LIMIT));
        bury(f, NULL);
        wait_gone(orphan);
        set_oom_adjustment(before.buf);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    strbuf_release(&before);
}

/* ---- cgroups ---- */

static char *base_or_skip(void)
{
    char *base = NULL;
    struct err err;
    if (group_find_base(&base, &err) != 0) {
        print_message("skipped: %s\n", err.msg);
        skip();
    }
    return base;
}

/* A process without any mark, and not our child: its group holds it. The group is found by its name
 * below our own, or where start.json says. */
static void test_group_ends_what_has_no_mark(void **state)
{
    char *base = base_or_skip();
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    for (int i = 0; i < 2; i++) {
        struct fixture *f = *state;
        char *group = group_path(base, f->attempt);
        pid_t orphan = orphan_of(f, base, HIDDEN(LOWER_LIMIT LOWER_OOM));
        char *start = path_join(f->folder, LAYOUT_START);
        if (i == 0) {
            assert_int_equal(unlink(start), 0);
        }
        bury(f, i == 0 ? base : NULL);
        wait_gone(orphan);
        assert_int_equal(file_kind_at(group), FILE_ABSENT);
        free(start);
        free(group);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
    free(base);
}

/* What start.json names is killed only if it is this attempt's group: a worker can write there. */
static void test_only_its_own_group_is_ended(void **state)
{
    char *base = base_or_skip();
    char other[UUID_TEXT_SIZE];
    const struct fixture *f = *state;
    char *own = group_path(base, f->attempt);
    uuid_make(other);
    assert_false(group_is_of(base, f->attempt));
    assert_false(group_is_of(own, f->attempt)); /* not there */
    assert_int_equal(mkdir(own, 0755), 0);
    assert_true(group_is_of(own, f->attempt));
    assert_false(group_is_of(own, other));
    assert_true(group_remove(own));
    assert_false(group_is_of(f->folder, f->attempt));
    free(own);
    free(base);
}

/* On a kernel without cgroup.kill, stood for by one that cannot be written to: one by one, and also
 * what the worker put into a group of its own. */
static void test_group_without_kill(void **state)
{
    struct fixture *f = *state;
    char *base = base_or_skip();
    if (unshare(CLONE_NEWNS) != 0) {
        print_message("skipped: only root can hide cgroup.kill\n");
        free(base);
        skip();
    }
    char *group = group_path(base, f->attempt);
    char *script = xasprintf("mkdir %s/own; sleep 1000 & echo $! > %s/own/cgroup.procs; "
                             "echo $! > inner; exec sleep 1000",
                             group, group);
    write_spec(f, script, 0, 1000);
    pid_t shim = start_shim_in(f, base);
    pid_t inner = pid_in(f, "inner");
    hide_kill(f, group);
    group_kill(group);
    assert_int_equal(wait_shim(shim), 0);
    wait_gone(inner);
    assert_int_equal(read_exit(f).signal, SIGKILL);
    free(script);
    free(group);
    free(base);
}

/* The shim removes the group itself; SIGUSR1 ends what forks faster than it can be looked at. */
static void test_group_ends_a_fork_chain(void **state)
{
    struct fixture *f = *state;
    char *base = base_or_skip();
    char *group = group_path(base, f->attempt);
    struct shim_start start;
    struct err err;
    write_spec(f, "f() { [ -e up ] && (f &); exit; }; echo $$ > up; f & wait; sleep 1000", 0,
               600000);
    pid_t shim = start_shim_in(f, base);
    (void)pid_in(f, "up");
    assert_int_equal(shim_start_read(f->folder, f->attempt, &start, &err), 0);
    assert_string_equal(start.cgroup, group);
    assert_int_equal(kill(shim, SIGUSR1), 0);
    assert_int_equal(wait_shim(shim), 0);
    assert_int_equal(file_kind_at(group), FILE_ABSENT);
    free(group);
    free(base);
}

static void test_worker_dies_with_the_shim(void **state)
{
    struct fixture *f = *state;
    struct err err;
    struct shim_start start;
    struct shim_exit x;
    write_spec(f, "echo $$ > up; exec sleep 300", 0, 1000);
    pid_t shim = start_shim(f);
    pid_t worker = pid_in(f, "up");
    assert_true(is_locked(f));
    assert_int_equal(shim_start_read(f->folder, f->attempt, &start, &err), 0);
    assert_int_equal(start.shim_pid, shim);
    assert_int_equal(start.worker_pid, worker);
    assert_int_equal(kill(shim, SIGKILL), 0);
    assert_int_equal(wait_shim(shim), 1000 + SIGKILL);
    wait_gone(worker);
    assert_false(is_locked(f));
    assert_int_equal(shim_exit_read(f->folder, f->attempt, &x, &err), ERR_NOT_FOUND);
}

/* What a killed shim's worker left behind is found by the file it holds (a) or by its environment
 * (b). */
static void test_fence_ends_orphans(void **state)
{
    struct fixture *f = *state;
    const struct fence fence = {.folder = f->folder, .attempt = f->attempt};
    struct err err;
    bool fenced = true;
    size_t n = 0;
    write_spec(f,
               "env -i setsid bash -c '" LOWER_LIMIT
               " echo $$ > a; exec sleep 300' & setsid bash -c 'for i in 3 4 5 6 7 8 9; do eval "
               "\"exec $i>&-\"; done; exec sleep 301' & echo $! > b; sleep 0.1; echo $$ > up; wait",
               0, 1000);
    pid_t shim = start_shim(f);
    (void)pid_in(f, "up");
    pid_t a = pid_in(f, "a");
    pid_t b = pid_in(f, "b");
    assert_int_equal(fence_set(f->folder, &fenced, &err), 0);
    assert_false(fenced); /* it lives */
    assert_int_equal(kill(shim, SIGKILL), 0);
    (void)wait_shim(shim);
    clock_sleep_ms(50);
    assert_true(is_alive(a) && is_alive(b));
    assert_int_equal(fence_set(f->folder, &fenced, &err), 0);
    assert_true(fenced);
    assert_int_equal(fence_clear_tree(&fence, &n, &err), 0);
    assert_true(n >= 2);
    wait_gone(a);
    wait_gone(b);
    assert_int_equal(fence_clear_tree(&fence, &n, &err), 0);
    assert_int_equal(n, 0);
    assert_true(is_alive(getpid()));
}

static void test_late_shim_respects_the_fence(void **state)
{
    struct fixture *f = *state;
    struct err err;
    bool fenced = false;
    write_spec(f, "touch ran", 0, 1000);
    assert_int_equal(fence_set(f->folder, &fenced, &err), 0);
    assert_true(fenced);
    assert_int_equal(wait_shim(start_shim(f)), 1);
    char *path = path_join(f->folder, "ran");
    assert_int_equal(file_kind_at(path), FILE_ABSENT);
    assert_false(shim_was_started(f->folder));
    free(path);
}

static void test_an_attempt_runs_once(void **state)
{
    struct fixture *f = *state;
    write_spec(f, "echo x >> ran; sleep 0.5", 0, 1000);
    pid_t first = start_shim(f);
    wait_started(f);
    pid_t second = start_shim(f);
    assert_int_equal(wait_shim(first), 0);
    assert_int_equal(wait_shim(second), 1);
    assert_int_equal(wait_shim(start_shim(f)), 1);
    char *ran = slurp(f, "ran");
    assert_string_equal(ran, "x\n");
    free(ran);
}

/* A number that belongs to another process by now is never signalled. */
static void test_pid_identity(void **state)
{
    (void)state;
    struct err err;
    struct pid_stat own;
    char boot[40];
    int fd = -1;
    clock_boot_id(boot);
    assert_true(pid_stat_read(getpid(), &own));
    assert_int_equal(pid_open(getpid(), own.start, boot, &fd, &err), 0);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(pid_open(getpid(), own.start + 1, boot, &fd, &err), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(pid_open(getpid(), own.start, "another-boot", &fd, &err), 0);
    assert_int_equal(fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_endings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_worker_is_spawn_failed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_environment_is_what_was_given, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sigterm_reaches_the_worker, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_deaf_worker_is_killed_after_the_grace_time, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_sigusr1_kills_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_of_a_child_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_within_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_huge_output_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_output_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_worker_dies_with_the_shim, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fence_ends_orphans, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fence_ends_hidden_orphans, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fence_ends_orphans_that_came_to_us, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fence_inside_a_worker, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_group_ends_what_has_no_mark, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_its_own_group_is_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_group_ends_a_fork_chain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_group_without_kill, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_late_shim_respects_the_fence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_attempt_runs_once, set_up, tear_down),
        cmocka_unit_test(test_pid_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
