/* The closed table of Slurm's states and flags (slurm.h.in of 22.05 to 25.05, squeue(1) JOB STATE
 * CODES), and its pending reasons in words (squeue(1) JOB REASON CODES). */
#include "daemon/executor/slurm/states.h"

#include <assert.h>
#include <string.h>

#include "base/xalloc.h"

/* Rule 18. What a flag hides is unclear for requeues and revocations: the job may come back. */
static const struct {
    const char *word;
    enum slurm_phase phase;
} STATES[SLURM_STATE_NR] = {
    [SLURM_UNKNOWN] = {"UNKNOWN", SLURM_PHASE_UNCLEAR},
    [SLURM_PENDING] = {"PENDING", SLURM_PHASE_WAITING},
    [SLURM_RUNNING] = {"RUNNING", SLURM_PHASE_ACTIVE},
    [SLURM_SUSPENDED] = {"SUSPENDED", SLURM_PHASE_ACTIVE},
    [SLURM_COMPLETED] = {"COMPLETED", SLURM_PHASE_OVER},
    [SLURM_CANCELLED] = {"CANCELLED", SLURM_PHASE_OVER},
    [SLURM_FAILED] = {"FAILED", SLURM_PHASE_OVER},
    [SLURM_TIMEOUT] = {"TIMEOUT", SLURM_PHASE_OVER},
    [SLURM_NODE_FAIL] = {"NODE_FAIL", SLURM_PHASE_OVER},
    [SLURM_PREEMPTED] = {"PREEMPTED", SLURM_PHASE_OVER},
    [SLURM_BOOT_FAIL] = {"BOOT_FAIL", SLURM_PHASE_OVER},
    [SLURM_DEADLINE] = {"DEADLINE", SLURM_PHASE_OVER},
    [SLURM_OUT_OF_MEMORY] = {"OUT_OF_MEMORY", SLURM_PHASE_OVER},
    [SLURM_COMPLETING] = {"COMPLETING", SLURM_PHASE_ACTIVE},
    [SLURM_CONFIGURING] = {"CONFIGURING", SLURM_PHASE_ACTIVE},
    [SLURM_EXPEDITING] = {"EXPEDITING", SLURM_PHASE_WAITING},
    [SLURM_LAUNCH_FAILED] = {"LAUNCH_FAILED", SLURM_PHASE_UNCLEAR},
    [SLURM_POWER_UP_NODE] = {"POWER_UP_NODE", SLURM_PHASE_ACTIVE},
    [SLURM_RECONFIG_FAIL] = {"RECONFIG_FAIL", SLURM_PHASE_UNCLEAR},
    [SLURM_REQUEUED] = {"REQUEUED", SLURM_PHASE_WAITING},
    [SLURM_REQUEUE_FED] = {"REQUEUE_FED", SLURM_PHASE_WAITING},
    [SLURM_REQUEUE_HOLD] = {"REQUEUE_HOLD", SLURM_PHASE_WAITING},
    [SLURM_RESIZING] = {"RESIZING", SLURM_PHASE_ACTIVE},
    [SLURM_RESV_DEL_HOLD] = {"RESV_DEL_HOLD", SLURM_PHASE_WAITING},
    [SLURM_REVOKED] = {"REVOKED", SLURM_PHASE_OVER},
    [SLURM_SIGNALING] = {"SIGNALING", SLURM_PHASE_ACTIVE},
    [SLURM_SPECIAL_EXIT] = {"SPECIAL_EXIT", SLURM_PHASE_WAITING},
    [SLURM_STAGE_OUT] = {"STAGE_OUT", SLURM_PHASE_ACTIVE},
    [SLURM_STOPPED] = {"STOPPED", SLURM_PHASE_ACTIVE},
    [SLURM_UPDATE_DB] = {"UPDATE_DB", SLURM_PHASE_UNCLEAR},
};

