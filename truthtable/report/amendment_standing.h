/* The standing of an amendment and of each thing that it changed: laid down in advance, or not. */
#ifndef TRUTHTABLE_REPORT_AMENDMENT_STANDING_H
#define TRUTHTABLE_REPORT_AMENDMENT_STANDING_H

#include <cjson/cJSON.h>
#include <stdbool.h>

enum standing {
    STANDING_ADVANCE, /* no score, no result of a check that it changes */
    STANDING_KNOWN,   /* no score; results of checks that it changes were known */
    STANDING_SEALED,
    STANDING_SEEN,
    STANDING_NR
};

enum standing amendment_standing(const cJSON *amendment);
/* By its own word, or by what was known of the check that it is of: the order of the checks too,
 * where one of those comes or goes. */
bool amendment_change_is_post_hoc(const cJSON *amendment, const cJSON *change);

#endif
