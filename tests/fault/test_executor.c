/* The local executor against a shim that does not do what it is told. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/executor/local.h"
#include "daemon/shim/fence.h"
#include "daemon/shim/files.h"
#include "daemon/shim/group.h"
#include "daemon/shim/heartbeat.h"
#include "daemon/shim/pid.h"
#include "tests/unit/check.h"

#define SHIM     TEST_BIN_DIR "/prereg-shim"
#define OWN_SHIM "slow-shim"
/* Asked to be the spawner it says no: what it would leave behind there would never end. */
#define NO_SPAWNER "#!/bin/sh\n[ \"$1\" = --spawner ] && exit 3\n"
#define TURN_MS    20
#define N_TURNS    3000 /* a minute */
#define YOUNG_MS   300

struct scene {
    uv_loop_t loop;
    uv_timer_t timer;
    struct executor *executor;
    struct attempt_key key;
    char root[32];
    char *folder;
    struct strbuf spec; /* what its shim is told to run */
    char id[UUID_TEXT_SIZE];
    struct shim_start start;
    int n_turns;
    int n_kills;
    int n_asked;
    uint64_t begun_ms;
    int n_young; /* probes that were answered: not known */
    int n_alive; /* likewise: alive */
    struct heartbeat beat;
    bool stopped;
    bool has_ended;
    bool reaped;
    struct attempt_end end;
};

static void on_ended(void *ctx, const struct attempt_key *key, const struct attempt_end *end)
{
    struct scene *s = ctx;
    assert_int_equal(key->task, s->key.task);
    s->has_ended = true;
    s->end = *end;
}

static void on_probed(void *ctx, const struct attempt_key *key, enum core_health health)
{
    struct scene *s = ctx;
    (void)key;
    s->n_young += health == HEALTH_UNKNOWN;
    s->n_alive += health == HEALTH_ALIVE;
}

static bool is_stopped(pid_t pid)
{
    struct pid_stat p;
    return pid_stat_read(pid, &p) && p.state == 'T';
}

/* As the core does it: told to kill, and told again. */
static void on_turn(uv_timer_t *timer)
{
    struct scene *s = timer->data;
    struct err err;
    if (s->has_ended || ++s->n_turns > N_TURNS) {
        s->executor->ops->close(s->executor);
        uv_close((uv_handle_t *)timer, NULL);
    } else if (!s->stopped) {
        if (shim_start_read(s->folder, s->id, &s->start, &err) == 0 &&
            kill((pid_t)s->start.shim_pid, SIGSTOP) == 0) {
            s->stopped = true;
        }
    } else if (is_stopped((pid_t)s->start.shim_pid) && s->n_kills < 2) {
        s->n_kills++;
        s->executor->ops->kill(s->executor, &s->key);
    }
}

static void write_spec(struct scene *s)
{
    struct shim_spec spec = {.exec = xstrdup("/bin/sleep"), .grace_ms = 1000};
    struct err err;
    memcpy(spec.attempt, s->id, sizeof(spec.attempt));
    shim_spec_add_arg(&spec, "sleep");
    shim_spec_add_arg(&spec, "1000");
    char *task = path_join(s->folder, "task.json");
    shim_spec_add_env(&spec, "PREREG_TASK", task);
    assert_int_equal(shim_spec_text(&spec, &s->spec, &err), 0);
    free(task);
    shim_spec_release(&spec);
}

static void on_began(void *ctx, const struct attempt_key *key)
{
    const struct scene *s = ctx;
    assert_int_equal(key->task, s->key.task);
}

/* shim NULL: OWN_SHIM, which the caller puts into the scene's root. */
static void set_up(struct scene *s, const char *shim, uv_timer_cb on_timer)
{
    struct executor_listener listener = {
        .ctx = s, .began = on_began, .ended = on_ended, .probed = on_probed};
    struct err err;
    s->key = (struct attempt_key){.program = 1, .task = 2, .no = 1};
    s->spec = (struct strbuf)STRBUF_INIT;
    (void)snprintf(s->root, sizeof(s->root), "/tmp/executor_test_XXXXXX");
    assert_non_null(mkdtemp(s->root));
    uuid_make(s->id);
    s->folder = xasprintf("%s/cells/a=1/train/attempt-0001-%s", s->root, s->id);
    char *words = path_join(s->root, "shim.log");
    assert_int_equal(dir_make(s->folder, 0700, &err), 0);
    assert_int_equal(uv_loop_init(&s->loop), 0);
    char *own = path_join(s->root, OWN_SHIM);
    s->executor = local_create(&s->loop, shim == NULL ? own : shim, words, YOUNG_MS, &listener);
    assert_int_equal(uv_timer_init(&s->loop, &s->timer), 0);
    s->timer.data = s;
    assert_int_equal(uv_timer_start(&s->timer, on_timer, TURN_MS, TURN_MS), 0);
    free(own);
    free(words);
}

