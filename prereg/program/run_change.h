/*
 * A change of [run] as text: one element of the list that run_record_json() makes and that
 * provenance.json has as `runs`, {"row","run","blocked":COUNT,"first":["CELL/STAGE (cause)", ...]}.
 * `preregctl verify`, `verdict` and the report print it through these alone. The element may come
 * from a receipt: nothing in it is taken to be there, or to be of its type.
 */
#ifndef PREREG_PROGRAM_RUN_CHANGE_H
#define PREREG_PROGRAM_RUN_CHANGE_H

#include <cjson/cJSON.h>

#include "base/strbuf.h"

/* Appends the settings as canonical JSON; nothing when there are none. */
void run_change_settings(const cJSON *change, struct strbuf *out);
/* Appends the tasks that were blocked under it: "A, B and 3 more"; nothing when there are none. */
void run_change_tasks(const cJSON *change, struct strbuf *out);
/* Appends the whole as one line, without its newline. */
void run_change_line(const cJSON *change, struct strbuf *out);

#endif
