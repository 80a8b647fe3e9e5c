/* The ledger of apparatus checks: what every check of a program scored, before its first evaluation
 * and after its last, on which machine and by which worker. Reads files alone, whether a daemon
 * runs or not; the scores of a reference model are not sealed. */
#ifndef CTL_APPARATUS_LEDGER_H
#define CTL_APPARATUS_LEDGER_H

#include <cjson/cJSON.h>

#include "base/err.h"

/* Appends an entry to `list` for each result that the journal of the program in `folder` has:
 *   {"program","id","check","run":"before"|"after","attempt","amendment","time","metric",
 *    "score":number|null,"expected","within","again":number|null,"first":number|null,"holds",
 *    "text","worker":HEX|null,"host","kernel","cpu"}
 * ERR_LOCK or ERR_CORRUPT: the journal does not chain, or a file says other than it; the entries
 * before that are kept. A program without checks adds nothing. */
int apparatus_ledger_add(const char *folder, cJSON *list, struct err *err);

/* Sorts the entries by time, those of one moment by program and check. */
void apparatus_ledger_sort(cJSON *list);

#endif
