/* A log of Inspect (version 2, as JSON): one task on one model, its scores, and mostly its samples.
 * Where the samples are there, means and standard errors are computed again from them. Only a run
 * that ended well is taken: the scores of another one are of whatever was reached. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "truthtable/imported/shape_parts.h"

struct inspect {
    const cJSON *log;
    const cJSON *eval;
    const cJSON *results;
    int64_t epochs;
    bool one_score; /* its name need not be in the keys */
    struct file_shape *shape;
    size_t n_checked;
};

/* ---- samples ---- */

/* A score's value as Inspect's metrics read it; false where they would only guess. */
static bool read_score_value(const cJSON *v, double *out)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {{"C", 1}, {"I", 0}, {"P", 0.5}, {"N", 0}};
    struct err ignored;
    if (cJSON_IsNumber(v) || cJSON_IsBool(v)) {
        *out = cJSON_IsNumber(v) ? v->valuedouble : cJSON_IsTrue(v) ? 1 : 0;
        return true;
    }
    if (!cJSON_IsString(v)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(v->valuestring, words[i].text) == 0) {
            *out = words[i].value;
            return true;
        }
    }
    const bool yes =
        strcasecmp(v->valuestring, "yes") == 0 || strcasecmp(v->valuestring, "true") == 0;
    if (yes || strcasecmp(v->valuestring, "no") == 0 || strcasecmp(v->valuestring, "false") == 0) {
        *out = yes ? 1 : 0;
        return true;
    }
    return text_to_double(v->valuestring, out, &ignored) == 0;
}

/* The values of a score over all samples; NULL, with the reason noted, where they do not give its
 * metrics. The caller frees it. */
static double *read_values(const struct inspect *in, const char *score, size_t n)
{
    const cJSON *samples = json_member(in->log, "samples");
    const cJSON *sample = NULL;
    double *xs = NULL;
    size_t n_xs = 0;
    const char *why = !cJSON_IsArray(samples) || samples->child == NULL ? "the log has no samples"
                      : in->epochs != 1                                 ? "several epochs"
                                                                        : NULL;
    if (why == NULL) {
        xs = xcalloc((size_t)cJSON_GetArraySize(samples) + 1, sizeof(*xs));
        cJSON_ArrayForEach(sample, samples)
        {
            const cJSON *of = json_member(json_member(sample, "scores"), score);
            if (of != NULL && !read_score_value(json_member(of, "value"), &xs[n_xs++])) {
                why = "a score that is not a number";
            }
        }
        why = why == NULL && n_xs != n ? "scores of some samples only" : why;
    }
    if (why != NULL) {
        strbuf_addf(&in->shape->checked, "%s%.60s not recomputed: %s",
                    in->shape->checked.len > 0 ? "; " : "", score, why);
        free(xs);
        return NULL;
    }
    return xs;
}

/* A stated figure against the computed one. Metrics with parameters of their own are left alone. */
static int compare_metric(struct inspect *in, const cJSON *metrics, const char *name, double value,
                          struct err *err)
{
    const cJSON *m = json_member(metrics, name);
    const cJSON *stated = json_member(m, "value");
    const cJSON *params = json_member(m, "params");
    if (!cJSON_IsNumber(stated) || (cJSON_IsObject(params) && params->child != NULL)) {
        return 0;
    }
    const double scale = fmax(1, fabs(value));
    if (!(fabs(stated->valuedouble - value) <= 1e-9 * scale)) { /* a sum in another order */
        return err_set(err, ERR_CORRUPT, "%s is %.17g, its samples give %.17g", name,
                       stated->valuedouble, value);
    }
    in->n_checked++;
    return 0;
}

/* accuracy and mean are the mean of the values, stderr its standard error (n - 1). */
static int recompute(struct inspect *in, const char *score, const cJSON *metrics, size_t n,
                     struct err *err)
{
    double mean = 0;
    double squares = 0;
    double *xs = n > 0 ? read_values(in, score, n) : NULL;
    if (xs == NULL) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        mean += xs[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        squares += (xs[i] - mean) * (xs[i] - mean);
    }
    free(xs);
    const size_t before = in->n_checked;
    const double se = n < 2 ? 0 : sqrt(squares / (double)(n - 1) / (double)n);
    int rc = compare_metric(in, metrics, "accuracy", mean, err);
    rc = rc == 0 ? compare_metric(in, metrics, "mean", mean, err) : rc;
    rc = rc == 0 ? compare_metric(in, metrics, "stderr", se, err) : rc;
    if (rc == 0 && in->n_checked > before) {
        in->shape->recomputed = true;
        strbuf_addf(&in->shape->checked, "%s%.60s: %zu figures from %zu samples",
                    in->shape->checked.len > 0 ? "; " : "", score, in->n_checked - before, n);
    }
    return rc;
}

