/* Whether the worker that a record names is the one that was locked. */
#include "base/json/json.h"

#include <string.h>

#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"

/* An attempt that recorded nothing about where it ran has null. */
int verify_worker(struct verifying *v, const char *at, size_t stage, const cJSON *attempt)
{
    const char *locked = lock_file_digest(v->lock, v->program->stages[stage].command[0]);
    const cJSON *said = json_member(attempt, "worker");
    if (said == NULL || cJSON_IsNull(said) ||
        (cJSON_IsString(said) && locked != NULL && strcmp(said->valuestring, locked) == 0)) {
        return 0;
    }
    if (v->program->pin_workers_record) {
        v->other_workers = true;
        return 0;
    }
    char *what = xasprintf("%s.worker is not the one that the lock pins", at);
    int rc = err_differs(v->err, what, locked, cJSON_IsString(said) ? said->valuestring : NULL);
    free(what);
    return rc;
}
