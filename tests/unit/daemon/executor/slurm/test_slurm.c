/* The executor on a loop, with scripts in PATH in place of Slurm's commands: what it runs, what it
 * leaves in jobs/, and how it takes answers that are not what they seem. */
#include "daemon/executor/slurm/slurm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/executor/slurm/slurm_parts.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"
#include "tests/unit/scratch.h"

#define ID       "11111111-0000-4000-8000-000000000001"
#define LIMIT_MS 20000

struct bench {
    uv_loop_t loop;
    uv_timer_t limit;
    struct executor *x;
    struct plan_program *program;
    char *folder; /* of the attempt */
    unsigned n_ended;
    struct attempt_end end;
    unsigned n_probed;
    enum core_health health; /* the latest answer */
    bool in_time;
};

static const struct attempt_key KEY = {.program = 1, .task = 0, .no = 1};

static void stop(struct bench *b)
{
    uv_stop(&b->loop);
}

static void on_began(void *ctx, const struct attempt_key *key)
{
    (void)ctx;
    (void)key;
}

static void on_ended(void *ctx, const struct attempt_key *key, const struct attempt_end *end)
{
    struct bench *b = ctx;
    (void)key;
    b->n_ended++;
    b->end = *end;
    stop(b);
}

static void on_probed(void *ctx, const struct attempt_key *key, enum core_health health)
{
    struct bench *b = ctx;
    (void)key;
    b->n_probed++;
    b->health = health;
}

static void on_full(void *ctx, enum executor_kind executor, bool full)
{
    (void)ctx;
    (void)executor;
    (void)full;
}

static void on_limit(uv_timer_t *timer)
{
    struct bench *b = timer->data;
    b->in_time = false;
    stop(b);
}

static void command(const char *name, const char *script)
{
    char *text = xasprintf("#!/bin/sh\necho \"%s $*\" >> \"$LOG\"\n%s\n", name, script);
    char *path = xasprintf("bin/%s", name);
    free(scratch_write(scratch_folder, path, text, 0700));
    free(path);
    free(text);
}

static void begin(struct bench *b, const char *run)
{
    struct err err;
    const struct executor_listener listener = {
        .ctx = b, .began = on_began, .ended = on_ended, .probed = on_probed, .full = on_full};
    char *text = text_replace(SMALL_PROGRAM, "slots = 2", run);
    char *path = xasprintf("%s/bin:%s", scratch_folder, getenv("PATH"));
    char *log = path_join(scratch_folder, "log");
    char *name = attempt_name_format(KEY.no, ID);
    *b = (struct bench){.in_time = true};
    assert_int_equal(setenv("PATH", path, 1), 0);
    assert_int_equal(setenv("LOG", log, 1), 0);
    (void)unlink(log);
    assert_int_equal(dir_remove("p", &err), 0);
    b->program = program_of(text, NULL);
    b->folder = xasprintf("%s/p/cells/a=0/train/%s", scratch_folder, name);
    assert_int_equal(dir_make(b->folder, 0700, &err), 0);
    command("scontrol", "echo 'MaxArraySize = 1001'");
    command("squeue", "");
    command("scancel", "");
    command("sacct", "");
    assert_int_equal(uv_loop_init(&b->loop), 0);
    assert_int_equal(uv_timer_init(&b->loop, &b->limit), 0);
    b->limit.data = b;
    b->x = slurm_create(&b->loop, "/opt/prereg-shim", 7, &listener);
    free(name);
    free(log);
    free(path);
    free(text);
}

static void finish(struct bench *b)
{
    b->x->ops->close(b->x);
    uv_close((uv_handle_t *)&b->limit, NULL);
    assert_int_equal(uv_run(&b->loop, UV_RUN_DEFAULT), 0);
    b->x->ops->free(b->x);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    program_free(b->program);
    free(b->folder);
}

static struct attempt_place place_of(const struct bench *b, const char *folder,
                                     const struct strbuf *spec)
{
    static const struct placement at = {.executor = EXECUTOR_SLURM, .threads = 1};
    return (struct attempt_place){.key = KEY,
                                  .id = ID,
                                  .folder = b->folder,
                                  .used = true,
                                  .placement = &at,
                                  .program_folder = folder,
                                  .program = b->program,
                                  .spec = spec};
}

