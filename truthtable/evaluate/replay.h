/*
 * A replay: the verdict that a program's table gives for records from elsewhere. It executes
 * nothing and makes no program executed: the verdict says where the records come from ("records").
 */
#ifndef TRUTHTABLE_EVALUATE_REPLAY_H
#define TRUTHTABLE_EVALUATE_REPLAY_H

#include "base/err.h"
#include "prereg/program/program.h"
#include "truthtable/evaluate/verdict.h"

/* root: the digest of the program's lock in hex; NULL when it has none, then the digest of its
 * covered values alone. */
int replay_run(const struct plan_program *p, const char *root, const char *records_path,
               struct table_verdict *out, struct err *err) MUST_CHECK;

#endif
