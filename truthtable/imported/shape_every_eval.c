/* A file of Every Eval Ever: one model, and results that others state. Each evaluation_name is a
 * task; nothing in the file lets its figures be computed again. */
#include <string.h>

#include "base/json/json.h"
#include "truthtable/imported/shape_parts.h"

#define EVERY_EVAL_MAX 4096 /* results of a file */

/* The metric's name: its stable id, else what it is called. */
static const char *metric_name_of(const cJSON *config)
{
    static const char *const keys[] = {"metric_id", "metric_name"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const cJSON *m = json_member(config, keys[i]);
        if (cJSON_IsString(m)) {
            return m->valuestring;
        }
    }
    return "score";
}

/* How many items; all metrics of one evaluation are over the same. */
static int take_samples(cJSON *out, const char *task, const cJSON *uncertainty, struct err *err)
{
    int64_t n = 0;
    const cJSON *before =
        json_member(json_member(json_member(out, "n-samples"), task), "effective");
    const cJSON *m = json_member(uncertainty, "num_samples");
    if (m == NULL || cJSON_IsNull(m)) {
        return 0;
    }
    int rc = json_get_int(uncertainty, "num_samples", 0, SHAPE_ITEMS_MAX, &n, err);
    if (rc == 0 && before != NULL && before->valuedouble != (double)n) {
        return err_set(err, ERR_CORRUPT, "num_samples is %lld, and %g in another metric",
                       (long long)n, before->valuedouble);
    }
    if (rc == 0 && before == NULL) {
        shape_put_counts(out, task, (double)n, -1);
    }
    return rc;
}

static int take_result(cJSON *out, const cJSON *result, struct err *err)
{
    const char *task = NULL;
    const cJSON *details = NULL;
    double score = 0;
    int rc = json_get_string(result, "evaluation_name", &task, err);
    if (rc != 0 || (rc = json_get_object(result, "score_details", &details, err)) != 0 ||
        (rc = json_get_number(details, "score", &score, err)) != 0) {
        return rc;
    }
    const cJSON *uncertainty = json_member(details, "uncertainty");
    const cJSON *se = json_member(json_member(uncertainty, "standard_error"), "value");
    cJSON *results = cJSON_GetObjectItemCaseSensitive(out, "results");
    cJSON *metrics = cJSON_GetObjectItemCaseSensitive(results, task);
    if (metrics == NULL) {
        metrics = json_object();
        json_put(results, task, metrics);
    }
    struct shape_key key = {metric_name_of(json_member(result, "metric_config")), "", "none"};
    rc = shape_put_metric(metrics, &key, json_member(details, "score"), err);
    if (rc == 0 && cJSON_IsNumber(se)) {
        key.suffix = "_stderr";
        rc = shape_put_metric(metrics, &key, se, err);
    }
    return rc == 0 ? take_samples(out, task, uncertainty, err) : rc;
}

int shape_every_eval(const cJSON *file, cJSON *out, struct file_shape *s, struct err *err)
{
    const char *version = NULL;
    const cJSON *list = NULL;
    const cJSON *result = NULL;
    const cJSON *model = json_member(json_member(file, "model_info"), "id");
    const cJSON *time = json_member(file, "evaluation_timestamp");
    const cJSON *type = json_member(json_member(file, "source_metadata"), "source_type");
    cJSON *config = cJSON_GetObjectItemCaseSensitive(out, "config");
    int n = 0;
    int rc = json_get_string(file, "schema_version", &version, err);
    if (rc != 0 || (rc = json_get_array(file, "evaluation_results", &list, err)) != 0) {
        return rc;
    }
    if (strncmp(version, "0.3.", 4) != 0) {
        return err_set(err, ERR_REFUSED, "schema_version is \"%.20s\", read is 0.3", version);
    }
    cJSON_ArrayForEach(result, list)
    {
        if (rc == 0 && ++n > EVERY_EVAL_MAX) {
            return err_set(err, ERR_RANGE, "more than %d results", EVERY_EVAL_MAX);
        }
        rc = rc == 0 ? take_result(out, result, err) : rc;
        if (rc != 0) {
            return err_wrap(err, "evaluation_results[%d]", n - 1);
        }
    }
    if (cJSON_IsString(model)) {
        cJSON *args = json_object();
        json_put_string(args, "pretrained", model->valuestring);
        json_put(config, "model_args", args);
    }
    if (cJSON_IsString(time)) {
        json_put_string(out, "date", time->valuestring);
    }
    strbuf_addf(&s->checked, "not recomputed: such a file states its figures%s",
                cJSON_IsString(type) && strcmp(type->valuestring, "documentation") == 0
                    ? ", and these were reported, not run"
                    : "");
    return 0;
}
