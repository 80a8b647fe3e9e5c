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

/*
 * Moves the [run] tables of one program's text into another: for an amended program that is
 * submitted again with another [run]. Only tables that begin with a line of their own ([run],
 * [run.STAGE]) are recognized, and lines are classified without parsing TOML: the caller parses the
 * result and compares it with the two texts it was made from.
 */

/* `text` without its [run] tables, then those of `from`. */
void run_text_replace(const char *text, const char *from, struct strbuf *out);

#endif