/* Until on_timer has closed everything. */
static void finish(struct scene *s)
{
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    s->executor->ops->free(s->executor);
}

static void run(struct scene *s)
{
    struct attempt_place place = {
        .key = s->key, .id = s->id, .folder = s->folder, .spec = &s->spec};
    struct err err;
    assert_int_equal(s->executor->ops->start(s->executor, &place, &err), 0);
    finish(s);
}

static void tear_down(struct scene *s)
{
    struct err err;
    assert_int_equal(dir_remove(s->root, &err), 0);
    strbuf_release(&s->spec);
    free(s->folder);
}

static void test_stopped_for_good(void **state)
{
    struct scene s = {0};
    (void)state;
    set_up(&s, SHIM, on_turn);
    write_spec(&s);
    run(&s);
    if (!s.has_ended) {
        (void)kill((pid_t)s.start.shim_pid, SIGKILL);
        fail_msg("a shim that was stopped keeps its attempt for ever");
    }
    assert_int_equal(s.end.reason, END_LOST);
    struct pid_stat worker;
    bool alive = pid_stat_read((pid_t)s.start.worker_pid, &worker) && worker.state != 'Z' &&
                 worker.start == s.start.worker_start;
    assert_false(alive);
    tear_down(&s);
}

/* ---- a shim that is slow after exit.json ---- */

static bool has(const struct scene *s, const char *name)
{
    char *path = path_join(s->folder, name);
    bool there = file_kind_at(path) == FILE_REGULAR;
    free(path);
    return there;
}

static void put(const struct scene *s, const char *name, const char *text, mode_t mode)
{
    struct err err;
    char *path = path_join(s->folder, name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), mode, &err), 0);
    free(path);
}

static bool has_children(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0; /* else ECHILD */
}

/* Probes once exit.json is there, lets the shim go once the end was told, and waits for it to be
 * waited for. */
static void on_slow_turn(uv_timer_t *timer)
{
    struct scene *s = timer->data;
    struct attempt_place place = {.key = s->key, .id = s->id, .folder = s->folder};
    if (++s->n_turns > N_TURNS || (s->has_ended && s->stopped && !has_children())) {
        s->reaped = !has_children();
        s->executor->ops->close(s->executor);
        uv_close((uv_handle_t *)timer, NULL);
    } else if (s->has_ended && !s->stopped) {
        put(s, "go", "", 0600);
        s->stopped = true;
    } else if (!s->has_ended && has(s, LAYOUT_EXIT)) {
        s->executor->ops->probe(s->executor, &place);
    }
}

