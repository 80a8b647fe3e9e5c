/*
 * Limitations that follow from instruments: those that are undetermined, cells that one leaves out,
 * anchors from another apparatus, and differences below what the design could show.
 */
#include <math.h>
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/instrument_blocks.h"
#include "truthtable/report/verdict_words.h"

/* Observed differences that are smaller than what the design shows with its stated power. */
static void add_power(struct doc *d, const cJSON *detectable, struct doc_list *list)
{
    struct arena *a = &d->arena;
    const char *names = "";
    const cJSON *contrast = NULL;
    cJSON_ArrayForEach(contrast, member(detectable, "contrasts"))
    {
        const cJSON *measure = NULL;
        cJSON_ArrayForEach(measure, member(contrast, "measures"))
        {
            double observed = fabs(member_number(measure, "observed"));
            double needed = fmax(member_number(member(measure, "by_items"), "difference"),
                                 member_number(member(measure, "by_replicates"), "difference"));
            if (observed < needed) {
                names = arena_printf(
                    a, "%s%s%s on %s (%s, needs %s)", names, names[0] == '\0' ? "" : ", ",
                    words_member(contrast, "contrast"), words_member(measure, "measure"),
                    fmt_fixed(a, observed, 4), fmt_fixed(a, needed, 4));
            }
        }
    }
    if (names[0] != '\0') {
        doc_point(d, list,
                  "Low power: these observed differences are smaller than what this "
                  "design shows with 80 %% power, so that none seen is not none there: "
                  "%s.",
                  names);
    }
}

/* At most one limitation for each instrument, by its kind. */
static void add_one(struct doc *d, const cJSON *instrument, struct doc_list *list)
{
    struct arena *a = &d->arena;
    const char *kind = words_member(instrument, "kind");
    const char *name = words_member(instrument, "name");
    const char *why = member_text(instrument, "why");
    const char *confines = member_text(instrument, "limit");
    if (why != NULL) {
        doc_point(d, list, "The instrument %s is undetermined: %s.", name, why);
    } else if (strcmp(kind, "course") == 0 && member_text(instrument, "course") == NULL) {
        doc_point(d, list, "The course %s is undetermined: %s.", name,
                  words_member(member(instrument, "slope"), "why"));
    } else if (strcmp(kind, "router") == 0 && member_number(instrument, "not_done") > 0) {
        doc_point(d, list, "The instrument %s leaves out %s of the cells: their %s is not done.",
                  name, words_count(a, instrument, "not_done"), words_member(instrument, "stage"));
    } else if (strcmp(kind, "anchors") == 0) {
        doc_point(d, list,
                  "The anchors (%s) were measured elsewhere, with another apparatus or "
                  "version of it: a difference from them is one of apparatus too.",
                  words_member(instrument, "source"));
    } else if (strcmp(kind, "connector") == 0 && confines != NULL) {
        doc_point(d, list, "%s",
                  strcmp(name, kind) == 0
                      ? arena_printf(a, "The connector: %s", confines)
                      : arena_printf(a, "The connector %s: %s", name, confines));
    } else if (strcmp(kind, "detectable") == 0) {
        add_power(d, instrument, list);
    }
}

/* Instruments that were declared but could not be shown are a limitation, too. */
void limits_of_instruments(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    const struct plan_program *p = m->program;
    const char *why =
        m->instruments == NULL ? m->instruments_why : member_text(m->instruments, "why");
    if (why != NULL && p->n_instruments + p->n_forecasts > 0) {
        doc_point(d, list,
                  "%s and %s declared and are not shown: %s. The verdict does not depend on them.",
                  fmt_plural(&d->arena, (int64_t)p->n_instruments, "instrument", "instruments"),
                  fmt_plural(&d->arena, (int64_t)p->n_forecasts, "forecast were", "forecasts were"),
                  why);
    }
    const cJSON *instrument = NULL;
    cJSON_ArrayForEach(instrument, member(m->instruments, "instruments"))
    {
        add_one(d, instrument, list);
    }
}
