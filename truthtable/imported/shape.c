/* Recognises a file by the members that its tool always writes, and gives it the shape of a results
 * file of lm-evaluation-harness. */
#include "truthtable/imported/shape.h"

#include <string.h>

#include "base/json/json.h"
#include "truthtable/imported/shape_parts.h"

typedef int shape_fn(const cJSON *file, cJSON *out, struct file_shape *s, struct err *err);

int shape_results(cJSON **json, struct file_shape *out, struct err *err)
{
    static const char *const parts[] = {"results", "n-samples", "config", "configs", "versions"};
    shape_fn *shape = NULL;
    *out = (struct file_shape){.checked = STRBUF_INIT};
    if (cJSON_IsObject(json_member(*json, "eval")) && json_member(*json, "status") != NULL) {
        out->format = "Inspect log";
        shape = shape_inspect;
    } else if (json_member(*json, "schema_version") != NULL &&
               json_member(*json, "evaluation_results") != NULL) {
        out->format = "Every Eval Ever file";
        shape = shape_every_eval;
    }
    if (shape == NULL) {
        return 0;
    }
    cJSON *shaped = json_object();
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        json_put(shaped, parts[i], json_object());
    }
    int rc = shape(*json, shaped, out, err);
    cJSON_Delete(*json);
    *json = shaped;
    return rc == 0 ? 0 : err_wrap(err, "%s", out->format);
}

void shape_release(struct file_shape *s)
{
    strbuf_release(&s->checked);
}
