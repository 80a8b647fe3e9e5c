/* What readers of records.json share; private to them. */
#ifndef TRUTHTABLE_EVIDENCE_EVIDENCE_RECORDS_H
#define TRUTHTABLE_EVIDENCE_EVIDENCE_RECORDS_H

#include "truthtable/evidence/evidence.h"

/* Checks schema and program of the object that holds the records; *label is borrowed. */
int evidence_check_head(const struct evidence *e, const cJSON *head, const char **label,
                        struct err *err) MUST_CHECK;
/* One element of "records". */
int evidence_add_record(struct evidence *e, const cJSON *record, struct err *err) MUST_CHECK;

#endif
