/* Writes series of Prometheus. A label's value may hold any text: backslash, quote and line end are
 * escaped. */
#include "daemon/http/metrics_text.h"

#include <math.h>

#include "base/json/json.h"

void metrics_head(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_label(struct strbuf *out, const struct metrics_label *l)
{
    strbuf_addf(out, "%s=\"", l->name);
    for (const char *c = l->value; *c != '\0'; c++) {
        if (*c == '\n') {
            strbuf_adds(out, "\\n");
        } else {
            if (*c == '\\' || *c == '"') {
                strbuf_addc(out, '\\');
            }
            strbuf_addc(out, *c);
        }
    }
    strbuf_addc(out, '"');
}

static void add_number(struct strbuf *out, double v)
{
    char text[JSON_NUMBER_MAX];
    if (isnan(v)) {
        strbuf_adds(out, "NaN");
    } else if (isinf(v)) {
        strbuf_adds(out, v > 0 ? "+Inf" : "-Inf");
    } else {
        json_number_text(v, text);
        strbuf_adds(out, text);
    }
}

void metrics_value(struct strbuf *out, const char *name, const struct metrics_label *labels,
                   double value)
{
    strbuf_adds(out, name);
    if (labels != NULL && labels->name != NULL) {
        strbuf_addc(out, '{');
        for (const struct metrics_label *l = labels; l->name != NULL; l++) {
            if (l != labels) {
                strbuf_addc(out, ',');
            }
            add_label(out, l);
        }
        strbuf_addc(out, '}');
    }
    strbuf_addc(out, ' ');
    add_number(out, value);
    strbuf_addc(out, '\n');
}

void metrics_single(struct strbuf *out, const char *name, const char *type, const char *help,
                    double value)
{
    metrics_head(out, name, type, help);
    metrics_value(out, name, NULL, value);
}

/* Buckets are cumulative, and the last one has everything. */
void metrics_histogram(struct strbuf *out, const char *name, const char *help,
                       const struct pump_commits *c)
{
    char series[96];
    char bound[JSON_NUMBER_MAX];
    uint64_t sum = 0;
    metrics_head(out, name, "histogram", help);
    (void)snprintf(series, sizeof(series), "%s_bucket", name);
    for (int i = 0; i < PUMP_COMMIT_BUCKETS; i++) {
        sum += c->buckets[i];
        json_number_text((double)(INT64_C(1) << i) / 1000, bound);
        metrics_value(out, series, (struct metrics_label[]){{"le", bound}, {NULL, NULL}},
                      (double)sum);
    }
    metrics_value(out, series, (struct metrics_label[]){{"le", "+Inf"}, {NULL, NULL}},
                  (double)c->n);
    (void)snprintf(series, sizeof(series), "%s_sum", name);
    metrics_value(out, series, NULL, (double)c->sum_ns / 1e9);
    (void)snprintf(series, sizeof(series), "%s_count", name);
    metrics_value(out, series, NULL, (double)c->n);
}
