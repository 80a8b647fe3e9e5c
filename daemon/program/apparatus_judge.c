/* Whether the result of an apparatus check is what the program expects. */
#include "daemon/program/apparatus.h"

#include <math.h>
#include <stdio.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/program/prepare.h"
#include "daemon/shim/files.h"
#include "prereg/lock/pinned_files.h"
#include "prereg/task/apparatus_text.h"
#include "prereg/task/task.h"
#include "state/store/apparatus.h"

#define ROUNDING 1e-12 /* relative, for decimals: 0.2777 is within 0.004 of 0.2737 */

/* The metric's value; NaN without a number, with the worker's reason in *why. */
static double value_of(const struct plan_apparatus *a, const cJSON *result, const char **why)
{
    const cJSON *m = json_member(json_member(result, "metrics"), a->metric);
    const cJSON *value = cJSON_IsObject(m) ? json_member(m, "value") : m;
    const cJSON *said = cJSON_IsObject(m) ? json_member(m, "why") : NULL;
    *why = cJSON_IsString(said) ? said->valuestring : "it has no value";
    return cJSON_IsNumber(value) && isfinite(value->valuedouble) ? value->valuedouble : (double)NAN;
}

/* ---- judging a result ---- */

static bool is_within(const struct plan_apparatus *a, double value)
{
    double slack = ROUNDING * fmax(1.0, fmax(fabs(value), fabs(a->value)));
    return fabs(value - a->value) <= a->within + slack;
}

enum core_result_check apparatus_judge(const struct plan_apparatus *a, const cJSON *result,
                                       double *value, char *text, size_t size)
{
    char said[APPARATUS_TEXT_SIZE];
    const char *why = NULL;
    *value = value_of(a, result, &why);
    if (isnan(*value)) {
        apparatus_text(a, *value, false, why, said);
        (void)snprintf(text, size, "%s", said);
        return RESULT_UNEXPECTED;
    }
    bool holds = is_within(a, *value);
    apparatus_text(a, *value, holds, "", said);
    (void)snprintf(text, size, "%s", said);
    return holds ? RESULT_VALID : RESULT_UNEXPECTED;
}
