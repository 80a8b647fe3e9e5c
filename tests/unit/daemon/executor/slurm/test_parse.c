/* What Slurm 22.05 prints (measured), and what site wrappers and broken pipes make of it. */
#include "daemon/executor/slurm/parse.h"

#include "tests/unit/check.h"

#define A "0b9b6ad6-3a3e-4b6e-9c0a-1f2e3d4c5b6a"
#define B "1c8c7be7-4b4f-4c7f-8d1b-2a3f4e5d6c7b"

static void test_submitted(void **state)
{
    static const struct {
        const char *text;
        int64_t id; /* 0: refused */
    } rows[] = {
        {"123\n", 123},
        {"123", 123},
        {"123;alpha\n", 123},
        {"Welcome to alpha\n123\n", 123},
        {"123\n124\n", 0},
        {"Submitted batch job 123\n", 0},
        {"123 \n", 123},
        {"0\n", 0},
        {"-1\n", 0},
        {"123;\n", 0},
        {"123;a b\n", 0},
        {"99999999999999999999\n", 0},
        {"", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t id = 0;
        CHECK_ROW("%s", rows[i].text);
        assert_int_equal(slurm_parse_submitted(rows[i].text, strlen(rows[i].text), &id),
                         rows[i].id != 0);
        if (rows[i].id != 0) {
            assert_int_equal(id, rows[i].id);
        }
    }
}

static void test_queue(void **state)
{
    static const char TEXT[] = "CLUSTER: alpha\n"
                               "1_4|1|PENDING|Resources|" A "|1795838297||N/A|N/A\n"
                               "1_0|8|RUNNING|None|" A "|1795838297|n1|1795838298|1795841898\n"
                               "3|3|FAILED|BadConstraints|" B "|1795838298||1795838298|1795838298\n"
                               "4|4|FROZEN|None|" B "|N/A|n7,n8|N/A|N/A\n"
                               "9|9|RUNNING|None|somebody's|1795838298|n1|1|2\n"
                               "9|9|RUNNING|None|a|b|c|1795838298|n1|1|2\n";
    struct arena arena;
    struct slurm_rows r;
    (void)state;
    arena_init(&arena);
    slurm_parse_queue(TEXT, strlen(TEXT), &arena, &r);
    assert_int_equal(r.n, 4);
    assert_int_equal(r.n_foreign, 2);
    assert_int_equal(r.n_odd, 0);
    assert_string_equal(r.rows[0].name, A);
    assert_int_equal(r.rows[0].index, 4);
    assert_string_equal(r.rows[0].id, "1_4");
    assert_string_equal(r.rows[0].reason, "Resources");
    assert_string_equal(r.rows[0].node, "");
    assert_int_equal(r.rows[0].state, SLURM_PENDING);
    assert_int_equal(r.rows[0].submit_s, 1795838297);
    assert_string_equal(r.rows[1].node, "n1");
    assert_int_equal(r.rows[2].index, SLURM_INDEX_NONE);
    assert_int_equal(r.rows[3].state, SLURM_UNKNOWN);
    assert_string_equal(r.rows[3].word, "FROZEN");
    assert_string_equal(r.rows[3].node, "n7");
    assert_int_equal(r.rows[3].submit_s, -1);
    arena_release(&arena);
}

/* A line of ours that is not whole hides a job: the answer must not prove one absent. */
static void test_odd_lines(void **state)
{
    static const char *const rows[] = {
        "1_4|1|PENDING|Resources|" A "|1795838297||N/A|N/A\n1_5|1|PEND",
        "1_4|1|PENDING|Resources|" A "|1795838297||N/A|N/A",
        "1_4|1|PENDING|" A "\n",
        "1_[4-7]|1|PENDING|Resources|" A "|1795838297||N/A|N/A\n",
        "1_4|1||Resources|" A "|1795838297||N/A|N/A\n",
        "x|1|PENDING|Resources|" A "|1795838297||N/A|N/A\n",
        "1_-4|1|PENDING|Resources|" A "|1795838297||N/A|N/A\n",
        "1_4|1|PENDING|Resources|" A "|1795838297||N/A|N/A|more\n",
        "slurm_load_jobs err",
    };
    struct arena arena;
    (void)state;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slurm_rows r;
        CHECK_ROW("%s", rows[i]);
        slurm_parse_queue(rows[i], strlen(rows[i]), &arena, &r);
        assert_int_equal(r.n_odd, 1);
    }
    arena_release(&arena);
}