/* ---- scores ---- */

static bool ends_in_stderr(const char *name)
{
    const size_t n = strlen(name);
    return n >= 6 && strcmp(name + n - 6, "stderr") == 0;
}

/* The metrics of one score. "stderr" belongs to the mean; other errors have no place. */
static int take_score_metrics(const struct inspect *in, const char *score, const cJSON *metrics,
                              cJSON *task, struct err *err)
{
    const char *mean = json_member(metrics, "accuracy") != NULL ? "accuracy"
                       : json_member(metrics, "mean") != NULL   ? "mean"
                                                                : NULL;
    const cJSON *m = NULL;
    int rc = 0;
    int n = 0;
    cJSON_ArrayForEach(m, metrics)
    {
        const bool is_error = m->string != NULL && ends_in_stderr(m->string);
        const bool of_mean = is_error && strcmp(m->string, "stderr") == 0 && mean != NULL;
        const struct shape_key key = {of_mean ? mean : m->string, of_mean ? "_stderr" : "",
                                      in->one_score ? "none" : score};
        if (m->string == NULL || ++n > SHAPE_LIST_MAX) {
            return err_set(err, ERR_SYNTAX, "metrics: not an object, or more than %d",
                           SHAPE_LIST_MAX);
        }
        if (rc == 0 && (!is_error || of_mean)) {
            rc = shape_put_metric(task, &key, json_member(m, "value"), err);
        }
    }
    return rc;
}

/* How many samples a score is over: it says so, or all that were completed. */
static int count_scored(const struct inspect *in, const cJSON *score, int64_t *n, struct err *err)
{
    int64_t completed = 0;
    int rc = json_get_int(in->results, "completed_samples", 0, SHAPE_ITEMS_MAX, &completed, err);
    *n = completed / in->epochs;
    if (rc == 0 && completed % in->epochs != 0) {
        return err_set(err, ERR_REFUSED, "completed_samples %lld are not whole epochs of %lld",
                       (long long)completed, (long long)in->epochs);
    }
    return rc == 0 ? json_opt_int(score, "scored_samples", 0, SHAPE_ITEMS_MAX, n, err) : rc;
}

static int take_scores(struct inspect *in, const char *name, cJSON *task, int64_t *n,
                       struct err *err)
{
    const cJSON *list = NULL;
    const cJSON *score = NULL;
    int rc = json_get_array(in->results, "scores", &list, err);
    int n_scores = rc == 0 ? cJSON_GetArraySize(list) : 0;
    if (rc == 0 && (n_scores == 0 || n_scores > SHAPE_LIST_MAX)) {
        rc = err_set(err, ERR_RANGE, "%d scores of %.60s", n_scores, name);
    }
    in->one_score = n_scores == 1;
    *n = -1;
    for (score = rc == 0 ? list->child : NULL; rc == 0 && score != NULL; score = score->next) {
        const char *own = NULL;
        const char *scorer = NULL;
        const cJSON *metrics = NULL;
        int64_t of = 0;
        if ((rc = json_get_string(score, "name", &own, err)) != 0 ||
            (rc = json_get_object(score, "metrics", &metrics, err)) != 0 ||
            (rc = count_scored(in, score, &of, err)) != 0) {
            break;
        }
        scorer = own;
        if ((rc = json_opt_string(score, "scorer", &scorer, err)) != 0 ||
            (rc = take_score_metrics(in, own, metrics, task, err)) != 0) {
            break;
        }
        if (*n >= 0 && *n != of) {
            rc = err_set(err, ERR_REFUSED, "%.60s is over %lld samples, another score over %lld",
                         own, (long long)of, (long long)*n);
        }
        *n = of;
        rc = rc == 0 ? recompute(in, scorer, metrics, (size_t)of, err) : rc;
        rc = rc == 0 ? 0 : err_wrap(err, "score %.60s", own);
    }
    return rc;
}

/* ---- the log ---- */

