/* Starting shims through a spawner that works, is killed, or is none: no shim ends with it, and
 * every attempt is started all the same. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/strbuf.h"
#include "base/xalloc.h"
#include "daemon/executor/launch.h"
#include "daemon/shim/files.h"
#include "daemon/shim/pid.h"
#include "tests/unit/check.h"

#define SHIM    TEST_BIN_DIR "/prereg-shim"
#define WAIT_MS 60000

struct fixture {
    char root[32];
    char *words;
    struct launch *launch;
};

struct attempt {
    char id[UUID_TEXT_SIZE];
    char *folder;
    struct launched shim;
    struct shim_start start;
};

static void set_up(struct fixture *f, const char *shim)
{
    (void)snprintf(f->root, sizeof(f->root), "/tmp/launch_test_XXXXXX");
    assert_non_null(mkdtemp(f->root));
    f->words = path_join(f->root, "words.log");
    f->launch = launch_new(shim, f->words);
}

static void tear_down(struct fixture *f)
{
    struct err err;
    launch_free(f->launch);
    free(f->words);
    assert_int_equal(dir_remove(f->root, &err), 0);
}

/* A worker that sleeps `seconds`. */
static void begin(const struct fixture *f, struct attempt *a, const char *seconds)
{
    struct shim_spec spec = {.exec = xstrdup("/bin/sleep"), .grace_ms = 1000};
    struct strbuf text = STRBUF_INIT;
    struct err err;
    int fd = -1;
    uuid_make(a->id);
    memcpy(spec.attempt, a->id, sizeof(spec.attempt));
    a->folder = path_join(f->root, a->id);
    assert_int_equal(dir_make(a->folder, 0700, &err), 0);
    shim_spec_add_arg(&spec, "sleep");
    shim_spec_add_arg(&spec, seconds);
    shim_spec_add_env(&spec, "PATH", "/bin");
    assert_int_equal(shim_spec_text(&spec, &text, &err), 0);
    assert_int_equal(file_in_memory("spec", text.buf, text.len, &fd, &err), 0);
    int rc = launch_shim(f->launch, a->folder, NULL, fd, &a->shim, &err);
    assert_int_equal(rc, 0);
    assert_true(a->shim.pid > 0 && a->shim.pidfd >= 0);
    (void)close(fd);
    strbuf_release(&text);
    shim_spec_release(&spec);
}