static void test_accounting(void **state)
{
    static const char TEXT[] = "7_1|NODE_FAIL|" A "|1795838297|n2|0:0\n"
                               "8|CANCELLED by 0|" B "|1795838297|None assigned|0:0\n"
                               "7_[2-9]|PENDING|" A "|1795838297|None assigned|0:0\n";
    struct arena arena;
    struct slurm_rows r;
    (void)state;
    arena_init(&arena);
    slurm_parse_accounting(TEXT, strlen(TEXT), &arena, &r);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.n_odd, 1);
    assert_int_equal(r.rows[0].state, SLURM_NODE_FAIL);
    assert_string_equal(r.rows[0].node, "n2");
    assert_int_equal(r.rows[1].state, SLURM_CANCELLED);
    assert_string_equal(r.rows[1].node, "");
    assert_string_equal(r.rows[1].word, "CANCELLED by 0");
    arena_release(&arena);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text;
        enum slurm_refusal want;
        const char *why;
    } rows[] = {
        {"sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: "
         "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n",
         SLURM_REFUSED_FULL,
         "QOSMaxSubmitJobPerUserLimit; Batch job submission failed: Job violates accounting/QOS "
         "policy (job submit limit, user's size and/or time limits)"},
        {"sbatch: error: AssocMaxSubmitJobLimit\n", SLURM_REFUSED_FULL, "AssocMaxSubmitJobLimit"},
        {"sbatch: error: Batch job submission failed: Slurm temporarily unable to accept job, "
         "sleeping and retrying\n",
         SLURM_REFUSED_FULL, NULL},
        {"sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job "
         "submission failed: Requested node configuration is not available\n",
         SLURM_REFUSED_NEVER,
         "Memory specification can not be satisfied; Batch job submission failed: Requested node "
         "configuration is not available"},
        {"sbatch: unrecognized option '--foo=bar'\nTry \"sbatch --help\" for more information\n",
         SLURM_REFUSED_NEVER, "sbatch: unrecognized option '--foo=bar'"},
        {"sbatch: error: Unable to contact slurm controller (connect failure)\nsbatch: error: "
         "Unable "
         "to contact slurm controller (connect failure)\n",
         SLURM_REFUSED_UNKNOWN, "Unable to contact slurm controller (connect failure)"},
        {"sbatch: error: Batch job submission failed: Required partition not available (inactive "
         "or "
         "drain)\n",
         SLURM_REFUSED_FULL, NULL},
        {"sbatch: error: Batch job submission failed: Invalid partition name specified\n",
         SLURM_REFUSED_NEVER, NULL},
        {"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n",
         SLURM_REFUSED_UNKNOWN, NULL},
        {"sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect "
         "failure)\n",
         SLURM_REFUSED_UNKNOWN, NULL},
        {"slurm_load_jobs error: Invalid job id specified\n", SLURM_REFUSED_ABSENT, NULL},
        {"Slurm accounting storage is disabled\n", SLURM_REFUSED_NO_ACCOUNTING, NULL},
        {"alpha: maintenance on Monday\n", SLURM_REFUSED_UNKNOWN, "alpha: maintenance on Monday"},
        {"", SLURM_REFUSED_UNKNOWN, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char why[200];
        CHECK_ROW("%s", rows[i].text);
        assert_int_equal(slurm_parse_refusal(rows[i].text, strlen(rows[i].text)), rows[i].want);
        slurm_parse_why(rows[i].text, strlen(rows[i].text), why, sizeof(why));
        if (rows[i].why != NULL) {
            assert_string_equal(why, rows[i].why);
        }
    }
}

static void test_max_array(void **state)
{
    static const char TEXT[] = "MaxArraySize            = 10001\nMaxBatchRequeue = 5\n";
    (void)state;
    assert_int_equal(slurm_parse_max_array(TEXT, strlen(TEXT)), 10001);
    assert_int_equal(slurm_parse_max_array("MaxArraySize = 0\n", 17), -1);
    assert_int_equal(slurm_parse_max_array("MaxArraySize = x\n", 17), -1);
    assert_int_equal(slurm_parse_max_array("MaxArray = 5\n", 13), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_submitted), cmocka_unit_test(test_queue),
        cmocka_unit_test(test_odd_lines), cmocka_unit_test(test_accounting),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_max_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