/* A stand-in that stays between exit.json and its exit, for which the real one takes no time. */
static void test_end_seen_before_the_exit(void **state)
{
    static const char script[] = NO_SPAWNER "mv \"$1/prepared\" \"$1/" LAYOUT_EXIT "\"\n"
                                            "while [ ! -e \"$1/go\" ]; do sleep 0.02; done\n";
    struct scene s = {0};
    struct shim_exit end = {.reason = SHIM_EXITED, .code = 3};
    struct err err;
    (void)state;
    set_up(&s, NULL, on_slow_turn);
    put(&s, "../../../../" OWN_SHIM, script, 0700);
    memcpy(end.attempt, s.id, sizeof(end.attempt));
    char *start = path_join(s.folder, LAYOUT_START);
    int fd = open(start, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(shim_exit_write(s.folder, fd, &(struct shim_start){0}, &end, &err), 0);
    (void)close(fd);
    char *written = path_join(s.folder, LAYOUT_EXIT);
    char *prepared = path_join(s.folder, "prepared");
    assert_int_equal(rename(written, prepared), 0);
    run(&s);
    assert_true(s.has_ended);
    assert_int_equal(s.end.code, 3);
    assert_true(s.reaped);
    free(prepared);
    free(written);
    free(start);
    tear_down(&s);
}

/* ---- a shim whose spawner was killed ---- */

static bool is_child(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0; /* else ECHILD */
}

/* Once the worker runs: stops the shim, kills its spawner, lets a probe see an exit.json, and kills
 * the shim after its end was told. Its child is this process now. */
static void on_heir_turn(uv_timer_t *timer)
{
    struct scene *s = timer->data;
    struct attempt_place place = {.key = s->key, .id = s->id, .folder = s->folder};
    struct shim_exit end = {.reason = SHIM_EXITED, .code = 3};
    struct pid_stat p;
    struct err err;
    const pid_t shim = (pid_t)s->start.shim_pid;
    if (++s->n_turns > N_TURNS / 6 || (s->has_ended && s->n_kills > 0 && !is_child(shim))) {
        s->reaped = !is_child(shim);
        s->executor->ops->close(s->executor);
        uv_close((uv_handle_t *)timer, NULL);
    } else if (!s->stopped) {
        if (shim_start_read(s->folder, s->id, &s->start, &err) == 0) {
            assert_true(pid_stat_read((pid_t)s->start.shim_pid, &p));
            assert_int_equal(kill((pid_t)s->start.shim_pid, SIGSTOP), 0);
            assert_int_equal(kill(p.parent, SIGKILL), 0);
            s->stopped = true;
        }
    } else if (!s->has_ended && is_stopped(shim) && is_child(shim)) {
        memcpy(end.attempt, s->id, sizeof(end.attempt));
        char *start = path_join(s->folder, LAYOUT_START);
        int fd = open(start, O_RDWR | O_CLOEXEC);
        assert_int_equal(shim_exit_write(s->folder, fd, &s->start, &end, &err), 0);
        (void)close(fd);
        free(start);
        s->executor->ops->probe(s->executor, &place);
    } else if (s->has_ended && s->n_kills++ == 0) {
        assert_int_equal(kill(shim, SIGKILL), 0);
    }
}

static void test_heir_is_reaped(void **state)
{
    struct scene s = {0};
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    set_up(&s, SHIM, on_heir_turn);
    write_spec(&s);
    run(&s);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    (void)kill((pid_t)s.start.worker_pid, SIGKILL);
    (void)waitpid((pid_t)s.start.worker_pid, NULL, 0);
    assert_true(s.has_ended);
    assert_int_equal(s.end.code, 3);
    assert_true(s.reaped);
    tear_down(&s);
}

/* ---- a folder that was moved ---- */

static void move_cells(const struct scene *s, bool away)
{
    char *at = path_join(s->root, "cells");
    char *aside = path_join(s->root, "aside");
    assert_int_equal(away ? rename(at, aside) : rename(aside, at), 0);
    free(aside);
    free(at);
}

/* Its shim dies while its folder is elsewhere, and it is probed for some seconds. */
static void on_moved_turn(uv_timer_t *timer)
{
    enum { AWAY_TURNS = 150 };
    struct scene *s = timer->data;
    struct attempt_place place = {.key = s->key, .id = s->id, .folder = s->folder, .used = true};
    struct err err;
    if (s->has_ended || ++s->n_turns > N_TURNS) {
        s->executor->ops->close(s->executor);
        uv_close((uv_handle_t *)timer, NULL);
    } else if (!s->stopped) {
        if (shim_start_read(s->folder, s->id, &s->start, &err) == 0) {
            s->stopped = true;
            s->n_asked = s->n_turns;
            move_cells(s, true);
            assert_int_equal(kill((pid_t)s->start.shim_pid, SIGKILL), 0);
        }
    } else if (s->n_turns < s->n_asked + AWAY_TURNS) {
        s->executor->ops->probe(s->executor, &place);
    } else if (s->n_turns == s->n_asked + AWAY_TURNS) {
        move_cells(s, false);
    }
}

static void test_moved_folder_is_logged_once(void **state)
{
    struct scene s = {.spec = STRBUF_INIT};
    struct strbuf log = STRBUF_INIT;
    struct err err;
    size_t n = 0;
    (void)state;
    set_up(&s, SHIM, on_moved_turn);
    char *path = path_join(s.root, "log");
    assert_int_equal(log_open(path, &err), 0);
    write_spec(&s);
    run(&s);
    log_close();
    assert_true(s.has_ended);
    assert_true(s.n_young > 1);
    assert_int_equal(file_read(path, 1 << 20, &log, &err), 0);
    for (const char *at = log.buf; (at = strstr(at, "cannot tell whether it lives")) != NULL;
         at++) {
        n++;
    }
    assert_int_equal(n, 1);
    strbuf_release(&log);
    free(path);
    tear_down(&s);
}

/* ---- a shim that stops before it takes its lock ---- */

/* Probes, as the core does while an attempt starts, until it ends. */
static void on_young_turn(uv_timer_t *timer)
{
    struct scene *s = timer->data;
    struct attempt_place place = {.key = s->key, .id = s->id, .folder = s->folder};
    if (s->has_ended || ++s->n_turns > N_TURNS / 6) {
        s->reaped = !has_children();
        s->executor->ops->close(s->executor);
        uv_close((uv_handle_t *)timer, NULL);
    } else {
        s->executor->ops->probe(s->executor, &place);
    }
}

static void test_stopped_before_its_lock(void **state)
{
    static const char script[] = "#!/bin/sh\necho $$ > \"$1/shim-pid\"\nkill -STOP $$\n";
    struct scene s = {0};
    struct strbuf pid = STRBUF_INIT;
    struct err err;
    (void)state;
    set_up(&s, NULL, on_young_turn);
    put(&s, "../../../../" OWN_SHIM, script, 0700);
    run(&s);
    char *path = path_join(s.folder, "shim-pid");
    if (!s.has_ended && file_read(path, 32, &pid, &err) == 0) {
        (void)kill((pid_t)strtol(pid.buf, NULL, 10), SIGKILL);
    }
    assert_true(s.has_ended);
    assert_true(s.n_young > 0); /* it was given its time */
    assert_int_equal(s.end.reason, END_NEVER_LAUNCHED);
    assert_non_null(strstr(s.end.detail, "stopped or hung"));
    assert_true(s.reaped);
    strbuf_release(&pid);
    free(path);
    tear_down(&s);
}

static char *make_group(const char *base)
{
    char id[UUID_TEXT_SIZE];
    uuid_make(id);
    char *path = group_path(base, id);
    assert_int_equal(mkdir(path, 0755), 0);
    return path;
}

/* Two minutes. Not before it holds what is to keep it: other daemons of this machine may sweep. */
static void make_old(const char *group)
{
    struct timespec at = {.tv_sec = (time_t)(clock_wall().ms / 1000 - 120)};
    const struct timespec both[2] = {at, at};
    assert_int_equal(utimensat(AT_FDCWD, group, both, 0), 0);
}

static void on_first_turn(uv_timer_t *timer)
{
    struct scene *s = timer->data;
    s->executor->ops->close(s->executor);
    uv_close((uv_handle_t *)timer, NULL);
}

/* Daemon and shim were killed and the state folder was deleted: the next daemon removes the group.
 * One that holds a process, or that a shim may just have made, stays. */
static void test_empty_groups_are_removed(void **state)
{
    struct scene s = {0};
    struct err err;
    char *base = NULL;
    (void)state;
    if (group_find_base(&base, &err) != 0) {
        print_message("skipped: %s\n", err.msg);
        skip();
    }
    char *old = make_group(base);
    char *young = make_group(base);
    char *used = make_group(base);
    char *procs = path_join(used, "cgroup.procs");
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(procs, O_WRONLY | O_CLOEXEC);
        bool in = fd >= 0 && write(fd, "0", 1) == 1;
        (void)(in ? pause() : 0);
        _exit(1);
    }
    assert_true(pid > 0);
    struct strbuf held = STRBUF_INIT;
    for (int i = 0; i < N_TURNS && held.len == 0; i++) {
        clock_sleep_ms(TURN_MS);
        assert_int_equal(file_read(procs, 64, &held, &err), 0);
    }
    make_old(used);
    make_old(old);
    set_up(&s, SHIM, on_first_turn);
    finish(&s);
    enum file_kind kinds[] = {file_kind_at(old), file_kind_at(young), file_kind_at(used)};
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(held.len > 0);
    assert_true(group_remove(young));
    assert_true(group_remove(used));
    (void)group_remove(old);
    assert_int_equal(kinds[0], FILE_ABSENT);
    assert_int_equal(kinds[1], FILE_FOLDER);
    assert_int_equal(kinds[2], FILE_FOLDER);
    strbuf_release(&held);
    free(procs);
    free(used);
    free(young);
    free(old);
    free(base);
    tear_down(&s);
}

