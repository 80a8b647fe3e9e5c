/* Whether Slurm's words about a job prove that it has ended; and the asking itself, of stand-ins
 * for squeue and sacct that come first in PATH. */
#include <stdlib.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "daemon/tenure/slurm_job.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static struct tenure holder(const char *submitted)
{
    struct tenure t = {.job = "17", .job_name = "serve|it"};
    (void)snprintf(t.job_submitted, sizeof(t.job_submitted), "%s", submitted);
    return t;
}

static void test_only_an_ended_job_of_that_identity_is_over(void **state)
{
    static const struct {
        const char *line;
        bool same;
        enum tenure_job job;
    } rows[] = {
        {"17|serve|it|1000|COMPLETED", true, TENURE_JOB_IS_OVER},
        {"17|serve|it|1000|CANCELLED by 1000", true, TENURE_JOB_IS_OVER},
        {"17|serve|it|1000|OUT_OF_MEMORY", true, TENURE_JOB_IS_OVER},
        {"17|serve|it|1000|RUNNING", true, TENURE_JOB_LIVES},
        {"17|serve|it|1000|COMPLETING", true, TENURE_JOB_LIVES},
        {"17|serve|it|1000|NODE_FAIL", true, TENURE_JOB_LIVES},       /* its processes may go on */
        {"17|serve|it|1000|COMPLETED_NEWLY", true, TENURE_JOB_LIVES}, /* a word of a later Slurm */
        {"17|serve|it|1001|COMPLETED", false, TENURE_JOB_UNKNOWN},    /* its id was used again */
        {"17|serve|1000|COMPLETED", false, TENURE_JOB_UNKNOWN},
        {"18|serve|it|1000|COMPLETED", false, TENURE_JOB_UNKNOWN},
        {"17|COMPLETED", false, TENURE_JOB_UNKNOWN},
        {"", false, TENURE_JOB_UNKNOWN},
    };
    struct tenure t = holder("1000");
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].line);
        struct tenure_evidence e = {0};
        assert_int_equal(slurm_job_line(&t, rows[i].line, &e), rows[i].same);
        assert_int_equal(e.job, rows[i].job);
    }
    t = holder("");
    struct tenure_evidence e = {0};
    assert_false(
        slurm_job_line(&t, "17|serve|it||COMPLETED", &e)); /* without its submit time: nothing */
}

static void put_client(const char *name, const char *script)
{
    char *path = scratch_write("bin", name, script, 0755);
    free(path);
}

static void ask_with(const char *squeue, const char *sacct, enum tenure_job job)
{
    struct tenure t = holder("1000");
    struct tenure_evidence e = {0};
    put_client("squeue", squeue);
    put_client("sacct", sacct);
    slurm_job_ask(&t, &e);
    assert_int_equal(e.job, job);
}

static void test_what_clients_answer(void **state)
{
    static const char gone[] =
        "#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1\n";
    static const char over[] = "#!/bin/sh\necho '17|serve|it|1000|FAILED'\n";
    (void)state;
    char *path = xasprintf("%s/bin:/usr/bin:/bin", scratch_folder);
    assert_int_equal(setenv("PATH", path, 1), 0);
    assert_int_equal(setenv("SQUEUE_FORMAT", "%i", 1), 0);
    free(path);
    ask_with(gone, gone, TENURE_JOB_UNKNOWN); /* absent is not over */
    ask_with(gone, over, TENURE_JOB_IS_OVER);
    ask_with("#!/bin/sh\necho '17|serve|it|1000|RUNNING'\n", over, TENURE_JOB_LIVES);
    ask_with("#!/bin/sh\necho '17|other|1000|COMPLETED'\n", gone, TENURE_JOB_UNKNOWN);
    ask_with("#!/bin/sh\necho '17|serve|it|1000|FAILED'; exit 1\n", gone, TENURE_JOB_UNKNOWN);
    ask_with("#!/bin/sh\necho '17|other|1000|COMPLETED'\n", over, TENURE_JOB_IS_OVER);
    /* Accounting has its end while the job completes, and its processes may still run: only the
     * controller knows. */
    ask_with("#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller (connect "
             "failure)' >&2; exit 1\n",
             over, TENURE_JOB_UNKNOWN);
    ask_with("#!/bin/sh\necho '17|serve|it|1000|COMPLETING'\n", over, TENURE_JOB_LIVES);
    /* Their own variables are removed, and times are seconds. */
    ask_with("#!/bin/sh\n[ -z \"$SQUEUE_FORMAT\" ] && [ \"$SLURM_TIME_FORMAT\" = %s ] && "
             "echo '17|serve|it|1000|TIMEOUT'\n",
             gone, TENURE_JOB_IS_OVER);
}

