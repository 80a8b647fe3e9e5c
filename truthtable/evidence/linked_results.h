/*
 * Evidence from a program's folder: cells/<cell>/<stage>/result.json, links that the daemon made
 * after it verified each result. What a missing link means (blocked, never run, not yet) is not in
 * any file of the cell: `ends` has it.
 */
#ifndef TRUTHTABLE_EVIDENCE_LINKED_RESULTS_H
#define TRUTHTABLE_EVIDENCE_LINKED_RESULTS_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "truthtable/evidence/evidence.h"

/* Fills e, which was initialised. cells: the folder that holds the cells' folders. ends: array of
 * {"cell","stage","end","cause", "narrower"} as in provenance.json's "tasks", or NULL; a task with
 * a result is done whatever it says, one without either stays pending. A result that is not
 * readable is an error that names the file, not a missing value: it was verified once. */
int gather_evidence(struct evidence *e, const char *cells, const cJSON *ends,
                    struct err *err) MUST_CHECK;

#endif