/* ---- a worker that removes the lock at once ---- */

/* One probe at a time while the shim has its child, well beyond what it has to take its lock; then
 * the child is let go. */
static void on_unlocked_turn(uv_timer_t *timer)
{
    struct scene *s = timer->data;
    struct attempt_place place = {.key = s->key, .id = s->id, .folder = s->folder};
    bool late = uv_now(&s->loop) - s->begun_ms > (uint64_t)3 * YOUNG_MS;
    if (s->has_ended || ++s->n_turns > N_TURNS) {
        s->executor->ops->close(s->executor);
        uv_close((uv_handle_t *)timer, NULL);
    } else if (!s->stopped && s->n_asked == s->n_young && has(s, "up")) {
        if (late && s->n_young > 0) {
            put(s, "go", "", 0600);
            s->stopped = true;
        } else {
            s->n_asked++;
            s->executor->ops->probe(s->executor, &place);
        }
    }
}

static void test_lock_removed_by_the_worker(void **state)
{
    static const char script[] = NO_SPAWNER "(while [ ! -e \"$1/go\" ]; do sleep 0.02; done) &\n"
                                            "touch \"$1/up\"\nwait\nexit 3\n";
    struct scene s = {0};
    (void)state;
    set_up(&s, NULL, on_unlocked_turn);
    s.begun_ms = uv_now(&s.loop);
    put(&s, "../../../../" OWN_SHIM, script, 0700);
    run(&s);
    put(&s, "go", "", 0600); /* whatever became of its shim */
    assert_true(s.has_ended);
    assert_true(s.stopped); /* it was not killed before */
    assert_non_null(strstr(s.end.detail, "exit code 3"));
    tear_down(&s);
}