static void start_task(struct bench *b, uint32_t task)
{
    struct strbuf spec = STRBUF_INIT;
    struct err err;
    char *folder = path_join(scratch_folder, "p");
    strbuf_adds(&spec, "what to run\n");
    struct attempt_place place = place_of(b, folder, &spec);
    place.key.task = task;
    assert_int_equal(b->x->ops->start(b->x, &place, &err), 0);
    strbuf_release(&spec);
    free(folder);
}

static void start(struct bench *b)
{
    start_task(b, KEY.task);
}

/* Until something is reported. */
static void run(struct bench *b)
{
    assert_int_equal(uv_timer_start(&b->limit, on_limit, LIMIT_MS, 0), 0);
    (void)uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_true(b->in_time);
}

/* Whether a command was run; waits for it, polling. */
static bool was_run(struct bench *b, const char *words)
{
    char *log = path_join(scratch_folder, "log");
    bool found = false;
    for (int i = 0; i < LIMIT_MS / 10 && !found; i++) {
        (void)uv_run(&b->loop, UV_RUN_NOWAIT);
        if (access(log, R_OK) == 0) {
            char *text = scratch_read(log);
            found = strstr(text, words) != NULL;
            free(text);
        }
        if (!found) {
            (void)usleep(10000);
        }
    }
    free(log);
    return found;
}

/* Rule 23: while all nodes are down, --test-only says of every job what it says of one that is too
 * big. sbatch takes the one and refuses the other. */
static void test_nodes_down(void **state)
{
    struct bench b;
    (void)state;
    command("sbatch", "case \"$*\" in *--test-only*) echo 'allocation failure: Requested node "
                      "configuration is not available' >&2; exit 1;; esac\necho 5");
    begin(&b, "slurm = { array = false }");
    start(&b);
    assert_true(was_run(&b, "--job-name=" ID));
    assert_int_equal(b.n_ended, 0);
    finish(&b);
}

static void run_for(struct bench *b, int ms)
{
    for (int i = 0; i < ms; i++) {
        (void)uv_run(&b->loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
}

static unsigned n_run(const char *command_name)
{
    char *log = path_join(scratch_folder, "log");
    char *text = scratch_read(log);
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, command_name)) != NULL; at++) {
        n++;
    }
    free(text);
    free(log);
    return n;
}

/* Rule 10: a controller that does not answer is not asked for its configuration with each start. */
static void test_config_fails(void **state)
{
    struct bench b;
    (void)state;
    command("sbatch", "exit 1");
    begin(&b, "slurm = { array = false }");
    command("scontrol", "exit 1");
    start(&b);
    assert_true(was_run(&b, "scontrol"));
    run_for(&b, 200);
    for (int i = 0; i < 5; i++) {
        start_task(&b, 1 + (uint32_t)i);
        run_for(&b, 50);
    }
    assert_int_equal(n_run("scontrol"), 1);
    finish(&b);
}

