/* Command lines word by word, and the environment of the clients. */
#include "daemon/executor/slurm/command.h"

#include "base/strbuf.h"
#include "tests/unit/check.h"

static void join(char *const *words, struct strbuf *out)
{
    strbuf_clear(out);
    for (size_t i = 0; words[i] != NULL; i++) {
        strbuf_addf(out, "%s%s", i > 0 ? " " : "", words[i]);
    }
}

static void test_submit(void **state)
{
    static const char *const options[] = {"--constraint=a100", "--comment=two words"};
    const struct slurm_request r = {.partition = "gpu",
                                    .account = "lab",
                                    .qos = "normal",
                                    .clusters = "alpha",
                                    .options = options,
                                    .n_options = 2,
                                    .threads = 8,
                                    .memory_bytes = (INT64_C(32) << 30) + 1,
                                    .gpus = 1,
                                    .time_ms = 90500,
                                    .login = true,
                                    .warn_ms = 60000};
    const struct slurm_submission s = {.name = "u",
                                       .array = "0-5,7",
                                       .exclude = "n1,n2",
                                       .script = "/w/jobs/u.sh",
                                       .folder = "/w/jobs"};
    struct strbuf text = STRBUF_INIT;
    struct arena a;
    (void)state;
    arena_init(&a);
    join(slurm_command_submit(&a, &r, &s), &text);
    assert_string_equal(
        text.buf,
        "sbatch --parsable --constraint=a100 --comment=two words --parsable --clusters=alpha "
        "--partition=gpu "
        "--account=lab --qos=normal --nodes=1 --ntasks=1 --cpus-per-task=8 --mem=33554433K "
        "--gres=gpu:1 --time=2 --signal=B:USR2@60 --no-requeue --export=NONE --chdir=/w/jobs "
        "--output=/dev/null --error=/dev/null --job-name=u --array=0-5,7 --exclude=n1,n2 "
        "/w/jobs/u.sh");
    const struct slurm_request bare = {.threads = 1};
    join(slurm_command_test(&a, &bare, &(struct slurm_submission){.folder = "/w"}), &text);
    assert_string_equal(text.buf,
                        "sbatch --parsable --nodes=1 --ntasks=1 --cpus-per-task=1 --no-requeue "
                        "--export-file=/dev/null --chdir=/w --output=/dev/null --error=/dev/null "
                        "--test-only");
    strbuf_release(&text);
    arena_release(&a);
}

static void test_others(void **state)
{
    struct strbuf text = STRBUF_INIT;
    struct arena a;
    (void)state;
    arena_init(&a);
    join(slurm_command_queue(&a, NULL, "ann", NULL), &text);
    assert_string_equal(text.buf, "squeue --noheader --array --states=all --user=ann "
                                  "--format=%i|%A|%T|%r|%j|%V|%N|%S|%e");
    join(slurm_command_queue(&a, "alpha", "ann", "u,v"), &text);
    assert_string_equal(text.buf, "squeue --noheader --array --states=all --clusters=alpha "
                                  "--user=ann --name=u,v --format=%i|%A|%T|%r|%j|%V|%N|%S|%e");
    join(slurm_command_accounting(&a, NULL, "u", "2026-01-02T03:04:05"), &text);
    assert_string_equal(text.buf, "sacct --allocations --noheader --parsable2 "
                                  "--starttime=2026-01-02T03:04:05 --name=u "
                                  "--format=JobID,State,JobName,Submit,NodeList,ExitCode");
    join(slurm_command_cancel(&a, NULL, "u", "1_2 1_3", false), &text);
    assert_string_equal(text.buf, "scancel --name=u 1_2 1_3");
    join(slurm_command_cancel(&a, "alpha", "u", "7", true), &text);
    assert_string_equal(text.buf, "scancel --clusters=alpha --name=u --signal=TERM --batch 7");
    join(slurm_command_config(&a, NULL), &text);
    assert_string_equal(text.buf, "scontrol show config");
    strbuf_release(&text);
    arena_release(&a);
}

static char *entry(const char *s, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s", s);
    return buf;
}

static void test_environment(void **state)
{
    static const char *const given[] = {"PATH=/bin",
                                        "SBATCH_TIMELIMIT=7",
                                        "SLURM_JOB_ID=3",
                                        "SLURM_CONF=/etc/s.conf",
                                        "SQUEUE_FORMAT=%i",
                                        "SACCT_FORMAT=x",
                                        "LC_ALL=de_DE",
                                        "SLURMX=1",
                                        "SLURM_TIME_FORMAT=relative"};
    char texts[9][40];
    char *environment[10] = {0};
    struct strbuf text = STRBUF_INIT;
    struct arena a;
    (void)state;
    arena_init(&a);
    for (size_t i = 0; i < 9; i++) {
        environment[i] = entry(given[i], texts[i], sizeof(texts[i]));
    }
    join(slurm_command_environment(&a, environment), &text);
    assert_string_equal(text.buf,
                        "PATH=/bin SLURM_CONF=/etc/s.conf SLURMX=1 SLURM_TIME_FORMAT=%s LC_ALL=C");
    strbuf_release(&text);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_submit),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