/* Without accounting no client takes --clusters, and every job has a cluster's name. */
static void test_without_accounting(void **state)
{
    static const char no_database[] =
        "#!/bin/sh\ncase \"$*\" in *--clusters*) echo 'error: Problem talking to database' >&2; "
        "exit 1;; esac\necho '17|serve|it|1000|FAILED'\n";
    struct tenure t = holder("1000");
    struct tenure_evidence e = {0};
    (void)state;
    char *path = xasprintf("%s/bin:/usr/bin:/bin", scratch_folder);
    assert_int_equal(setenv("PATH", path, 1), 0);
    free(path);
    (void)snprintf(t.cluster, sizeof(t.cluster), "lab");
    put_client("squeue", no_database);
    put_client("sacct", "#!/bin/sh\nexit 1\n");
    slurm_job_ask(&t, &e);
    assert_int_equal(e.job, TENURE_JOB_IS_OVER);
    assert_int_equal(setenv("SLURM_JOB_ID", "17", 1), 0);
    assert_int_equal(setenv("SLURM_CLUSTER_NAME", "lab", 1), 0);
    t = (struct tenure){0};
    slurm_job_of_self(&t);
    assert_string_equal(t.job_submitted, "1000");
}

static void test_of_self(void **state)
{
    struct tenure t = {0};
    (void)state;
    assert_int_equal(unsetenv("SLURM_JOB_ID"), 0);
    slurm_job_of_self(&t);
    assert_string_equal(t.job, "");
    assert_int_equal(setenv("SLURM_JOB_ID", "17", 1), 0);
    assert_int_equal(setenv("SLURM_JOB_NAME", "as said", 1), 0);
    assert_int_equal(setenv("SLURM_CLUSTER_NAME", "lab", 1), 0);
    char *path = xasprintf("%s/bin:/usr/bin:/bin", scratch_folder);
    assert_int_equal(setenv("PATH", path, 1), 0);
    free(path);
    put_client("squeue", "#!/bin/sh\necho '17|as asked|1234|RUNNING'\n");
    slurm_job_of_self(&t);
    assert_string_equal(t.cluster, "lab");
    assert_string_equal(t.job_name, "as asked");
    assert_string_equal(t.job_submitted, "1234");
    t = (struct tenure){0}; /* a task of an array: squeue shows its place as the id, but for %A */
    put_client("squeue", "#!/bin/sh\ncase \"$*\" in *%A*) echo '17|n|1234|RUNNING' ;; *) echo "
                         "'15_2|n|1234|RUNNING' ;; esac\n");
    slurm_job_of_self(&t);
    assert_string_equal(t.job_submitted, "1234");
    t = (struct tenure){0};
    put_client("squeue", "#!/bin/sh\nexit 1\n");
    slurm_job_of_self(&t);
    assert_string_equal(t.job_name, "as said");
    assert_string_equal(t.job_submitted, ""); /* so that Slurm proves nothing about it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_an_ended_job_of_that_identity_is_over),
        cmocka_unit_test_setup_teardown(test_what_clients_answer, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_without_accounting, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_of_self, scratch_enter, scratch_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
