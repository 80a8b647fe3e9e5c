/*
 * Fills the JSON object of result.json member by member; nothing is written before result_write(),
 * which replaces the file atomically. A reader therefore sees a whole result or none. Values that
 * are not finite are written as null with a reason, because JSON has no number for them and the
 * daemon must not guess.
 */
#include "worker/report/result.h"

#include <math.h>
#include <sys/resource.h>

#include "base/json/json.h"
#include "base/layout/layout.h"

enum worker_exit worker_exit_code(int err_code)
{
    switch (err_code) {
    case ERR_NONE: return WORKER_DONE;
    case ERR_USAGE:
    case ERR_INVALID: return WORKER_USAGE;
    case ERR_SYNTAX:
    case ERR_CORRUPT:
    case ERR_NOT_FOUND:
    case ERR_VERSION: return WORKER_DATA;
    case ERR_REFUSED: return WORKER_UNMEASURABLE;
    case ERR_BUSY: return WORKER_AGAIN;
    default: return WORKER_CRASH;
    }
}

void result_init(struct worker_result *r, const struct worker_task *task)
{
    *r = (struct worker_result){.json = json_object()};
    json_put_int(r->json, "protocol", TASK_PROTOCOL);
    json_put_string(r->json, "attempt", task->attempt);
    r->metrics = json_object();
    r->facts = json_object();
    r->read = json_object();
    r->artifacts = json_array();
    json_put(r->json, "metrics", r->metrics);
    json_put(r->json, "facts", r->facts);
    json_put(r->json, "read", r->read);
    json_put(r->json, "artifacts", r->artifacts);
}

void result_release(struct worker_result *r)
{
    cJSON_Delete(r->json);
    *r = (struct worker_result){0};
}

void result_metric(struct worker_result *r, const char *name, double value, int64_t n, double se)
{
    cJSON *m = json_object();

    if (isfinite(value)) {
        json_put_number(m, "value", value);
    } else {
        json_put_null(m, "value");
        json_put_string(m, "why", "not_finite");
    }
    if (n >= 0)
        json_put_int(m, "n", n);
    if (isfinite(se))
        json_put_number(m, "se", se);
    json_put(r->metrics, name, m);
}

void result_metric_null(struct worker_result *r, const char *name, const char *why,
                        const char *bound)
{
    cJSON *m = json_object();

    json_put_null(m, "value");
    json_put_string(m, "why", why);
    if (bound != NULL)
        json_put_string(m, "bound", bound);
    json_put(r->metrics, name, m);
}

void result_fact(struct worker_result *r, const char *name, double value)
{
    if (isfinite(value))
        json_put_number(r->facts, name, value);
    else
        result_fact_null(r, name, "not_finite");
}

void result_fact_text(struct worker_result *r, const char *name, const char *value)
{
    json_put_string(r->facts, name, value);
}

void result_fact_null(struct worker_result *r, const char *name, const char *why)
{
    cJSON *f = json_object();

    json_put_null(f, "value");
    json_put_string(f, "why", why);
    json_put(r->facts, name, f);
}

void result_read(struct worker_result *r, const char *data_name, const struct digest *digest)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(digest, hex);
    json_put_string(r->read, data_name, hex);
}

void result_input(struct worker_result *r, const char *stage, const struct digest *digest)
{
    char hex[DIGEST_HEX_SIZE];

    if (r->inputs == NULL) {
        r->inputs = json_object();
        json_put(r->json, "inputs", r->inputs);
    }
    digest_hex(digest, hex);
    json_put_string(r->inputs, stage, hex);
}

int result_artifact(struct worker_result *r, const char *path, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    struct digest digest;
    int64_t n_bytes = 0;

    int rc = digest_file(path, &digest, &n_bytes, err);
    if (rc < 0)
        return err_wrap(err, "artifact");
    digest_hex(&digest, hex);
    cJSON *a = json_object();
    json_put_string(a, "path", path);
    json_put_string(a, "sha256", hex);
    json_put_int(a, "bytes", n_bytes);
    json_push(r->artifacts, a);
    return 0;
}

void result_items(struct worker_result *r, const char *path)
{
    json_put_string(r->json, "items", path);
}

void result_try(struct worker_result *r, double done, double of, double seconds)
{
    cJSON *tried = json_object();

    json_put_number(tried, "done", done);
    json_put_number(tried, "of", of);
    json_put_number(tried, "seconds", seconds);
    json_put(r->json, "try", tried);
}

int result_write(struct worker_result *r, struct err *err)
{
    return json_write_file(LAYOUT_RESULT, r->json, 0644, err);
}

/* ru_maxrss is in KiB on Linux. */
void result_fact_sheet(struct worker_result *r, const struct worker_environment *env)
{
    struct rusage usage;

    result_fact(r, "threads", env->threads);
    result_fact_text(r, "blas", env->blas);
    if (env->arithmetic != 0)
        result_fact(r, "arithmetic", env->arithmetic);
    result_fact_text(r, "instructions", env->instructions);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        result_fact(r, "peak_rss_bytes", (double)usage.ru_maxrss * 1024.0);
    else
        result_fact_null(r, "peak_rss_bytes", "getrusage");
}