/* ---- a shim on another host ---- */

#define ELSEWHERE_MS 500
#define BEAT_TURNS   5  /* between two heartbeats */
#define N_BEATS      12 /* then its host is lost */

static void on_elsewhere_turn(uv_timer_t *timer)
{
    struct scene *s = timer->data;
    struct err err;
    if (s->n_turns % BEAT_TURNS == 0 && s->n_turns / BEAT_TURNS < N_BEATS) {
        assert_false(s->has_ended);
        assert_int_equal(heartbeat_write(s->folder, &s->beat, &err), 0);
    }
    if (s->n_turns == 2 * BEAT_TURNS) { /* no signal reaches it: the mark does */
        s->executor->ops->kill(s->executor, &s->key);
        s->stopped = fence_is_set(s->folder);
    }
    on_young_turn(timer);
}

/* It lives while its heartbeat rises, longer than would be waited for a still one; then it is
 * fenced off, and lost with its host. */
static void test_heartbeat_on_another_host(void **state)
{
    struct scene s = {0};
    char text[512];
    (void)state;
    set_up(&s, SHIM, on_elsewhere_turn);
    local_share(s.executor, true, ELSEWHERE_MS);
    heartbeat_init(&s.beat, NULL);
    (void)snprintf(text, sizeof(text),
                   "{\"protocol\":1,\"attempt\":\"%s\",\"shim_pid\":%ld,\"shim_start\":1,"
                   "\"worker_pid\":8,\"worker_start\":1,\"boot_id\":\"b\",\"host\":\"elsewhere\"}",
                   s.id, (long)getpid());
    put(&s, LAYOUT_START, text, 0600);
    struct attempt_place place = {.key = s.key, .id = s.id, .folder = s.folder};
    s.executor->ops->probe(s.executor, &place);
    finish(&s);
    assert_true(s.has_ended);
    assert_true(s.n_turns >= N_BEATS * BEAT_TURNS);
    assert_true(s.n_young > 0); /* one sequence proves nothing */
    assert_true(s.n_alive > 0);
    assert_true(s.stopped);
    assert_int_equal(s.end.reason, END_HOST_LOST);
    assert_true(fence_is_set(s.folder));
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stopped_for_good),
                                       cmocka_unit_test(test_end_seen_before_the_exit),
                                       cmocka_unit_test(test_heir_is_reaped),
                                       cmocka_unit_test(test_moved_folder_is_logged_once),
                                       cmocka_unit_test(test_stopped_before_its_lock),
                                       cmocka_unit_test(test_empty_groups_are_removed),
                                       cmocka_unit_test(test_lock_removed_by_the_worker),
                                       cmocka_unit_test(test_heartbeat_on_another_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
