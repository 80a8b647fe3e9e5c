/*
 * Reads the samples files of one task and collects what its lines add up to. Each line is placed
 * (document and filter, each once), its hashes and its filter are verified, and its metrics are
 * recomputed where possible (judge.c). Values are kept for the means in samples_compare.c. JSON
 * lines are read one at a time; the single array of early versions must be read whole and has a
 * limit.
 */
#include "truthtable/imported/samples.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/imported/judge.h"

/* "aggregation" of the task's metric_list, else what the metric's name has always meant. */
static enum samples_sum sum_of(const struct results_entry *task, const char *metric)
{
    static const struct {
        const char *word;
        enum samples_sum sum;
    } words[] = {
        {"mean", SUM_MEAN},
        {"perplexity", SUM_PERPLEXITY},
        {"weighted_perplexity", SUM_WEIGHTED},
        {"bits_per_byte", SUM_BITS},
        {"acc", SUM_MEAN},
        {"acc_norm", SUM_MEAN},
        {"exact_match", SUM_MEAN},
        {"word_perplexity", SUM_WEIGHTED},
        {"byte_perplexity", SUM_WEIGHTED},
    };
    const char *said = metric;
    const cJSON *m = NULL;
    cJSON_ArrayForEach(m, json_member(task->config, "metric_list"))
    {
        const cJSON *name = json_member(m, "metric");
        const cJSON *how = json_member(m, "aggregation");
        if (cJSON_IsString(name) && strcmp(name->valuestring, metric) == 0 && cJSON_IsString(how)) {
            said = how->valuestring;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(words[i].word, said) == 0) {
            return words[i].sum;
        }
    }
    return SUM_UNKNOWN;
}

/* The index of a filter, or the number of filters. */
static size_t find_filter(const struct samples *s, const char *name)
{
    size_t i = 0;
    while (i < s->n_filters && strcmp(s->filters[i], name) != 0) {
        i++;
    }
    return i;
}

/* A metric per entry of the results file, and the filters among them. */
int samples_init(struct samples *s, const struct imported_results *r,
                 const struct results_entry *task, struct err *err)
{
    *s = (struct samples){.results = r, .task = task, .all_hashes = true};
    digest_start(&s->hashes);
    s->metrics = xcalloc(task->n_metrics + 1, sizeof(*s->metrics));
    for (size_t i = 0; i < task->n_metrics; i++) {
        const struct results_metric *m = &task->metrics[i];
        s->metrics[i].of = m;
        s->metrics[i].sum = sum_of(task, m->name);
        if (find_filter(s, m->filter) < s->n_filters) {
            continue;
        }
        if (s->n_filters == SAMPLES_FILTERS_MAX) {
            return err_set(err, ERR_RANGE, "%s: more than %d filters", task->task,
                           SAMPLES_FILTERS_MAX);
        }
        s->filters[s->n_filters++] = m->filter;
    }
    return 0;
}

/* Also valid after a failed init. */
void samples_release(struct samples *s)
{
    for (size_t i = 0; s->metrics != NULL && i < s->task->n_metrics; i++) {
        free(s->metrics[i].xs);
    }
    free(s->metrics);
    free(s->seen);
    *s = (struct samples){0};
}

/* ---- a line ---- */

/* Room for a bit per filter of every document so far. */
static void grow_seen(struct samples *s, size_t doc)
{
    if (doc < s->cap_seen) {
        return;
    }
    size_t cap = s->cap_seen == 0 ? 1024 : s->cap_seen;
    while (cap <= doc) {
        cap *= 2;
    }
    s->seen = xreallocarray(s->seen, cap, sizeof(*s->seen));
    memset(s->seen + s->cap_seen, 0, (cap - s->cap_seen) * sizeof(*s->seen));
    s->cap_seen = cap;
}