/* Runs the loop until `is_so`; fails after a while. */
static void run_until(struct bench *b, bool (*is_so)(const struct bench *b))
{
    for (int i = 0; i < LIMIT_MS && !is_so(b); i++) {
        (void)uv_run(&b->loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
    assert_true(is_so(b));
}

/* A disk that hangs: whatever writes this file waits until release(). A test that fails before that
 * must release it, too (its tear-down does): libuv waits for its threads when the process exits, so
 * the process would never end. */
static char *blocked;
static int blocked_fd = -1;

static void block(const struct bench *b, const char *file)
{
    blocked = path_join(b->folder, file);
    assert_int_equal(mkfifo(blocked, 0600), 0);
}

/* The reader stays, so that what is written can be. */
static void release(void)
{
    if (blocked != NULL) {
        blocked_fd = open(blocked, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        free(blocked);
        blocked = NULL;
    }
}

static int release_at_end(void **state)
{
    (void)state;
    release();
    (void)close(blocked_fd);
    blocked_fd = -1;
    return 0;
}

static void probe(struct bench *b)
{
    char *folder = path_join(scratch_folder, "p");
    const struct attempt_place place = place_of(b, folder, NULL);
    b->x->ops->probe(b->x, &place);
    free(folder);
}

static const struct slurm *slurm_of(const struct bench *b)
{
    return (const struct slurm *)b->x;
}

static bool in_jobs(const char *name)
{
    char *path = xasprintf("%s/p/jobs/%s", scratch_folder, name);
    const bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* Rule 5: an sbatch that succeeds has refused nothing, whatever it warns of: the name is asked for.
 */
static void test_warns(void **state)
{
    struct bench b;
    (void)state;
    command("sbatch", "echo '*** welcome ***'\n"
                      "echo 'sbatch: error: Batch job submission failed: Requested node "
                      "configuration is not available' >&2");
    begin(&b, "slurm = { array = false }");
    start(&b);
    assert_true(was_run(&b, "--job-name=" ID));
    assert_true(was_run(&b, "squeue"));
    assert_int_equal(b.n_ended, 0);
    assert_true(in_jobs(ID ".sh"));
    finish(&b);
}

/* The same words are a refusal when it fails; then nothing stays in jobs/. */
static void test_refused(void **state)
{
    struct bench b;
    (void)state;
    command("sbatch", "case \"$*\" in *--test-only*) exit 0;; esac\n"
                      "echo 'sbatch: error: Batch job submission failed: Requested node "
                      "configuration is not available' >&2; exit 1");
    begin(&b, "slurm = { array = false }");
    start(&b);
    run(&b);
    assert_int_equal(b.n_ended, 1);
    assert_int_equal(b.end.reason, END_NEVER_LAUNCHED); /* the task is not at fault */
    assert_non_null(strstr(b.end.detail, "Requested node configuration is not available"));
    finish(&b); /* runs what is left */
    assert_false(in_jobs(ID ".sh"));
}

static bool is_ending(const struct bench *b)
{
    const struct slurm_attempt *a = key_map_get(&slurm_of(b)->attempts, &KEY);
    return a != NULL && a->ending;
}

/* A probe while an attempt that is given up is fenced off: its end is the answer, once, and the
 * book does not adopt it a second time. A grace must pass before it is given up, so this test sets
 * it: the default is three minutes. */
static void test_probed_while_fenced(void **state)
{
    struct bench b;
    (void)state;
    command("sbatch", "exit 1");
    begin(&b, "slurm = { array = false, grace = \"1s\", poll = \"1s\" }");
    scratch_put(b.folder, LAYOUT_JOB, "{\"name\":\"" ID "\"}\n");
    scratch_put(b.folder, LAYOUT_START, "{}\n");
    block(&b, "fenced.new");
    probe(&b);
    run_until(&b, is_ending);
    probe(&b);
    run_for(&b, 100);
    assert_int_equal(b.n_ended, 0);
    assert_int_equal(slurm_book_count(slurm_of(&b)->book), 0);
    release();
    run(&b);
    assert_int_equal(b.n_ended, 1);
    assert_int_equal(b.end.reason, END_HOST_LOST);
    finish(&b);
    assert_int_equal(b.n_ended, 1);
}

static bool is_submitting(const struct bench *b)
{
    struct slurm_view v;
    return slurm_book_view(slurm_of(b)->book, &KEY, &v) && strcmp(v.state, "submitting") == 0;
}

/* A probe while spec, job and current-attempt are written: it is queued, and submitted once. */
static void test_probed_while_written(void **state)
{
    struct bench b;
    (void)state;
    command("sbatch", "case \"$*\" in *--test-only*) exit 0;; esac\necho 5");
    begin(&b, "slurm = { array = false, grace = \"1s\", poll = \"1s\" }");
    block(&b, "spec.new");
    start(&b);
    run_until(&b, is_submitting);
    probe(&b);
    run_for(&b, 100);
    assert_int_equal(b.n_probed, 1);
    assert_int_equal(b.health, HEALTH_QUEUED);
    release();
    assert_true(was_run(&b, "--job-name=" ID));
    run(&b); /* the queue never shows it: it is gone after the grace */
    assert_int_equal(b.n_ended, 1);
    assert_int_equal(b.end.reason, END_HOST_LOST);
    finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warns),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_nodes_down),
        cmocka_unit_test(test_config_fails),
        cmocka_unit_test_teardown(test_probed_while_fenced, release_at_end),
        cmocka_unit_test_teardown(test_probed_while_written, release_at_end),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
