/*
 * Whether a result.json may be believed (invariant 1): of this attempt, whole, its artifacts there
 * with the digests it states, its inputs as locked or accepted, and every metric that the plan
 * names in it. Blocking; runs off the loop. Only the form of values is checked.
 */
#ifndef DAEMON_PROGRAM_RESULT_H
#define DAEMON_PROGRAM_RESULT_H

#include <cjson/cJSON.h>

#include "base/files/digest.h"
#include "daemon/core/event.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"
#include "prereg/task/task.h"
#include "prereg/task/task_result.h"

struct accepted_list;

struct result_source {
    const struct plan_program *program;
    const struct lock *lock;
    size_t cell; /* of an apparatus check: ignored */
    size_t stage;
    const struct plan_apparatus
        *check; /* an apparatus check: its metric alone must be there; or NULL */
    const struct accepted_list
        *inputs;         /* accepted results that it could read; NULL: not of a grid */
    const char *folder;  /* of the attempt */
    const char *attempt; /* its id */
};

struct result_check {
    bool unread; /* it could not be read: nothing is known, the rest does not hold */
    enum core_result_check verdict;
    char why[256];        /* unless RESULT_VALID */
    struct digest digest; /* of result.json's bytes, RESULT_VALID */
    cJSON *json;          /* RESULT_VALID: the caller's */
};

/* Verifies result.json of an attempt that has ended. *out is always filled in; the caller frees
 * out->json. */
void result_verify(const struct result_source *source, struct result_check *out);

#endif