/* Which filter the line is of, and that it is the first of its document there. */
static int place_line(struct samples *s, const cJSON *line, size_t *filter, struct err *err)
{
    int64_t doc = 0;
    const char *name = NULL;
    int rc = json_get_int(line, "doc_id", 0, SAMPLES_DOCS_MAX - 1, &doc, err);
    if (rc != 0 || (rc = json_opt_string(line, "filter", &name, err)) != 0) {
        return rc;
    }
    grow_seen(s, (size_t)doc);
    size_t at = 0;
    /* Versions before 0.4.7 do not name the filter: lines of a document come in the order of the
     * filters. */
    if (name != NULL) {
        at = find_filter(s, name);
    } else {
        while (at < s->n_filters && (s->seen[doc] >> at & 1U) != 0) {
            at++;
        }
    }
    if (at >= s->n_filters) {
        return name != NULL
                   ? err_set(err, ERR_CORRUPT, "filter \"%.60s\" is none of the results file's",
                             name)
                   : err_set(err, ERR_CORRUPT,
                             "doc_id %lld stands twice, or more often than there are filters (%zu)",
                             (long long)doc, s->n_filters);
    }
    if ((s->seen[doc] >> at & 1U) != 0) {
        return err_set(err, ERR_CORRUPT, "doc_id %lld stands twice under filter \"%s\"",
                       (long long)doc, s->filters[at]);
    }
    /* One line for each document and filter. */
    s->seen[doc] |= 1U << at;
    s->n_docs[at]++;
    *filter = at;
    return 0;
}

/* Keeps one value of a metric. */
static void push(struct samples_metric *m, double x)
{
    ARRAY_GROW(m->xs, m->n, m->cap);
    m->xs[m->n++] = x;
}

/* A number; of pages [log-likelihood, words or bytes]. */
static int take_stored(struct samples_metric *m, const cJSON *v, struct err *err)
{
    double x = 0;
    double weight = 0;
    if (m->sum == SUM_UNKNOWN) {
        return 0; /* whatever such a metric keeps of an item */
    }
    /* Rolling metrics keep a pair: log-likelihood and weight. */
    if (m->sum == SUM_WEIGHTED || m->sum == SUM_BITS) {
        if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) != 2 || !judge_number(v->child, &x) ||
            !judge_number(v->child->next, &weight) || !(weight >= 0)) {
            return err_set(err, ERR_SYNTAX, "\"%s\" is not a pair of numbers", m->of->name);
        }
    } else if (!judge_number(v, &x)) {
        return err_set(err, ERR_SYNTAX, "\"%s\" is not a number", m->of->name);
    }
    push(m, x);
    m->weights += weight;
    return 0;
}

