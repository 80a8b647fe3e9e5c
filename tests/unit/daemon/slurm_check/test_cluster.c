/* What scontrol and sacctmgr print, as data, and whether a request fits it. */
#include <string.h>

#include "base/xalloc.h"
#include "daemon/slurm_check/cluster.h"
#include "tests/unit/check.h"

static const char CONFIG[] = "Configuration data as of 2026-11-28T04:36:40\n"
                             "AccountingStorageBackupHost = (null)\n"
                             "AccountingStorageType   = accounting_storage/slurmdbd\n"
                             "ClusterName             = hpc\n"
                             "MaxArraySize            = 1001\n"
                             "MaxJobCount             = 10000\n"
                             "SLURM_VERSION           = 22.05.8\n";
static const char PARTITIONS[] =
    "PartitionName=gpu AllowGroups=ALL Default=NO DefaultTime=NONE MaxTime=1-00:30:00 State=UP\n"
    "PartitionName=main Default=YES DefaultTime=01:00:00 MaxTime=UNLIMITED State=DOWN\n";
static const char NODES[] = "NodeName=n1 Arch=x86_64 CPUTot=8 Gres=gpu:a100:2(S:0-1),nvme:1,gpu:1 "
                            "OS=Linux 6.1 RealMemory=7 "
                            "RealMemory=1024 Partitions=main,gpu  CfgTRES=cpu=2\n"
                            "NodeName=n2 CPUTot=64 Gres=(null) RealMemory=4096 Partitions=main\n"
                            "\n"
                            "no node\n";

static void read_all(struct cluster *c)
{
    cluster_init(c);
    cluster_read_config(c, CONFIG, strlen(CONFIG));
    cluster_read_partitions(c, PARTITIONS, strlen(PARTITIONS));
    cluster_read_nodes(c, NODES, strlen(NODES));
}

static void test_reads(void **state)
{
    struct cluster c;
    char text[64];
    (void)state;
    read_all(&c);
    assert_string_equal(c.name, "hpc");
    assert_string_equal(c.version, "22.05.8");
    assert_true(cluster_accounts(&c));
    assert_int_equal(c.max_array, 1001);
    assert_int_equal(c.max_jobs, 10000);
    assert_int_equal(c.n_partitions, 2);
    assert_string_equal(cluster_default_partition(&c), "main");
    assert_int_equal(c.partitions[0].max_time_ms, ((24 * 60) + 30) * 60 * 1000);
    assert_int_equal(c.partitions[1].max_time_ms, -1);
    assert_int_equal(c.partitions[1].default_time_ms, 3600 * 1000);
    assert_true(c.partitions[0].is_up);
    assert_false(c.partitions[1].is_up);
    assert_int_equal(c.n_nodes, 2);
    assert_int_equal(c.nodes[0].gpus, 3);
    assert_int_equal(c.nodes[1].gpus, 0);
    assert_int_equal(c.nodes[1].memory_bytes, INT64_C(4) << 30);
    cluster_partition_names(&c, text, sizeof(text));
    assert_string_equal(text, "gpu, main");
    cluster_partition_names(&c, text, 6);
    assert_string_equal(text, "gpu, ");
    assert_false(cluster_lacks_partition(&c, "main,gpu", text, sizeof(text)));
    assert_true(cluster_lacks_partition(&c, "main,gp,x", text, sizeof(text)));
    assert_string_equal(text, "gp");
    cluster_release(&c);
}

static void test_fits(void **state)
{
    static const struct {
        const char *partitions;
        struct slurm_request asks;
        bool fits;
    } rows[] = {
        {"main", {.threads = 64, .memory_bytes = INT64_C(4) << 30}, true},
        {"main", {.threads = 65}, false},
        {"main", {.threads = 1, .memory_bytes = (INT64_C(4) << 30) + 1}, false},
        {"gpu", {.threads = 9}, false},
        {"gpu", {.threads = 8, .gpus = 3}, true},
        {"gpu", {.threads = 8, .gpus = 4}, false},
        {"main", {.threads = 9, .gpus = 1}, false}, /* each on a node, not on one */
        {"gpu,main", {.threads = 9}, true},
        {"gp", {.threads = 1}, false},
    };
    struct cluster c;
    struct cluster_most most;
    (void)state;
    read_all(&c);
    c.nodes[0].memory_bytes = INT64_C(1) << 30;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%zu: %s", i, rows[i].partitions);
        assert_int_equal(cluster_has_node(&c, rows[i].partitions, &rows[i].asks), rows[i].fits);
    }
    cluster_most(&c, "main", &most);
    assert_int_equal(most.n_nodes, 2);
    assert_int_equal(most.cores, 64);
    assert_int_equal(most.gpus, 3);
    assert_int_equal(most.time_ms, -1);
    cluster_most(&c, "gpu,main", &most);
    assert_int_equal(most.time_ms, -1);
    cluster_most(&c, "gpu", &most);
    assert_int_equal(most.time_ms, ((24 * 60) + 30) * 60 * 1000);
    assert_int_equal(most.cores, 8);
    cluster_release(&c);
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } times[] = {
        {"00:05:00", 300000},
        {"UNLIMITED", -1},
        {"NONE", -1},
        {"", -1},
        {"1-00:00:00", 86400000},
        {"5", -1},
        {"00:60:00", -1},
        {"-1:00:00", -1},
        {"99999999-00:00:00", -1},
        {"00:00:00:00", -1},
        {"100:00:01", 360001000},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        CHECK_ROW("%s", times[i].text);
        assert_int_equal(cluster_time_ms(times[i].text, strlen(times[i].text)), times[i].ms);
    }
    static const char limits[] = "root|\nlab|100\nother|500\nlab|70\nodd\nlab|9999999999999999\n";
    assert_int_equal(cluster_max_submit(limits, strlen(limits), "lab"), 100);
    assert_int_equal(cluster_max_submit(limits, strlen(limits), NULL), 500);
    assert_int_equal(cluster_max_submit(limits, strlen(limits), "root"), -1);
    static const char job[] = "JobId=7 DerivedExitCode=0:0 ExitCode=127:0 X=";
    assert_int_equal(cluster_number(job, strlen(job), "ExitCode"), 127);
    assert_int_equal(cluster_number(job, strlen(job), "X"), -1);
    assert_int_equal(cluster_number(job, strlen(job), "Y"), -1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
