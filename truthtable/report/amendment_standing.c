/*
 * Classifies amendments by what was known when they were made. The level that the daemon recorded
 * decides first (scores seen, or sealed); below that, an amendment that touches an apparatus check
 * whose results were known is post hoc for that check. The order of the checks counts as part of a
 * check that it adds or drops.
 */
#include "truthtable/report/amendment_standing.h"

#include <string.h>

#include "base/xalloc.h"
#include "prereg/amend/amend_known.h"
#include "truthtable/report/report_model.h"

/* Whether a change is to plan.order.apparatus. */
static bool is_at_order(const cJSON *change)
{
    static const char *const want[] = {"plan", "order", "apparatus"};
    const cJSON *path = member(change, "path");
    for (int i = 0; i < (int)ARRAY_LEN(want); i++) {
        const char *key = cJSON_GetStringValue(cJSON_GetArrayItem(path, i));
        if (key == NULL || strcmp(key, want[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* Whether a list of texts contains the name. */
static bool has_name(const cJSON *list, const char *name)
{
    const cJSON *v = NULL;
    cJSON_ArrayForEach(v, list)
    {
        if (cJSON_IsString(v) && strcmp(v->valuestring, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the new order has a check, whose result was known, that the old one had not, or the
 * reverse. */
static bool moves_a_known_check(const cJSON *known, const cJSON *change)
{
    const cJSON *result = NULL;
    cJSON_ArrayForEach(result, known)
    {
        const char *name = member_text(result, "check");
        if (name != NULL &&
            has_name(member(change, "from"), name) != has_name(member(change, "to"), name)) {
            return true;
        }
    }
    return false;
}

/* By the amendment's own mark, or because results of the check were known. */
bool amendment_change_is_post_hoc(const cJSON *amendment, const cJSON *change)
{
    const cJSON *known = member(amendment, AMENDMENT_KNOWN);
    return cJSON_IsTrue(member(change, "post_hoc")) || amend_is_known(known, change) ||
           (is_at_order(change) && moves_a_known_check(known, change));
}

/* The strongest standing that applies, from "seen" down to "in advance". */
enum standing amendment_standing(const cJSON *amendment)
{
    const char *level = member_text(amendment, "level");
    const cJSON *change = NULL;
    if (level != NULL && strcmp(level, "seen") == 0) {
        return STANDING_SEEN;
    }
    if (level != NULL && strcmp(level, "sealed") == 0) {
        return STANDING_SEALED;
    }
    cJSON_ArrayForEach(change, member(amendment, "changes"))
    {
        if (amendment_change_is_post_hoc(amendment, change)) {
            return STANDING_KNOWN;
        }
    }
    return member_count(amendment, AMENDMENT_KNOWN) > 0 ? STANDING_KNOWN : STANDING_ADVANCE;
}