/* Whether the line's own list of metrics has this name. */
static bool lists(const cJSON *names, const char *name)
{
    const cJSON *v = NULL;
    cJSON_ArrayForEach(v, names)
    {
        if (cJSON_IsString(v) && strcmp(v->valuestring, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A metric that some items have and others lack would be a mean over whatever was left in. */
static int count_presence(const struct samples *s, struct samples_metric *m, const cJSON *v,
                          const cJSON *names, struct err *err)
{
    if (v == NULL && lists(names, m->of->name)) {
        return err_set(err, ERR_SYNTAX, "\"%s\" is missing", m->of->name);
    }
    m->n_there += v != NULL ? 1 : 0;
    m->n_not += v == NULL ? 1 : 0;
    if (m->n_there > 0 && m->n_not > 0 && !judge_has_own_code(s->task->config)) {
        return err_set(err, ERR_CORRUPT, "\"%s\" is %s, unlike on the lines before", m->of->name,
                       v == NULL ? "missing" : "there");
    }
    return 0;
}

/* The metrics of the line's filter: stored, then recomputed. */
static int take_values(struct samples *s, const cJSON *line, size_t filter, struct err *err)
{
    const cJSON *names = json_member(line, "metrics");
    for (size_t i = 0; i < s->task->n_metrics; i++) {
        struct samples_metric *m = &s->metrics[i];
        const cJSON *v = json_member(line, m->of->name);
        enum judged how = JUDGED_NOT;
        if (strcmp(m->of->filter, s->filters[filter]) != 0) {
            continue;
        }
        int rc = count_presence(s, m, v, names, err);
        if (rc == 0 && v != NULL && (rc = take_stored(m, v, err)) == 0) {
            rc = judge_metric(line, s->task->config, m->of->name, &how, err);
        }
        if (rc != 0) {
            return rc;
        }
        /* For the receipt: how many values follow from answers. */
        m->n_recomputed += how == JUDGED_RIGHT ? 1 : 0;
    }
    return 0;
}

/* The order matters for messages only: the first fault of a line is reported. */
int samples_line(struct samples *s, const cJSON *line, const char *text, size_t len,
                 struct err *err)
{
    size_t filter = 0;
    bool has_hashes = false;
    if (!cJSON_IsObject(line)) {
        return err_set(err, ERR_SYNTAX, "is not an object");
    }
    int rc = place_line(s, line, &filter, err);
    if (rc != 0 || (rc = judge_hashes(line, text, len, &s->hashes, &has_hashes, err)) != 0 ||
        (rc = judge_filtered(line, err)) != 0 || (rc = take_values(s, line, filter, err)) != 0) {
        return rc;
    }
    s->all_hashes = s->all_hashes && has_hashes;
    s->n_lines++;
    return 0;
}

/* ---- the file ---- */

/* The text is kept beside the parsed line, for its hashes. */
static int read_text_line(struct samples *s, const char *text, size_t len, struct err *err)
{
    cJSON *line = NULL;
    int rc = json_parse_lax(text, len, &line, err);
    if (rc == 0) {
        rc = samples_line(s, line, text, len, err);
    }
    cJSON_Delete(line);
    return rc;
}

/* The digest covers every byte, blank lines included. */
static int read_lines(struct samples *s, FILE *f, const char *path, struct err *err)
{
    char *line = NULL;
    size_t cap = 0;
    size_t no = 0;
    ssize_t len = 0;
    int rc = 0;
    struct digest_stream digest;
    digest_start(&digest);
    while (rc == 0 && (len = getline(&line, &cap, f)) > 0) {
        no++;
        digest_add(&digest, line, (size_t)len);
        s->n_bytes += len;
        /* Blank lines are allowed and counted. */
        if (strspn(line, " \t\r\n") == (size_t)len) {
            continue;
        }
        rc = (size_t)len > SAMPLES_LINE_MAX
                 ? err_set(err, ERR_RANGE, "more than %zu bytes", SAMPLES_LINE_MAX)
                 : read_text_line(s, line, (size_t)len, err);
        if (rc != 0) {
            (void)err_wrap(err, "%s: line %zu", path, no);
        }
    }
    if (rc == 0 && !feof(f)) { /* also a line that memory cannot hold */
        rc = err_set(err, ERR_IO, "%s: it cannot be read", path);
    }
    s->digest = digest_finish(&digest);
    free(line);
    return rc;
}

/* 0.4.0 to 0.4.2: all samples as one array. */
static int read_array(struct samples *s, const char *path, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    cJSON *list = NULL;
    size_t no = 0;
    int rc = file_read(path, SAMPLES_ARRAY_MAX, &text, err);
    if (rc == 0) {
        s->digest = digest_bytes(text.buf, text.len);
        s->n_bytes = (int64_t)text.len;
        if (json_parse_lax(text.buf, text.len, &list, err) != 0) {
            rc = err_wrap(err, "%s", path);
        }
    }
    strbuf_release(&text); /* the list alone may be large */
    for (const cJSON *v = rc == 0 ? list->child : NULL; rc == 0 && v != NULL; v = v->next) {
        rc = samples_line(s, v, NULL, 0, err);
        if (rc != 0) {
            (void)err_wrap(err, "%s: sample %zu", path, no);
        }
        no++;
    }
    cJSON_Delete(list);
    return rc;
}

/* '[' begins the one array of early versions. */
static int first_character(FILE *f)
{
    int c = getc(f);
    while (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        c = getc(f);
    }
    rewind(f);
    return c;
}

/* Only regular files: a FIFO would block. */
int samples_read(struct samples *s, const char *path, struct err *err)
{
    if (file_kind_at(path) != FILE_REGULAR) {
        return err_set(err, file_kind_at(path) == FILE_ABSENT ? ERR_NOT_FOUND : ERR_REFUSED,
                       "%s is not a regular file", path);
    }
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return err_set(err, ERR_IO, "%s cannot be opened", path);
    }
    int rc = first_character(f) == '[' ? read_array(s, path, err) : read_lines(s, f, path, err);
    (void)fclose(f);
    return rc;
}
