/*
 * What `check` and `lock` establish of [reuse]: the receipt follows, and each selected cell has the
 * results of the same work in it.
 */
#ifndef CTL_REUSE_PROOF_H
#define CTL_REUSE_PROOF_H

#include <cjson/cJSON.h>

#include "base/diag.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

/* Verifies the receipt that the program names as `verify` does, and matches its cells; faults and
 * what is found go to diag. `describe` as for lock_build(). *pins is what a lock of the same plan
 * pins (lock_set_reuse), which the caller deletes; NULL without [reuse]. ERR_INVALID with errors in
 * diag. */
int reuse_prove(const struct plan_program *p, const cJSON *describe, struct diag *diag,
                cJSON **pins, struct err *err) MUST_CHECK;

#endif
