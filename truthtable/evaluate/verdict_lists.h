/*
 * The lists of verdict.json that may have an element for each of a million records. Private to the
 * verdict: what its elements are made from lives in the verdict's arena, the elements in the
 * caller's.
 */
#ifndef TRUTHTABLE_EVALUATE_VERDICT_LISTS_H
#define TRUTHTABLE_EVALUATE_VERDICT_LISTS_H

#include "base/json/json_arena.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/evidence/task_coverage.h"

struct verdict_task;

struct verdict_lists {
    const struct plan_program *program;
    const struct score *scores; /* [measure * n_cells + cell] */
    const struct gate *gates;   /* likewise */
    const size_t *floors;       /* the measures with a floor */
    size_t n_floors;
    const struct verdict_task *undetermined;
    size_t n_undetermined;
};

void verdict_lists_init(struct verdict_lists *l, const struct table_evaluation *ev,
                        const struct coverage *c, const struct evidence *e, struct arena *arena);

/* Elements for struct json_list; ctx is the lists. Of the second: what has no values though it is
 * over, and is not excluded: first what a person cancelled, stopped, gave up or ended by narrower
 * limits. */
size_t verdict_lists_n_gates(const struct verdict_lists *l);
cJSON *verdict_lists_gate(const void *ctx, size_t i, struct arena *arena);
cJSON *verdict_lists_undetermined(const void *ctx, size_t i, struct arena *arena);

#endif
