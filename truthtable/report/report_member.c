/* Members of the verdict's JSON as the report reads them: what is missing or of another type is
 * empty. */
#include <math.h>

#include "base/json/json.h"
#include "truthtable/report/report_model.h"

/* NULL in, NULL out: chains of lookups need no checks between them. */
const cJSON *member(const cJSON *obj, const char *key)
{
    return obj == NULL ? NULL : json_member(obj, key);
}

/* Arrays and objects have a length. */
size_t member_count(const cJSON *obj, const char *key)
{
    const cJSON *m = member(obj, key);
    return cJSON_IsArray(m) || cJSON_IsObject(m) ? (size_t)cJSON_GetArraySize(m) : 0;
}

/* NAN means absent, null and any other type alike. */
double member_number(const cJSON *obj, const char *key)
{
    const cJSON *m = member(obj, key);
    return cJSON_IsNumber(m) ? m->valuedouble : (double)NAN;
}

/* NULL for anything that is not a text. */
const char *member_text(const cJSON *obj, const char *key)
{
    const cJSON *m = member(obj, key);
    return cJSON_IsString(m) ? m->valuestring : NULL;
}
