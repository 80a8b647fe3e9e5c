/* The standing of an amendment and of each thing that it changed: laid down in advance, or not. */
#ifndef TRUTHTABLE_REPORT_AMENDMENT_STANDING_H
#define TRUTHTABLE_REPORT_AMENDMENT_STANDING_H

#include <cjson/cJSON.h>
#include <stdbool.h>

enum standing {
    STANDING_ADVANCE, /* no score was known, nor a result of a check that it changes */
    STANDING_KNOWN,   /* no score; results of checks that it changes were known */
    STANDING_SEALED,
    STANDING_SEEN,
    STANDING_NR
};

enum standing amendment_standing(const cJSON *amendment);
/* By its own mark, or by what was known of the check that it concerns. A change of the checks'
 * order counts where such a check is added or removed. */
bool amendment_change_is_post_hoc(const cJSON *amendment, const cJSON *change);

#endif
