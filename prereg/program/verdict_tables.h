/* The tables beside a verdict in an answer: means of every measure by condition, and ranks of
 * levels, as the report's instruments.json has them (docs/instruments.md). */
#ifndef PREREG_PROGRAM_VERDICT_TABLES_H
#define PREREG_PROGRAM_VERDICT_TABLES_H

#include <cjson/cJSON.h>

/* Puts "means" and "ranks" into the answer, which has "path" and "verdict": null where the folder
 * of the verdict has no instruments of its root. */
void verdict_tables_put(cJSON *answer);

#endif
