/* Limitations that follow from the records: what is undetermined, what is near chance, and what
 * could be read while cells ran. Everything comes from the verdict's gates and records; a list
 * names the first few and counts the rest. */
#include <math.h>

#include "prereg/program/input_reads.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/measure_values.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/verdict_words.h"

#define NAMED_MAX ((size_t)6)

/* Nothing known clears its floor, and not everything is known. */
static void add_open_floor(struct doc *d, const struct report_model *m, size_t i,
                           const struct measure_tally *t, struct doc_list *list)
{
    struct arena *a = &d->arena;
    const char *name = m->program->measures[i].name;
    const char *reasons = measure_open_reasons(a, m, i);
    if (t->n_failed == 0) {
        doc_point(d, list,
                  "Whether any cell clears the floor of %s is not known: %s (%s). How far "
                  "its scores are from chance is not known either.",
                  name,
                  t->n_open == 1 ? "its one gate is undetermined"
                                 : arena_printf(a, "all its %zu gates are undetermined", t->n_open),
                  reasons);
        return;
    }
    doc_point(d, list,
              "No cell is known to clear the floor of %s: %s below it, %s undetermined "
              "(%s). Whether differences between conditions there are in the near-chance "
              "regime is not known.",
              name, fmt_plural(a, (int64_t)t->n_failed, "cell is", "cells are"),
              fmt_plural(a, (int64_t)t->n_open, "gate is", "gates are"), reasons);
}

/* A score below the floor cannot be read as a difference on the construct; one that is missing is
 * not below it. */
static void add_floors(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    const struct plan_program *p = m->program;
    struct arena *a = &d->arena;
    const char **silent = arena_array(a, p->n_measures + 1, sizeof(*silent));
    size_t n = 0;
    for (size_t i = 0; i < p->n_measures; i++) {
        struct measure_tally t = measure_count(a, m, i);
        if (!p->measures[i].has_floor || t.n_cleared > 0) {
            continue;
        }
        if (t.n_open > 0) {
            add_open_floor(d, m, i, &t, list);
        } else {
            silent[n++] = p->measures[i].name;
        }
    }
    if (n > 0) {
        doc_point(d, list,
                  "No cell clears the floor of %s: differences between conditions there "
                  "are in the near-chance regime and cannot be read as differences on the "
                  "construct.",
                  words_join(a, silent, n, " or "));
    }
}

/* What the exclusion budget covers is reported as lost, not as open. */
static bool is_open(const struct measure_reading *r)
{
    return !r->excluded && !(r->has_gate ? r->is_known : isfinite(r->score));
}

struct open_records {
    size_t n;
    const char *names[NAMED_MAX]; /* of the first */
};

/* Counts the open records of one measure and names the first of them. */
static void see_measure(struct arena *a, const struct report_model *m, size_t i,
                        struct open_records *open)
{
    for (size_t c = 0; c < m->program->n_cells; c++) {
        struct measure_reading r = measure_read(a, m, i, c);
        if (!is_open(&r)) {
            continue;
        }
        if (open->n < NAMED_MAX) {
            open->names[open->n] =
                arena_printf(a, "%s of %s (%s)", m->program->measures[i].name,
                             m->program->cells[c].name, r.why != NULL ? r.why : "no result");
        }
        open->n++;
    }
}

/* Counted measures are listed before the others. */
static void add_open(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    struct arena *a = &d->arena;
    const struct plan_program *p = m->program;
    struct open_records open = {0};
    for (size_t i = 0; i < 2 * p->n_measures; i++) {
        size_t measure = i % p->n_measures;
        if (p->measures[measure].counted == (i < p->n_measures)) {
            see_measure(a, m, measure, &open);
        }
    }
    if (open.n == 0) {
        return;
    }
    const size_t n_named = open.n < NAMED_MAX ? open.n : NAMED_MAX;
    const char *named = words_join(a, open.names, n_named, ", ");
    doc_point(d, list, "%s undetermined, and what rests on %s is open: %s%s.",
              fmt_plural(a, (int64_t)open.n, "record (a measure of a cell) or its gate is",
                         "records (a measure of a cell each) or their gates are"),
              open.n == 1 ? "it" : "them", named,
              open.n > n_named ? arena_printf(a, ", and %zu more", open.n - n_named) : "");
}

/* What could be read while cells ran, and yet decides the outcome. Nothing ran where records were
 * imported. */
static void add_unsealed(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    cJSON *names = open_reads(m->program);
    const size_t n = m->imported != NULL ? 0 : (size_t)cJSON_GetArraySize(names);
    if (n > 0) {
        const char **words = arena_array(&d->arena, n, sizeof(*words));
        for (size_t i = 0; i < n; i++) {
            words[i] = arena_strdup(&d->arena, cJSON_GetArrayItem(names, (int)i)->valuestring);
        }
        doc_point(d, list,
                  "The table reads %s, which was not sealed: its values could be read "
                  "while cells ran, and the run ended or amended by what they say.",
                  words_join(&d->arena, words, n, " and "));
    }
    cJSON_Delete(names);
}

/* In the order of their weight for the verdict. */
void limits_of_records(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    add_unsealed(d, m, list);
    add_open(d, m, list);
    add_floors(d, m, list);
}
