/* prereg-shim against workers that misbehave, and against its own death. Workers are shell
 * one-liners; every case has its own attempt folder under $TMPDIR. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/shim/fence.h"
#include "daemon/shim/files.h"
#include "daemon/shim/pid.h"

#define SHIM     TEST_BIN_DIR "/prereg-shim"
#define PATIENCE 15000
#define MIB      ((int64_t)1024 * 1024)

extern char **environ;

struct fixture {
    char *folder;
    char attempt[UUID_TEXT_SIZE];
};

static int set_up(void **state)
{
    const char *tmp = getenv("TMPDIR");
    struct fixture *f = xcalloc(1, sizeof(*f));
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
    free(f->folder);
    free(f);
    return rc;
}

static void write_spec(const struct fixture *f, const char *script, int64_t memory, int64_t grace)
{
    struct shim_spec s = {.exec = xstrdup("/bin/bash"), .memory_bytes = memory, .grace_ms = grace};
    struct err err;
    memcpy(s.attempt, f->attempt, sizeof(s.attempt));
    char *task = path_join(f->folder, "task.json");
    shim_spec_add_arg(&s, "bash");
    shim_spec_add_arg(&s, "-c");
    shim_spec_add_arg(&s, script);
    shim_spec_add_env(&s, "PATH", "/usr/bin:/bin");
    shim_spec_add_env(&s, "PREREG_TASK", task);
    assert_int_equal(shim_spec_write(f->folder, &s, &err), 0);
    free(task);
    shim_spec_release(&s);
}

static pid_t start_shim(const struct fixture *f)
{
    pid_t pid = -1;
    char *path = xstrdup(SHIM);
    char *argv[] = {path, f->folder, NULL};
    assert_int_equal(posix_spawn(&pid, SHIM, NULL, NULL, argv, environ), 0);
    free(path);
    return pid;
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

static char *slurp(const struct fixture *f, const char *name)
{
    struct strbuf sb = STRBUF_INIT;
    struct err err;
    char *path = path_join(f->folder, name);
    assert_int_equal(file_read(path, (size_t)1 << 30, &sb, &err), 0);
    free(path);
    return strbuf_detach(&sb);
}

static bool is_locked(const struct fixture *f, const char *name)
{
    bool held = false;
    struct err err;
    char *path = path_join(f->folder, name);
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
    };
    const struct fixture *base = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f = {.folder = xasprintf("%s/%zu", base->folder, i)};
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
        assert_false(is_locked(&f, SHIM_LOCK_FILE));
        assert_false(is_locked(&f, SHIM_TREE_FILE));
        free(f.folder);
    }
}

static void test_missing_worker_is_spawn_failed(void **state)
{
    const struct fixture *f = *state;
    struct shim_spec s = {.exec = xstrdup("/nonexistent/worker")};
    struct err err;
    memcpy(s.attempt, f->attempt, sizeof(s.attempt));
    shim_spec_add_arg(&s, "worker");
    shim_spec_add_env(&s, "PATH", "/bin");
    assert_int_equal(shim_spec_write(f->folder, &s, &err), 0);
    shim_spec_release(&s);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    struct shim_exit x = read_exit(f);
    assert_int_equal(x.reason, SHIM_SPAWN_FAILED);
    assert_non_null(strstr(x.detail, "/nonexistent/worker"));
}

static void test_environment_is_what_was_given(void **state)
{
    const struct fixture *f = *state;
    write_spec(f, "/usr/bin/env | sort; pwd -P; ulimit -c", 0, 1000);
    assert_int_equal(setenv("PREREG_LEAK", "yes", 1), 0);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    char *out = slurp(f, SHIM_STDOUT_FILE);
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
    const struct fixture *f = *state;
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
    const struct fixture *f = *state;
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
}

static void test_sigusr1_kills_at_once(void **state)
{
    const struct fixture *f = *state;
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
    const struct fixture *f = *state;
    write_spec(f, "x=$(head -c 400000000 /dev/zero | tr '\\0' y); sleep 5; exit 0", 100 * MIB,
               1000);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    struct shim_exit x = read_exit(f);
    assert_int_equal(x.reason, SHIM_MEMORY);
    assert_int_equal(x.signal, SIGKILL);
}

static void test_memory_of_a_child_counts(void **state)
{
    const struct fixture *f = *state;
    write_spec(f,
               "bash -c 'x=$(head -c 400000000 /dev/zero | tr \"\\0\" y); sleep 9' & wait; exit 0",
               100 * MIB, 1000);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    assert_int_equal(read_exit(f).reason, SHIM_MEMORY);
}

static void test_memory_within_the_limit(void **state)
{
    const struct fixture *f = *state;
    write_spec(f, "x=$(head -c 20000000 /dev/zero | tr '\\0' y); sleep 0.3; exit 0", 300 * MIB,
               1000);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    assert_int_equal(read_exit(f).code, 0);
}

static void test_huge_output_is_bounded(void **state)
{
    const struct fixture *f = *state;
    write_spec(f, "echo first; head -c 150000000 /dev/zero; echo last", 0, 1000);
    assert_int_equal(wait_shim(start_shim(f)), 0);
    assert_int_equal(read_exit(f).code, 0);
    char *path = path_join(f->folder, SHIM_STDOUT_FILE);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true((int64_t)st.st_blocks * 512 < 33 * MIB);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char tail[5];
    assert_int_equal(pread(fd, tail, 5, st.st_size - 5), 5);
    assert_memory_equal(tail, "last\n", 5);
    (void)close(fd);
    free(path);
}

/* A worker whose folder was moved away looks for its files in vain: that says nothing of its data.
 */
