/* Every word that Slurm 22.05 to 25.05 has for a state is in the table, and means one thing. */
#include "daemon/executor/slurm/states.h"

#include "tests/unit/check.h"

static void test_words_of_slurm(void **state)
{
    static const struct {
        const char *word;
        enum slurm_phase phase;
    } rows[] = {
        {"PENDING", SLURM_PHASE_WAITING},       {"RUNNING", SLURM_PHASE_ACTIVE},
        {"SUSPENDED", SLURM_PHASE_ACTIVE},      {"COMPLETED", SLURM_PHASE_OVER},
        {"CANCELLED", SLURM_PHASE_OVER},        {"FAILED", SLURM_PHASE_OVER},
        {"TIMEOUT", SLURM_PHASE_OVER},          {"NODE_FAIL", SLURM_PHASE_OVER},
        {"PREEMPTED", SLURM_PHASE_OVER},        {"BOOT_FAIL", SLURM_PHASE_OVER},
        {"DEADLINE", SLURM_PHASE_OVER},         {"OUT_OF_MEMORY", SLURM_PHASE_OVER},
        {"COMPLETING", SLURM_PHASE_ACTIVE},     {"CONFIGURING", SLURM_PHASE_ACTIVE},
        {"EXPEDITING", SLURM_PHASE_WAITING},    {"LAUNCH_FAILED", SLURM_PHASE_UNCLEAR},
        {"POWER_UP_NODE", SLURM_PHASE_ACTIVE},  {"RECONFIG_FAIL", SLURM_PHASE_UNCLEAR},
        {"REQUEUED", SLURM_PHASE_WAITING},      {"REQUEUE_FED", SLURM_PHASE_WAITING},
        {"REQUEUE_HOLD", SLURM_PHASE_WAITING},  {"RESIZING", SLURM_PHASE_ACTIVE},
        {"RESV_DEL_HOLD", SLURM_PHASE_WAITING}, {"REVOKED", SLURM_PHASE_OVER},
        {"SIGNALING", SLURM_PHASE_ACTIVE},      {"SPECIAL_EXIT", SLURM_PHASE_WAITING},
        {"STAGE_OUT", SLURM_PHASE_ACTIVE},      {"STOPPED", SLURM_PHASE_ACTIVE},
        {"UPDATE_DB", SLURM_PHASE_UNCLEAR},
    };
    (void)state;
    assert_int_equal(sizeof(rows) / sizeof(rows[0]), SLURM_STATE_NR - 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%s", rows[i].word);
        enum slurm_state s = slurm_state_from_word(rows[i].word, strlen(rows[i].word));
        assert_int_not_equal(s, SLURM_UNKNOWN);
        assert_string_equal(slurm_state_word(s), rows[i].word);
        assert_int_equal(slurm_state_phase(s), rows[i].phase);
    }
}

static void test_words_with_more(void **state)
{
    static const struct {
        const char *word;
        enum slurm_state want;
    } rows[] = {
        {"CANCELLED by 1000", SLURM_CANCELLED},
        {"CANCELLED+", SLURM_CANCELLED},
        {"REQUEUE", SLURM_UNKNOWN},
        {"RUNNINGX", SLURM_UNKNOWN},
        {"running", SLURM_UNKNOWN},
        {"", SLURM_UNKNOWN},
        {"SLEEPING", SLURM_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%s", rows[i].word);
        assert_int_equal(slurm_state_from_word(rows[i].word, strlen(rows[i].word)), rows[i].want);
    }
    /* Only the given bytes count. */
    assert_int_equal(slurm_state_from_word("RUNNING|x", 7), SLURM_RUNNING);
    assert_int_equal(slurm_state_phase(SLURM_UNKNOWN), SLURM_PHASE_UNCLEAR);
    assert_true(slurm_state_is_requeue(SLURM_REQUEUED));
    assert_false(slurm_state_is_requeue(SLURM_PENDING));
}

static void test_reasons(void **state)
{
    (void)state;
    assert_string_equal(slurm_reason_in_words("Priority"), "other jobs come before it");
    assert_string_equal(slurm_reason_in_words("ReqNodeNotAvail, UnavailableNodes:n1"),
                        "a node that it needs is not available");
    assert_string_equal(slurm_reason_in_words("None"), "");
    assert_null(slurm_reason_in_words("SomethingNew"));
    assert_true(slurm_reason_is_final("PartitionConfig"));
    assert_false(slurm_reason_is_final("Resources"));
    assert_false(slurm_reason_is_final("SomethingNew"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_of_slurm),
        cmocka_unit_test(test_words_with_more),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
