/*
 * Writes means.csv from the instruments' means, computed anew as for the report, and records.csv
 * from the readings that the section of measures shows. A value that is open is empty, with its
 * reason in the last column.
 */
#include "truthtable/report/report_csv.h"

#include <math.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "truthtable/instruments/instruments.h"
#include "truthtable/report/measure_values.h"
#include "truthtable/report/report_model.h"

/* One field, with the comma before it unless it is the first of its line. */
static void add_text(struct strbuf *out, const char *text)
{
    if (out->len > 0 && out->buf[out->len - 1] != '\n') {
        strbuf_addc(out, ',');
    }
    if (strpbrk(text, ",\"\r\n") == NULL) {
        strbuf_adds(out, text);
        return;
    }
    strbuf_addc(out, '"');
    for (; *text != '\0'; text++) {
        strbuf_adds(out, *text == '"' ? "\"" : "");
        strbuf_addc(out, *text);
    }
    strbuf_addc(out, '"');
}

/* Empty where it is not known: the shortest text that reads back as the same double. */
static void add_number(struct strbuf *out, double v)
{
    char text[JSON_NUMBER_MAX] = "";
    if (isfinite(v)) {
        json_number_text(v, text);
    }
    add_text(out, text);
}

static void add_names(struct strbuf *out, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add_text(out, names[i]);
    }
}

/* A column for each factor; of conditions without the replicates. */
static void add_factors(struct strbuf *out, const struct plan_program *p, const size_t *levels,
                        bool replicates)
{
    for (size_t f = 0; f < p->n_factors; f++) {
        if (replicates || !p->factors[f].replicate) {
            add_text(out,
                     levels == NULL ? p->factors[f].name : p->factors[f].levels[levels[f]].text);
        }
    }
}

/* The list has an element for each measure and condition, in this order. */
static void add_means(struct strbuf *out, const struct plan_program *p, const cJSON *list)
{
    static const char *const before[] = {"measure", "condition"};
    static const char *const values[] = {"mean", "se", "ci_low", "ci_high", "n"};
    add_names(out, before, ARRAY_LEN(before));
    add_factors(out, p, NULL, false);
    add_names(out, values, ARRAY_LEN(values));
    add_text(out, "why");
    strbuf_addc(out, '\n');
    size_t i = 0;
    const cJSON *mean = NULL;
    cJSON_ArrayForEach(mean, list)
    {
        const char *why = member_text(mean, "why");
        const size_t measure = i / p->n_conditions % p->n_measures;
        const size_t condition = i++ % p->n_conditions;
        add_text(out, p->measures[measure].name);
        add_text(out, p->conditions[condition].name);
        add_factors(out, p, p->conditions[condition].levels, false);
        for (size_t k = 0; k < ARRAY_LEN(values); k++) {
            add_number(out, member_number(mean, values[k]));
        }
        add_text(out, why == NULL ? "" : why);
        strbuf_addc(out, '\n');
    }
}

/* A reading as the tables of the report have it. */
static void add_record(struct strbuf *out, const struct report_model *m, size_t measure,
                       size_t cell, struct arena *a)
{
    const struct plan_program *p = m->program;
    const struct measure_reading r = measure_read(a, m, measure, cell);
    const char *why = r.excluded ? "excluded" : r.why != NULL ? r.why : "no result";
    add_text(out, p->cells[cell].name);
    add_factors(out, p, p->cells[cell].levels, true);
    add_text(out, p->measures[measure].name);
    add_text(out, p->measures[measure].metric_text);
    add_number(out, r.excluded ? (double)NAN : r.score);
    add_text(out, r.bound == NULL ? "" : r.bound);
    add_number(out, r.n);
    add_number(out, r.se);
    add_text(out, isfinite(r.score) && !r.excluded ? "" : why);
    strbuf_addc(out, '\n');
}

static void add_records(struct strbuf *out, const struct report_model *m)
{
    static const char *const after[] = {"measure", "metric", "value", "bound", "n", "se", "why"};
    add_text(out, "cell");
    add_factors(out, m->program, NULL, true);
    add_names(out, after, ARRAY_LEN(after));
    strbuf_addc(out, '\n');
    for (size_t measure = 0; measure < m->program->n_measures; measure++) {
        struct arena arena;
        arena_init(&arena);
        for (size_t c = 0; c < m->program->n_cells; c++) {
            add_record(out, m, measure, c, &arena);
        }
        arena_release(&arena);
    }
}

static int write_table(const char *folder, const char *name, const struct strbuf *text,
                       struct err *err)
{
    char *path = path_join(folder, name);
    int rc = file_write_atomic(path, text->buf, text->len, 0644, err);
    free(path);
    return rc;
}

/* The means, or why there are none. */
static int write_means(const struct report_model *m, const char *folder, const char *out,
                       struct err *err)
{
    const struct instruments_input in = {.folder = folder,
                                         .program = m->program,
                                         .lock = m->lock,
                                         .verdict = m->verdict,
                                         .provenance = m->provenance,
                                         .amendments = m->amendments};
    cJSON *computed = instruments_compute_apart(&in, NULL);
    const char *why = member_text(computed, "why");
    struct strbuf text = STRBUF_INIT;
    add_means(&text, m->program, member(computed, "means"));
    int rc = why == NULL ? write_table(out, REPORT_MEANS_CSV, &text, err)
                         : err_set(err, ERR_OTHER, REPORT_MEANS_CSV ": %.200s", why);
    strbuf_release(&text);
    cJSON_Delete(computed);
    return rc;
}

int report_write_csv(const char *folder, const char *out, struct err *err)
{
    struct report_model model;
    int rc = report_model_read(&model, folder, err);
    if (rc == 0 && (rc = dir_make(out, 0755, err)) == 0) {
        struct strbuf text = STRBUF_INIT;
        add_records(&text, &model);
        rc = write_table(out, REPORT_RECORDS_CSV, &text, err);
        strbuf_release(&text);
    }
    if (rc == 0) {
        rc = write_means(&model, folder, out, err);
    }
    report_model_release(&model);
    return rc;
}
