/* The tables, and how an older database becomes one of today. For the files of state/ only. */
#ifndef STATE_STORE_SCHEMA_H
#define STATE_STORE_SCHEMA_H

#include <sqlite3.h>
#include <stdbool.h>

#include "base/err.h"

/* Brings the database to STORE_SCHEMA_VERSION in one transaction. A newer one is ERR_VERSION; so is
 * an older one when `writable` is false. */
int schema_migrate(sqlite3 *db, bool writable, struct err *err) MUST_CHECK;

#endif