static const struct {
    const char *word;
    const char *text;
    bool final;
} REASONS[] = {
    {"AccountNotAllowed", "its account may not use the partition", true},
    {"AssocGrpCpuLimit", "its account's limit of CPUs is reached", false},
    {"AssocGrpGRES", "its account's limit of GPUs is reached", false},
    {"AssocGrpJobsLimit", "its account's limit of running jobs is reached", false},
    {"AssocGrpMemLimit", "its account's limit of memory is reached", false},
    {"AssocMaxJobsLimit", "the user's limit of running jobs is reached", false},
    {"BadConstraints", "its constraints cannot be satisfied", true},
    {"BeginTime", "it is not to begin yet", false},
    {"Dependency", "it waits for another job", false},
    {"DependencyNeverSatisfied", "it waits for a job that failed", true},
    {"InvalidAccount", "its account is invalid", true},
    {"InvalidQOS", "its QOS is invalid", true},
    {"JobArrayTaskLimit", "the array's limit of running tasks is reached", false},
    {"JobHeldAdmin", "an administrator holds it", true},
    {"JobHeldUser", "a user holds it", true},
    {"Licenses", "a license is in use", false},
    {"NodeDown", "a node that it needs is down", false},
    {"None", "", false},
    {"PartitionConfig", "no node of the partition can ever run it", true},
    {"PartitionDown", "the partition is down", false},
    {"PartitionInactive", "the partition is inactive", false},
    {"PartitionNodeLimit", "it needs more nodes than the partition gives", true},
    {"PartitionTimeLimit", "its time is longer than the partition allows", true},
    {"Priority", "other jobs come before it", false},
    {"QOSGrpCpuLimit", "its QOS's limit of CPUs is reached", false},
    {"QOSMaxCpuPerUserLimit", "the user's limit of CPUs is reached", false},
    {"QOSMaxGRESPerUser", "the user's limit of GPUs is reached", false},
    {"QOSMaxJobsPerUserLimit", "the user's limit of running jobs is reached", false},
    {"QOSMaxMemoryPerUser", "the user's limit of memory is reached", false},
    {"ReqNodeNotAvail", "a node that it needs is not available", false},
    {"Reservation", "it waits for its reservation", false},
    {"Resources", "no node is free", false},
    {"launch failed requeued held", "it could not be launched and is held", true},
};

/* Where a word of sacct may be cut, and where squeue's ends. */
static bool ends_word(char c)
{
    return c == '\0' || c == ' ' || c == '+' || c == ',';
}

enum slurm_state slurm_state_from_word(const char *word, size_t len)
{
    for (size_t i = SLURM_PENDING; i < SLURM_STATE_NR; i++) {
        size_t n = strlen(STATES[i].word);
        if (n <= len && memcmp(word, STATES[i].word, n) == 0 && (n == len || ends_word(word[n]))) {
            return (enum slurm_state)i;
        }
    }
    return SLURM_UNKNOWN;
}

const char *slurm_state_word(enum slurm_state s)
{
    assert(s < SLURM_STATE_NR);
    return STATES[s].word;
}

enum slurm_phase slurm_state_phase(enum slurm_state s)
{
    assert(s < SLURM_STATE_NR);
    return STATES[s].phase;
}

bool slurm_state_is_requeue(enum slurm_state s)
{
    return s == SLURM_REQUEUED || s == SLURM_REQUEUE_FED || s == SLURM_REQUEUE_HOLD ||
           s == SLURM_SPECIAL_EXIT;
}

/* Some reasons go on: "ReqNodeNotAvail, UnavailableNodes:n1". */
static size_t find_reason(const char *reason)
{
    for (size_t i = 0; i < ARRAY_LEN(REASONS); i++) {
        size_t n = strlen(REASONS[i].word);
        if (strncmp(reason, REASONS[i].word, n) == 0 &&
            (reason[n] == '\0' || reason[n] == ',' || reason[n] == '(')) {
            return i;
        }
    }
    return ARRAY_LEN(REASONS);
}

const char *slurm_reason_in_words(const char *reason)
{
    size_t i = find_reason(reason);
    return i < ARRAY_LEN(REASONS) ? REASONS[i].text : NULL;
}

bool slurm_reason_is_final(const char *reason)
{
    size_t i = find_reason(reason);
    return i < ARRAY_LEN(REASONS) && REASONS[i].final;
}
