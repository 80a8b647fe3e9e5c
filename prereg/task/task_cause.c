/*
 * One table of causes: the name in journal rows and records, and whether a machine is to blame. The
 * names are stored, so an entry may be added but not renamed.
 */
#include "prereg/task/task_cause.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    bool mechanical;
} causes[CAUSE_NR] = {
    [CAUSE_NONE] = {"", false},
    [CAUSE_CRASH] = {"crash", true},
    [CAUSE_SILENT_DEATH] = {"silent_death", true},
    [CAUSE_HANG] = {"hang", true},
    [CAUSE_TIMEOUT] = {"timeout", true},
    [CAUSE_OOM] = {"oom", true},
    [CAUSE_BAD_RESULT] = {"bad_result", false},
    [CAUSE_PREEMPTED] = {"preempted", true},
    [CAUSE_HOST_LOST] = {"host_lost", true},
    [CAUSE_USER_ERROR] = {"user_error", false},
    [CAUSE_BAD_INPUT] = {"bad_input", false},
    [CAUSE_NOT_MEASURABLE] = {"not_measurable", false},
    [CAUSE_DRIFT] = {"drift", false},
    [CAUSE_NO_SPACE] = {"no_space", true},
    [CAUSE_APPARATUS] = {"apparatus", false},
    [CAUSE_LOST] = {"lost", false},
    [CAUSE_DEPENDENCY] = {"dependency", false},
    [CAUSE_CANCELLED] = {"cancelled", false},
    [CAUSE_STOPPED] = {"stopped", false},
};

const char *cause_name(enum cause c)
{
    assert(c < CAUSE_NR);
    return causes[c].name;
}

enum cause cause_from_name(const char *name)
{
    for (size_t c = CAUSE_NONE; c < CAUSE_NR; c++) {
        if (strcmp(causes[c].name, name) == 0) {
            return (enum cause)c;
        }
    }
    return CAUSE_NR;
}

bool cause_is_mechanical(enum cause c)
{
    assert(c < CAUSE_NR);
    return causes[c].mechanical;
}
