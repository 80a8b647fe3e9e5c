/*
 * The list of all programs of a state folder with what each takes on the disk, and what could be
 * freed: the answers of the methods `programs` and `disk` (docs/rpc.md), which preregctl gives
 * itself where no daemon runs. Reads through a connection of its own; changes nothing. Blocking.
 */
#ifndef STATE_DISK_PROGRAMS_H
#define STATE_DISK_PROGRAMS_H

#include <cjson/cJSON.h>

#include "base/err.h"

/* "programs" newest first, "damaged" (folders and rows that do not fit each other, with what to
 * do), "objects_bytes", "database_bytes". A database that cannot be read makes every folder damaged
 * and is not an error; ERR_NOT_FOUND: the state folder is absent. */
int disk_programs(const char *state, cJSON **out, struct err *err) MUST_CHECK;

/* Per program the bytes of each kind, and "freeable": [{"what","bytes","how"}]; `only`: one id. */
int disk_details(const char *state, const char *only, cJSON **out, struct err *err) MUST_CHECK;

#endif
