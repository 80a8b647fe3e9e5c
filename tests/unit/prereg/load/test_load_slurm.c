/* The options of sbatch, as `man sbatch` of Slurm 22.05 and `strings` of it have them, with those
 * of later releases that would matter: each is refused with what to do instead, or accepted. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

static const struct {
    const char *option;
    const char *instead; /* of what the message says; NULL: accepted */
} OPTIONS[] = {
    {"--account=lab", "use [run.slurm] account"},
    {"-Alab", "use [run.slurm] account"},
    {"--acctg-freq=30", NULL},
    {"--array=0-3", "use [run.slurm] array"},
    {"-a0-3", "use [run.slurm] array"},
    {"--batch=a", "one node"},
    {"--bb=x", NULL},
    {"--bbf=/f", NULL},
    {"--begin=now+1hour", "preregctl pause"},
    {"-bnow+1hour", "preregctl pause"},
    {"--chdir=/", "its attempt's folder"},
    {"-D/", "its attempt's folder"},
    {"--cluster=a", "use [run.slurm] clusters"},
    {"--cluster-constraint=a", "use [run.slurm] clusters"},
    {"--clusters=a", "use [run.slurm] clusters"},
    {"-Ma", "use [run.slurm] clusters"},
    {"--comment=x", "identifies the attempt"},
    {"--constraint=a100", NULL},
    {"-Ca100", NULL},
    {"--container=/oci", "command of [stage.STAGE]"},
    {"--container-id=x", "command of [stage.STAGE]"},
    {"--contiguous", NULL},
    {"--core-spec=1", NULL},
    {"-S1", NULL},
    {"--cores-per-socket=2", NULL},
    {"--cpu-freq=high", NULL},
    {"--cpus-per-gpu=2", "use threads"},
    {"--cpus-per-task=2", "use threads"},
    {"-c2", "use threads"},
    {"--deadline=now+1hour", "use time"},
    {"--delay-boot=1", NULL},
    {"--dependency=singleton", "use after"},
    {"-dsingleton", "use after"},
    {"--distribution=block", NULL},
    {"-mblock", NULL},
    {"--error=/f", "has the logs"},
    {"-e/f", "has the logs"},
    {"--exclude=n1", "excludes nodes"},
    {"-xn1", "excludes nodes"},
    {"--exclusive", NULL},
    {"--exclusive=user", NULL},
    {"--export=ALL", "use env"},
    {"--export-file=/f", "use env"},
    {"--external", "writes the script"},
    {"--extra-node-info=2", NULL},
    {"-B2", NULL},
    {"--get-user-env", "use [run.slurm] setup"},
    {"--gid=1", "the daemon's group"},
    {"--gpu-bind=closest", NULL},
    {"--gpu-freq=high", NULL},
    {"--gpus=1", "use gpus"},
    {"-G1", "use gpus"},
    {"--gpus-per-node=1", "use gpus"},
    {"--gpus-per-socket=1", "use gpus"},
    {"--gpus-per-task=1", "use gpus"},
    {"--gres=gpu:1", "use gpus"},
    {"--gres-flags=enforce-binding", NULL},
    {"--help", "submits nothing"},
    {"-h", "submits nothing"},
    {"--hint=nomultithread", NULL},
    {"--hold", "preregctl pause"},
    {"-H", "preregctl pause"},
    {"--ignore-pbs", NULL},
    {"--input=/f", "no standard input"},
    {"-i/f", "no standard input"},
    {"--job-name=x", "identifies the attempt"},
    {"-Jx", "identifies the attempt"},
    {"--kill-on-invalid-dep=yes", "use after"},
    {"--licenses=a", NULL},
    {"-La", NULL},
    {"--mail-type=END", NULL},
    {"--mail-user=me@here", NULL},
    {"--mcs-label=x", NULL},
    {"--mem=1G", "use memory"},
    {"--mem-bind=local", NULL},
    {"--mem-per-cpu=1G", "use memory"},
    {"--mem-per-gpu=1G", "use memory"},
    {"--mincpus=2", "use threads"},
    {"--network=x", NULL},
    {"--nice", NULL},
    {"--nice=5", NULL},
    {"--no-kill", "one node"},
    {"-k", "one node"},
    {"--no-requeue", "preregd sets it"},
    {"--nodefile=/f", NULL},
    {"-F/f", NULL},
    {"--nodelist=n1", NULL},
    {"-wn1", NULL},
    {"--nodes=2", "one node"},
    {"-N2", "one node"},
    {"--ntasks=2", "one task"},
    {"-n2", "one task"},
    {"--ntasks-per-core=2", "one task"},
    {"--ntasks-per-gpu=2", "one task"},
    {"--ntasks-per-node=2", "one task"},
    {"--ntasks-per-socket=2", "one task"},
    {"--tasks-per-node=2", "one task"},
    {"--open-mode=append", "has the logs"},
    {"--output=/f", "has the logs"},
    {"-o/f", "has the logs"},
    {"--overcommit", "cores of its threads"},
    {"-O", "cores of its threads"},
    {"--oversubscribe", NULL},
    {"-s", NULL},
    {"--parsable", "preregd sets it"},
    {"--partition=gpu", "use [run.slurm] partition"},
    {"-pgpu", "use [run.slurm] partition"},
    {"--power=level", NULL},
    {"--prefer=a", NULL},
    {"--priority=5", NULL},
    {"--profile=none", NULL},
    {"--propagate=NONE", NULL},
    {"--qos=night", "use [run.slurm] qos"},
    {"-qnight", "use [run.slurm] qos"},
    {"--quiet", "preregd sets it"},
    {"-Q", "preregd sets it"},
    {"--reboot", NULL},
    {"--requeue", "retries by itself"},
    {"--reservation=tea", NULL},
    {"--signal=USR1", "preregd sets it"},
    {"--sockets-per-node=1", NULL},
    {"--spread-job", NULL},
    {"--switches=1", NULL},
    {"--test-only", "preregctl check --slurm"},
    {"--thread-spec=1", NULL},
    {"--threads-per-core=1", NULL},
    {"--time=5", "use time"},
    {"-t5", "use time"},
    {"--time-min=5", "use time"},
    {"--tmp=1G", NULL},
    {"--tres-per-task=cpu=2", "use threads and gpus"},
    {"--uid=1", "the daemon's user"},
    {"--usage", "submits nothing"},
    {"--use-min-nodes", NULL},
    {"--verbose", "reads what sbatch prints"},
    {"-vv", "reads what sbatch prints"},
    {"--version", "submits nothing"},
    {"-V", "submits nothing"},
    {"--wait", "waits by itself"},
    {"-W", "waits by itself"},
    {"--wait-all-nodes=1", NULL},
    {"--wckey=x", NULL},
    {"--wrap=true", "writes the script"},
    /* beginnings, as sbatch accepts them */
    {"--ui=1", "the daemon's user"},
    {"--dead=1", "use time"},
    {"--tes", "preregctl check --slurm"},
    {"--contai=/oci", "command of [stage.STAGE]"},
    /* what is not a single option with its value */
    {"--constraint a100", "write \"--constraint=VALUE\""},
    {"-C a100", "long name"},
    {"-C", "has no value"},
    {"-sH", "several options"},
    {"a100", "is not an option"},
    {"-", "is not an option"},
    {"--", "is not an option"},
};

static void test_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++) {
        char *run =
            xasprintf("[run]\nexecutor = \"slurm\"\nslurm = { options = [\"--nice\", \"%s\"] }\n",
                      OPTIONS[i].option);
        char *text = text_replace(SMALL_PROGRAM, "[run]\nslots = 2\n", run);
        char *found = diagnostics_of(text);
        CHECK_ROW("%s: %s", OPTIONS[i].option, found);
        if (OPTIONS[i].instead == NULL) {
            assert_string_equal(found, "");
        } else {
            assert_non_null(strstr(found, "grid.toml:40:32: error: run.slurm.options[1]: "));
            assert_non_null(strstr(found, OPTIONS[i].instead));
            assert_null(strchr(strchr(found, '\n') + 1, '\n'));
        }
        free(found);
        free(text);
        free(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
