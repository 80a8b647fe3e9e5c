/*
 * Limitations that concern the apparatus: no reference measurement, checks that are not known to
 * hold, checks that were removed or changed after attempts. Nothing is added if every declared
 * check held unchanged.
 */
#include <string.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/report_apparatus.h"
#include "truthtable/report/sections/instrument_blocks.h"

#define WOULD_NOT_SHOW "a fault of the apparatus that shifts every score alike would not show."

/* Adds one limitation. */
static void limit(struct doc *d, struct doc_list *list, const char *text)
{
    (void)doc_item(d, list, NULL, text);
}

/* Checks on record as held. */
static size_t count_held(const struct report_model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->program->n_apparatus; i++) {
        const cJSON *check = report_check(m, m->program->apparatus[i].name);
        n += cJSON_IsTrue(member(check, "holds")) ? 1 : 0;
    }
    return n;
}

/* A fault of the apparatus that shifts every score alike shows in nothing but this. */
void limits_of_apparatus(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    struct arena *a = &d->arena;
    const size_t n = m->program->n_apparatus;
    const char *gone = report_apparatus_gone_words(a, m, NULL);
    const char *amended = report_apparatus_amended(a, m);
    if (gone != NULL && n == 0) {
        limit(d, list,
              arena_printf(a,
                           "No reference measurement of the apparatus supports these scores. "
                           "%s So " WOULD_NOT_SHOW,
                           gone));
        return;
    }
    if (n == 0) {
        limit(d, list,
              "No reference measurement of the apparatus was declared: a fault that shifts every "
              "score alike would not show.");
        return;
    }
    if (gone != NULL) {
        limit(d, list, gone);
    }
    if (amended != NULL) {
        limit(d, list,
              arena_printf(a,
                           "What an apparatus check requires was changed when it had been made: "
                           "that it holds was not laid down in advance. %s",
                           amended));
    }
    const size_t n_held = count_held(m);
    if (n_held < n) {
        limit(
            d, list,
            arena_printf(a, "%s declared, %zu of them on record as held: " WOULD_NOT_SHOW,
                         fmt_plural(a, (int64_t)n, "apparatus check was", "apparatus checks were"),
                         n_held));
    }
}