static bool worker_runs(struct attempt *a)
{
    struct err err;
    for (int64_t until = clock_mono().ms + WAIT_MS; clock_mono().ms < until; clock_sleep_ms(10)) {
        if (shim_start_read(a->folder, a->id, &a->start, &err) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_ended(const struct attempt *a)
{
    struct pollfd p = {.fd = a->shim.pidfd, .events = POLLIN};
    return poll(&p, 1, WAIT_MS) == 1;
}

static void expect_exit(const struct attempt *a, int code)
{
    struct shim_exit end;
    struct err err;
    assert_true(has_ended(a));
    assert_int_equal(shim_exit_read(a->folder, a->id, &end, &err), 0);
    assert_int_equal(end.code, code);
}

static void release(struct attempt *a)
{
    if (a->shim.is_child) {
        (void)waitpid(a->shim.pid, NULL, 0);
    }
    (void)close(a->shim.pidfd);
    free(a->folder);
}

static pid_t parent_of(pid_t pid)
{
    struct pid_stat s;
    assert_true(pid_stat_read(pid, &s));
    return s.parent;
}

static void test_by_the_spawner(void **state)
{
    struct fixture f;
    struct attempt a;
    struct attempt b;
    (void)state;
    set_up(&f, SHIM);
    begin(&f, &a, "0");
    begin(&f, &b, "1000");
    assert_false(a.shim.is_child || b.shim.is_child);
    expect_exit(&a, 0);
    assert_true(worker_runs(&b));
    assert_int_equal(b.start.shim_pid, b.shim.pid);
    assert_true(parent_of(b.shim.pid) != getpid());
    assert_int_equal(getsid(b.shim.pid), b.shim.pid);
    assert_int_equal(kill(b.shim.pid, SIGKILL), 0);
    assert_true(has_ended(&b));
    int status = 0;
    bool known = false;
    for (int i = 0; i < WAIT_MS / 10 && !known; i++) { /* reaped after its pidfd was readable */
        known = launch_how(f.launch, b.shim.pid, &status);
        clock_sleep_ms(10);
    }
    assert_true(known);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_false(launch_how(f.launch, getpid(), &status));
    release(&a);
    release(&b);
    tear_down(&f);
}

/* The shim and its worker live on, and the next one has a new spawner. */
static void test_spawner_is_killed(void **state)
{
    struct fixture f;
    struct attempt a;
    struct attempt b;
    (void)state;
    set_up(&f, SHIM);
    begin(&f, &a, "1000");
    assert_true(worker_runs(&a));
    assert_int_equal(kill(parent_of(a.shim.pid), SIGKILL), 0);
    begin(&f, &b, "0");
    expect_exit(&b, 0);
    struct attempt c;
    begin(&f, &c, "0");
    assert_false(c.shim.is_child);
    expect_exit(&c, 0);
    struct pid_stat s;
    assert_true(pid_stat_read((pid_t)a.start.worker_pid, &s) && s.state != 'Z');
    assert_int_equal(kill(a.shim.pid, SIGUSR1), 0);
    assert_true(has_ended(&a));
    release(&a);
    release(&b);
    release(&c);
    tear_down(&f);
}

/* The spawner's child that runs no attempt yet. */
static pid_t spare_of(pid_t spawner, pid_t other)
{
    pid_t spare = 0;
    for (int i = 0; i < WAIT_MS / 10 && spare == 0; i++, clock_sleep_ms(10)) {
        struct pid_list all;
        struct err err;
        assert_int_equal(pid_descendants(spawner, &all, &err), 0);
        for (size_t k = 0; k < all.n && spare == 0; k++) {
            struct pid_stat s;
            bool is_spare = all.pids[k] != other && pid_stat_read(all.pids[k], &s) &&
                            s.parent == spawner && s.state != 'Z';
            spare = is_spare ? all.pids[k] : 0;
        }
        pid_list_release(&all);
    }
    return spare;
}

/* Killed, and seen to be dead: what is handed to a dying spare would be an attempt never
 * launched. */
static void end_surely(pid_t pid)
{
    struct pid_stat s;
    assert_int_equal(kill(pid, SIGKILL), 0);
    while (pid_stat_read(pid, &s) && s.state != 'Z') {
        clock_sleep_ms(1);
    }
}

/* A spare that was killed costs no attempt; one whose spawner was killed ends, and is waited for.
 */
static void test_spare_is_killed(void **state)
{
    struct fixture f;
    struct attempt a;
    struct attempt b;
    struct attempt c;
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    set_up(&f, SHIM);
    begin(&f, &a, "1000");
    pid_t spawner = parent_of(a.shim.pid);
    pid_t spare = spare_of(spawner, a.shim.pid);
    assert_true(spare > 0);
    assert_int_equal(getpgid(spare), spawner);
    end_surely(spare);
    begin(&f, &b, "0");
    expect_exit(&b, 0);
    assert_false(b.shim.is_child);
    assert_true(b.shim.pid != spare && parent_of(a.shim.pid) == spawner);
    assert_true(spare_of(spawner, a.shim.pid) > 0);
    assert_int_equal(kill(spawner, SIGKILL), 0);
    begin(&f, &c, "0");
    expect_exit(&c, 0);
    assert_true(kill(-spawner, 0) != 0 && errno == ESRCH);
    assert_int_equal(kill(a.shim.pid, SIGUSR1), 0);
    assert_true(has_ended(&a));
    (void)waitpid(a.shim.pid, NULL, 0);
    release(&a);
    release(&b);
    release(&c);
    tear_down(&f);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

/* The shim's processors are those of the daemon now, and so is its nice value; what runs keeps what
 * it has. */
static void test_changed_while_it_runs(void **state)
{
    struct fixture f;
    struct attempt a;
    struct attempt b;
    struct attempt c;
    cpu_set_t all;
    cpu_set_t of_a;
    cpu_set_t of_b;
    cpu_set_t one;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    if (CPU_COUNT(&all) < 2) {
        skip();
    }
    set_up(&f, SHIM);
    begin(&f, &a, "1000");
    assert_true(worker_runs(&a));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
        }
    }
    const int nice = getpriority(PRIO_PROCESS, 0);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    begin(&f, &b, "1000");
    assert_int_equal(setpriority(PRIO_PROCESS, 0, nice + 1), 0);
    begin(&f, &c, "1000");
    assert_true(worker_runs(&b) && worker_runs(&c));
    assert_false(b.shim.is_child || c.shim.is_child);
    assert_int_equal(sched_getaffinity((pid_t)a.start.worker_pid, sizeof(of_a), &of_a), 0);
    assert_int_equal(sched_getaffinity((pid_t)b.start.worker_pid, sizeof(of_b), &of_b), 0);
    assert_true(CPU_EQUAL(&of_a, &all));
    assert_true(CPU_EQUAL(&of_b, &one));
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)b.start.worker_pid), nice);
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)c.start.worker_pid), nice + 1);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    (void)setpriority(PRIO_PROCESS, 0, nice); /* refused without the right to it */
    struct attempt *const each[] = {&a, &b, &c};
    for (size_t i = 0; i < ARRAY_LEN(each); i++) {
        CHECK_ROW("each[%zu]", i);
        assert_int_equal(kill(each[i]->shim.pid, SIGUSR1), 0);
        assert_true(has_ended(each[i]));
        release(each[i]);
    }
    tear_down(&f);
}

/* Closing the launch, as a daemon that stops or dies does, ends no shim. */
static void test_shims_outlive_the_launch(void **state)
{
    struct fixture f;
    struct attempt a;
    struct err err;
    (void)state;
    set_up(&f, SHIM);
    begin(&f, &a, "1000");
    assert_true(worker_runs(&a));
    launch_free(f.launch);
    f.launch = NULL;
    struct pid_stat s;
    assert_true(pid_stat_read((pid_t)a.start.worker_pid, &s) && s.state != 'Z');
    assert_int_equal(pid_signal(a.shim.pidfd, SIGUSR1, &err), 0);
    assert_true(has_ended(&a));
    release(&a);
    tear_down(&f);
}

/* An executable that is no spawner: the shim is executed, and is a child. */
static void test_without_a_spawner(void **state)
{
    static const char script[] = "#!/bin/sh\n[ \"$1\" = --spawner ] && exit 3\n"
                                 "exec " SHIM " \"$@\"\n";
    struct fixture f;
    struct attempt a;
    struct err err;
    (void)state;
    set_up(&f, SHIM);
    launch_free(f.launch);
    char *own = path_join(f.root, "prereg-shim");
    assert_int_equal(file_write_atomic(own, script, strlen(script), 0700, &err), 0);
    f.launch = launch_new(own, f.words);
    begin(&f, &a, "0");
    assert_true(a.shim.is_child);
    expect_exit(&a, 0);
    release(&a);
    free(own);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_the_spawner),    cmocka_unit_test(test_spawner_is_killed),
        cmocka_unit_test(test_spare_is_killed),   cmocka_unit_test(test_shims_outlive_the_launch),
        cmocka_unit_test(test_without_a_spawner), cmocka_unit_test(test_changed_while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