static void test_moved_folder(void **state)
{
    const struct fixture *f = *state;
    struct err err;
    char *away = xasprintf("%s.away", f->folder);
    char *go = path_join(away, "go");
    write_spec(f, "while [ ! -e go ]; do sleep 0.02; done; exit 65", 0, 1000);
    pid_t shim = start_shim(f);
    wait_file(f, SHIM_START_FILE);
    assert_int_equal(rename(f->folder, away), 0);
    assert_int_equal(file_write_atomic(go, "", 0, 0600, &err), 0);
    assert_int_equal(wait_shim(shim), 0);
    assert_int_equal(rename(away, f->folder), 0);
    assert_int_equal(read_exit(f).reason, SHIM_MOVED);
    free(go);
    free(away);
}

/* ---- its own death ---- */

/* Neither a lock nor an environment names it, it has a session of its own: it is found because it
 * came to us. */
static void test_fence_ends_hidden_orphans(void **state)
{
    const struct fixture *f = *state;
    bool fenced = false;
    size_t n = 1;
    struct err err;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    write_spec(f,
               "env -i setsid bash -c 'for i in /proc/$$/fd/*; do i=${i##*/}; [ $i -gt 2 ] && eval "
               "\"exec $i>&-\"; done; echo $$ > orphan; exec sleep 1000' < /dev/null & wait",
               0, 1000);
    pid_t shim = start_shim(f);
    pid_t orphan = pid_in(f, "orphan");
    (void)kill(shim, SIGKILL);
    (void)wait_shim(shim);
    for (int i = 0; i < 600 && !fenced; i++) {
        assert_int_equal(fence_set(f->folder, &fenced, &err), 0);
        clock_sleep_ms(10);
    }
    assert_true(fenced);
    for (int i = 0; i < 600 && n > 0; i++) {
        assert_int_equal(fence_clear_tree(f->folder, &n, &err), 0);
        clock_sleep_ms(10);
    }
    wait_gone(orphan);
}

static void test_worker_dies_with_the_shim(void **state)
{
    const struct fixture *f = *state;
    struct err err;
    struct shim_start start;
    struct shim_exit x;
    write_spec(f, "echo $$ > up; exec sleep 300", 0, 1000);
    pid_t shim = start_shim(f);
    pid_t worker = pid_in(f, "up");
    assert_true(is_locked(f, SHIM_LOCK_FILE));
    assert_true(is_locked(f, SHIM_TREE_FILE));
    assert_int_equal(shim_start_read(f->folder, f->attempt, &start, &err), 0);
    assert_int_equal(start.shim_pid, shim);
    assert_int_equal(start.worker_pid, worker);
    assert_int_equal(kill(shim, SIGKILL), 0);
    assert_int_equal(wait_shim(shim), 1000 + SIGKILL);
    wait_gone(worker);
    assert_false(is_locked(f, SHIM_LOCK_FILE));
    assert_false(is_locked(f, SHIM_TREE_FILE));
    assert_int_equal(shim_exit_read(f->folder, f->attempt, &x, &err), ERR_NOT_FOUND);
}

