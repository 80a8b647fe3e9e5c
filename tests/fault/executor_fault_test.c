/* The local executor against a shim that does not do what it is told. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "daemon/local.h"
#include "daemon/shim/files.h"
#include "daemon/shim/pid.h"

#define SHIM    TEST_BIN_DIR "/prereg-shim"
#define TURN_MS 20
#define N_TURNS 3000 /* a minute */

struct scene {
    uv_loop_t loop;
    uv_timer_t timer;
    struct executor *executor;
    struct attempt_key key;
    char *folder;
    char id[UUID_TEXT_SIZE];
    struct shim_start start;
    int n_turns;
    int n_kills;
    bool stopped;
    bool has_ended;
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
    (void)ctx;
    (void)key;
    (void)health;
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

static void write_spec(const struct scene *s)
{
    struct shim_spec spec = {.exec = xstrdup("/bin/sleep"), .grace_ms = 1000};
    struct err err;
    memcpy(spec.attempt, s->id, sizeof(spec.attempt));
    shim_spec_add_arg(&spec, "sleep");
    shim_spec_add_arg(&spec, "1000");
    char *task = path_join(s->folder, "task.json");
    shim_spec_add_env(&spec, "PREREG_TASK", task);
    assert_int_equal(shim_spec_write(s->folder, &spec, &err), 0);
    free(task);
    shim_spec_release(&spec);
}

static void test_stopped_for_good(void **state)
{
    struct scene s = {.key = {.program = 1, .task = 2, .no = 1}};
    struct executor_listener listener = {.ctx = &s, .ended = on_ended, .probed = on_probed};
    char root[] = "/tmp/executor_test_XXXXXX";
    struct err err;
    (void)state;
    assert_non_null(mkdtemp(root));
    uuid_make(s.id);
    s.folder = xasprintf("%s/cells/a=1/train/attempt-0001-%s", root, s.id);
    char *words = path_join(root, "shim.log");
    assert_int_equal(dir_make(s.folder, 0700, &err), 0);
    write_spec(&s);
    assert_int_equal(uv_loop_init(&s.loop), 0);
    s.executor = local_create(&s.loop, SHIM, words, &listener);
    struct attempt_place place = {.key = s.key, .id = s.id, .folder = s.folder};
    assert_int_equal(s.executor->ops->start(s.executor, &place, &err), 0);
    assert_int_equal(uv_timer_init(&s.loop, &s.timer), 0);
    s.timer.data = &s;
    assert_int_equal(uv_timer_start(&s.timer, on_turn, TURN_MS, TURN_MS), 0);
    (void)uv_run(&s.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s.loop), 0);
    s.executor->ops->free(s.executor);
    if (!s.has_ended) {
        (void)kill((pid_t)s.start.shim_pid, SIGKILL);
        fail_msg("a shim that was stopped keeps its attempt for ever");
    }
    assert_int_equal(s.end.reason, END_LOST);
    struct pid_stat worker;
    bool alive = pid_stat_read((pid_t)s.start.worker_pid, &worker) && worker.state != 'Z' &&
                 worker.start == s.start.worker_start;
    assert_false(alive);
    assert_int_equal(dir_remove(root, &err), 0);
    free(words);
    free(s.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stopped_for_good)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
