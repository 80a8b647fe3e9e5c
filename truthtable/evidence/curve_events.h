/*
 * The points that a task's attempts reported in their events (docs/worker-protocol.md, "point"), in
 * the order in which they count: attempts by their numbers, up to the one whose result was
 * accepted. A resumed attempt repeats what lay after its checkpoint: a point at or before an
 * earlier step replaces what it goes back over. Nothing here knows what is sealed: callers ask
 * program_stage_is_sealed() first.
 */
#ifndef TRUTHTABLE_EVIDENCE_CURVE_EVENTS_H
#define TRUTHTABLE_EVIDENCE_CURVE_EVENTS_H

#include <stddef.h>

/* x and y are finite; the name is UTF-8, not empty, and lives during the call. */
typedef void curve_point_fn(void *ctx, const char *name, double x, double y);

/* Calls `take` for every point. Returns how many files could not be read to their end. Blocks. */
size_t curve_events_read_task(const char *task_folder, curve_point_fn *take, void *ctx);

#endif
