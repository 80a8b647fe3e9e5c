/*
 * The work of a task, and its digest: what decides the task's result, without the program that it
 * is of. Two tasks with equal digests do the same work; task_id() also covers the root and so never
 * agrees between programs.
 *
 * Covered: the stage's name, the digests of its worker and of the other files of its command, the
 * other arguments, env and threads, what its environment holds, the resolved parameters (solved
 * ones included), the model of GPU, the digests of [data] and of [pin] files, and the works of the
 * stages that it comes after. Not covered: names of cells, factors and programs, [run], and the
 * machine, which no lock covers. Another name of a work ([[same_work]]) has the digest of the task
 * that does the work.
 *
 * A worker is handed all of [data]. So that a successor may add some, both sides are taken over the
 * names of one program, the earlier one: each data set and pinned file that it had must be there
 * with the same digest.
 */
#ifndef PREREG_REUSE_WORK_H
#define PREREG_REUSE_WORK_H

#include <cjson/cJSON.h>

#include "base/files/digest.h"
#include "base/strbuf.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

/* What the work of a task is, as an object; `inputs` of the stages that it comes after are not in
 * it. The caller deletes it. */
cJSON *work_describe(const struct plan_program *p, const struct lock *lock,
                     const struct plan_program *named, size_t task);

/* The digests of all tasks; `out` has program_n_tasks() of them. */
int work_digests(const struct plan_program *p, const struct lock *lock,
                 const struct plan_program *named, struct digest *out, struct err *err) MUST_CHECK;

/* Appends the first difference between two works, "params.lr is 0.002, and was 0.001"; false when
 * there is none. */
bool work_difference(const cJSON *now, const cJSON *then, struct strbuf *out);

#endif
