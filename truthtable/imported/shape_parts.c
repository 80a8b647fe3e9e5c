/* The pieces of a results file of lm-evaluation-harness, for the shapes of other tools. */
#include "truthtable/imported/shape_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"

int shape_put_metric(cJSON *task, const struct shape_key *key, const cJSON *value, struct err *err)
{
    const size_t len = strlen(key->name);
    if (len == 0 || len > 200 || strlen(key->filter) > 200 || strchr(key->name, ',') != NULL) {
        return err_set(err, ERR_SYNTAX, "\"%.60s\" cannot be the name of a metric", key->name);
    }
    char *text = xasprintf("%s%s,%s", key->name, key->suffix, key->filter);
    json_put(task, text, cJSON_IsNumber(value) ? json_copy(value) : cJSON_CreateNull());
    free(text);
    return 0;
}

void shape_put_counts(cJSON *out, const char *task, double effective, double original)
{
    cJSON *counts = json_object();
    json_put_number(counts, "effective", effective);
    if (original >= 0) {
        json_put_number(counts, "original", original);
    }
    json_put(cJSON_GetObjectItemCaseSensitive(out, "n-samples"), task, counts);
}
