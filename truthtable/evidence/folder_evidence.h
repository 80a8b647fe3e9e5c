/*
 * The evidence of a program's whole folder (STATE/programs/<id>): of an executed program the
 * results that the daemon linked, with the ends of the other tasks from provenance.json; of an
 * imported one its records.json.
 */
#ifndef TRUTHTABLE_EVIDENCE_FOLDER_EVIDENCE_H
#define TRUTHTABLE_EVIDENCE_FOLDER_EVIDENCE_H

#include "base/err.h"
#include "truthtable/evidence/evidence.h"

/* Fills e, which was initialised. provenance: the parsed provenance.json, NULL without one: then
 * tasks without a result stay pending. */
int folder_evidence(struct evidence *e, const char *folder, const cJSON *provenance,
                    struct err *err) MUST_CHECK;

#endif