/* A number of samples, a range of them, or a list of ids: what was chosen of the dataset. */
static void take_selection(cJSON *config, const cJSON *of)
{
    const cJSON *limit = json_member(of, "limit");
    const cJSON *ids = json_member(of, "sample_id");
    const cJSON *from = cJSON_IsArray(limit) ? limit->child : NULL;
    double n = cJSON_IsNumber(limit) ? limit->valuedouble : 0;
    if (from != NULL && from->next != NULL && cJSON_IsNumber(from) && cJSON_IsNumber(from->next)) {
        n = from->next->valuedouble - from->valuedouble;
    }
    if (ids != NULL && !cJSON_IsNull(ids)) {
        n = cJSON_IsArray(ids) ? (double)cJSON_GetArraySize(ids) : 1;
    }
    if (n > 0) {
        json_put_number(config, "limit", n);
    }
}

/* What settings_note() looks at, under the names that it knows. */
static void take_settings(const struct inspect *in, const char *task, cJSON *out)
{
    cJSON *config = cJSON_GetObjectItemCaseSensitive(out, "config");
    const cJSON *of = json_member(in->eval, "config");
    const cJSON *model = json_member(in->eval, "model");
    const cJSON *generate = json_member(in->eval, "model_generate_config");
    const cJSON *args = json_member(in->eval, "task_args");
    const cJSON *version = json_member(in->eval, "task_version");
    const cJSON *created = json_member(in->eval, "created");
    take_selection(config, of);
    if (cJSON_IsString(model)) {
        cJSON *where = json_object();
        json_put_string(where, "pretrained", model->valuestring);
        json_put(config, "model_args", where);
    }
    if (cJSON_IsObject(generate)) {
        json_put(config, "gen_kwargs", json_copy(generate));
    }
    if (cJSON_IsObject(args)) {
        json_put(cJSON_GetObjectItemCaseSensitive(out, "configs"), task, json_copy(args));
    }
    if (version != NULL) {
        json_put(cJSON_GetObjectItemCaseSensitive(out, "versions"), task, json_copy(version));
    }
    if (cJSON_IsString(created)) {
        json_put_string(out, "date", created->valuestring);
    }
}

/* Whether the log is one whose scores count. */
static int check_log(const struct inspect *in, struct err *err)
{
    const char *status = NULL;
    int64_t version = 0;
    int rc = json_get_string(in->log, "status", &status, err);
    if (rc != 0 || (rc = json_get_int(in->log, "version", 0, 1000, &version, err)) != 0) {
        return rc;
    }
    if (version != 2) {
        return err_set(err, ERR_REFUSED, "version is %lld, read is 2", (long long)version);
    }
    if (strcmp(status, "success") != 0 || cJSON_IsTrue(json_member(in->log, "invalidated"))) {
        return err_set(err, ERR_REFUSED,
                       "its run ended with status \"%.20s\"%s: scores of a part are not taken",
                       status,
                       cJSON_IsTrue(json_member(in->log, "invalidated")) ? ", invalidated" : "");
    }
    return 0;
}

int shape_inspect(const cJSON *log, cJSON *out, struct file_shape *s, struct err *err)
{
    struct inspect in = {.log = log, .eval = json_member(log, "eval"), .epochs = 1, .shape = s};
    const char *task = NULL;
    int64_t n = 0;
    int64_t total = 0;
    cJSON *metrics = json_object();
    int rc = check_log(&in, err);
    if (rc != 0 || (rc = json_get_string(in.eval, "task", &task, err)) != 0 ||
        (rc = json_get_object(log, "results", &in.results, err)) != 0 ||
        (rc = json_opt_int(json_member(in.eval, "config"), "epochs", 1, 1 << 20, &in.epochs,
                           err)) != 0 ||
        (rc = json_get_int(in.results, "total_samples", 0, SHAPE_ITEMS_MAX, &total, err)) != 0 ||
        (rc = take_scores(&in, task, metrics, &n, err)) != 0) {
        cJSON_Delete(metrics);
        return rc;
    }
    json_put(cJSON_GetObjectItemCaseSensitive(out, "results"), task, metrics);
    take_settings(&in, task, out);
    /* of a selection the log does not say how many there were */
    const bool all = json_member(json_member(out, "config"), "limit") == NULL;
    shape_put_counts(out, task, (double)n, all ? (double)(total / in.epochs) : -1);
    return 0;
}
