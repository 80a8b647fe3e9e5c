/* The shim as a cluster's job: what it refuses to run, what its worker gets of the job, and when it
 * gives its worker up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/shim/cluster.h"
#include "daemon/shim/current.h"
#include "daemon/shim/fence.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define ID    "33333333-0000-4000-8000-000000000003"
#define LATER "44444444-0000-4000-8000-000000000004"

/* TASK/attempt-02-ID with the spec; the working directory. */
static char *enter_attempt(void)
{
    char *name = attempt_name_format(2, ID);
    char *folder = path_join(scratch_folder, name);
    struct shim_spec spec = {.attempt = ID, .exec = xstrdup("/bin/true"), .grace_ms = 1000};
    struct strbuf text = STRBUF_INIT;
    struct err err;
    assert_int_equal(dir_remove(folder, &err), 0);
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    shim_spec_add_arg(&spec, "true");
    assert_int_equal(shim_spec_text(&spec, &text, &err), 0);
    scratch_put(folder, LAYOUT_SPEC, text.buf);
    assert_int_equal(chdir(folder), 0);
    strbuf_release(&text);
    shim_spec_release(&spec);
    free(name);
    return folder;
}

static void set_current(uint32_t no, const char *id)
{
    struct attempt_name a = {.no = no};
    struct err err;
    (void)snprintf(a.id, sizeof(a.id), "%s", id);
    assert_int_equal(current_write(scratch_folder, &a, &err), 0);
}

static void test_runs_what_is_current(void **state)
{
    struct cluster_job c;
    struct heartbeat beat;
    struct err err;
    int fd = -1;
    (void)state;
    char *folder = enter_attempt();
    set_current(2, ID);
    assert_int_equal(cluster_open(&c, folder, &fd, &err), 0);
    assert_int_not_equal(heartbeat_read(folder, &beat, &err), 0);
    assert_true(cluster_tick(&c));
    char link[64];
    char target[128] = "";
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    assert_true(readlink(link, target, sizeof(target) - 1) > 0);
    assert_non_null(strstr(target, SHIM_MARK ID)); /* by which the worker's tree is found */
    (void)close(fd);
    assert_int_equal(heartbeat_read(folder, &beat, &err), 0);
    assert_int_equal(beat.sequence, 1);
    assert_true(cluster_tick(&c));
    assert_int_equal(cluster_may_publish(&c, &err), 0);
    set_current(3, LATER);
    assert_true(cluster_tick(&c)); /* it is not due */
    c.due_ms = 0;
    assert_false(cluster_tick(&c));
    assert_false(cluster_tick(&c));
    assert_int_equal(cluster_may_publish(&c, &err), ERR_REFUSED);
    free(folder);
}

/* Where hosts share the state folder: the same, without a job. */
static void test_shared_state(void **state)
{
    struct cluster_job c;
    struct heartbeat beat;
    struct err err;
    (void)state;
    char *folder = enter_attempt();
    set_current(2, ID);
    assert_int_equal(cluster_share(&c, folder, &err), 0);
    assert_int_equal(heartbeat_read(folder, &beat, &err), 0);
    assert_string_equal(beat.job, "-");
    set_current(3, LATER);
    assert_int_equal(cluster_may_publish(&c, &err), ERR_REFUSED);
    assert_int_equal(cluster_share(&c, folder, &err), ERR_REFUSED);
    free(folder);
}

static void test_given_up(void **state)
{
    struct cluster_job c;
    struct err err;
    int fd = -1;
    (void)state;
    char *folder = enter_attempt();
    set_current(2, ID);
    assert_int_equal(cluster_open(&c, folder, &fd, &err), 0);
    (void)close(fd);
    scratch_put(folder, FENCE_FILE, "");
    assert_int_equal(cluster_may_publish(&c, &err), ERR_REFUSED);
    set_current(2, LATER);
    assert_int_equal(cluster_open(&c, folder, &fd, &err), ERR_REFUSED);
    free(folder);
}

/* Rule 7: once begun, a job that its site puts back does not run again in the same folder. */
static void test_requeued(void **state)
{
    struct cluster_job c;
    struct err err;
    int fd = -1;
    (void)state;
    char *folder = enter_attempt();
    set_current(2, ID);
    assert_int_equal(setenv("SLURM_RESTART_COUNT", "1", 1), 0);
    assert_int_equal(cluster_open(&c, folder, &fd, &err), 0); /* it had not begun */
    (void)close(fd);
    scratch_put(folder, LAYOUT_START, "");
    assert_int_equal(cluster_open(&c, folder, &fd, &err), ERR_REFUSED);
    assert_int_equal(access(LAYOUT_REFUSED, F_OK), 0);
    assert_int_equal(unsetenv("SLURM_RESTART_COUNT"), 0);
    free(folder);
}

static const char *value_of(const struct shim_spec *s, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < s->n_env; i++) {
        if (strncmp(s->env[i], name, strlen(name)) == 0 && s->env[i][strlen(name)] == '=') {
            assert_null(value); /* no name twice */
            value = s->env[i] + strlen(name) + 1;
        }
    }
    return value;
}

static void test_environment(void **state)
{
    char texts[][40] = {"CUDA_VISIBLE_DEVICES=2,3", "SLURM_JOB_ID=5", "PATH=/opt/venv/bin:/usr/bin",
                        "SECRET=x", "HOME=/root"};
    char *const job[] = {texts[0], texts[1], texts[2], texts[3], texts[4], NULL};
    (void)state;
    for (int takes = 0; takes < 2; takes++) {
        CHECK_ROW("takes the job's: %d", takes);
        struct shim_spec s = {.takes_job = takes == 1};
        shim_spec_add_env(&s, "HOME", "/attempt");
        if (!s.takes_job) {
            shim_spec_add_env(&s, "PATH", "/usr/bin");
        }
        cluster_environment(&s, job);
        assert_string_equal(value_of(&s, "CUDA_VISIBLE_DEVICES"), "2,3");
        assert_string_equal(value_of(&s, "SLURM_JOB_ID"), "5");
        assert_string_equal(value_of(&s, "HOME"), "/attempt");
        assert_string_equal(value_of(&s, "PATH"), takes ? "/opt/venv/bin:/usr/bin" : "/usr/bin");
        assert_int_equal(value_of(&s, "SECRET") != NULL, takes);
        shim_spec_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_what_is_current),
        cmocka_unit_test(test_shared_state),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_requeued),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