/* What a killed shim's worker left behind is found by the file it holds or by its environment. */
static void test_fence_ends_orphans(void **state)
{
    const struct fixture *f = *state;
    struct err err;
    bool fenced = true;
    size_t n = 0;
    write_spec(f,
               "setsid sleep 300 & echo $! > a; setsid bash -c 'for i in 3 4 5 6 7 8 9; do eval "
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
    assert_true(is_locked(f, SHIM_TREE_FILE));
    assert_int_equal(fence_set(f->folder, &fenced, &err), 0);
    assert_true(fenced);
    assert_int_equal(fence_clear_tree(f->folder, &n, &err), 0);
    assert_true(n >= 2);
    wait_gone(a);
    wait_gone(b);
    assert_int_equal(fence_clear_tree(f->folder, &n, &err), 0);
    assert_int_equal(n, 0);
    assert_false(is_locked(f, SHIM_TREE_FILE));
    assert_true(is_alive(getpid()));
}

static void test_late_shim_respects_the_fence(void **state)
{
    const struct fixture *f = *state;
    struct err err;
    bool fenced = false;
    write_spec(f, "touch ran", 0, 1000);
    assert_int_equal(fence_set(f->folder, &fenced, &err), 0);
    assert_true(fenced);
    assert_int_equal(wait_shim(start_shim(f)), 1);
    char *path = path_join(f->folder, "ran");
    assert_int_equal(file_kind_at(path), FILE_ABSENT);
    free(path);
}

static void test_an_attempt_runs_once(void **state)
{
    const struct fixture *f = *state;
    write_spec(f, "echo x >> ran; sleep 0.5", 0, 1000);
    pid_t first = start_shim(f);
    wait_file(f, SHIM_START_FILE);
    pid_t second = start_shim(f);
    assert_int_equal(wait_shim(first), 0);
    assert_int_equal(wait_shim(second), 1);
    assert_int_equal(wait_shim(start_shim(f)), 1);
    char *ran = slurp(f, "ran");
    assert_string_equal(ran, "x\n");
    free(ran);
}

static void test_torn_files_are_corrupt_not_trusted(void **state)
{
    const struct fixture *f = *state;
    struct err err;
    struct shim_exit x;
    struct shim_start s;
    static const char *const torn[] = {"",   "{",    "{\"protocol\":1}",
                                       "[]", "null", "{\"protocol\":2,\"attempt\":\"x\"}"};
    char *exit_path = path_join(f->folder, SHIM_EXIT_FILE);
    char *start_path = path_join(f->folder, SHIM_START_FILE);
    for (size_t i = 0; i < ARRAY_LEN(torn); i++) {
        assert_int_equal(file_write_atomic(exit_path, torn[i], strlen(torn[i]), 0600, &err), 0);
        assert_int_equal(file_write_atomic(start_path, torn[i], strlen(torn[i]), 0600, &err), 0);
        assert_int_equal(shim_exit_read(f->folder, f->attempt, &x, &err), ERR_CORRUPT);
        assert_int_equal(shim_start_read(f->folder, f->attempt, &s, &err), ERR_CORRUPT);
    }
    char other[UUID_TEXT_SIZE];
    uuid_make(other);
    struct shim_exit good = {.reason = SHIM_EXITED};
    memcpy(good.attempt, other, sizeof(other));
    assert_int_equal(shim_exit_write(f->folder, &good, &err), 0);
    assert_int_equal(shim_exit_read(f->folder, other, &x, &err), 0);
    assert_int_equal(shim_exit_read(f->folder, f->attempt, &x, &err), ERR_CORRUPT);
    free(exit_path);
    free(start_path);
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
        cmocka_unit_test_setup_teardown(test_worker_dies_with_the_shim, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fence_ends_orphans, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fence_ends_hidden_orphans, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_late_shim_respects_the_fence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_attempt_runs_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_torn_files_are_corrupt_not_trusted, set_up, tear_down),
        cmocka_unit_test(test_pid_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
