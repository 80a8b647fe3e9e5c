/*
 * Reads each voice from its own figures by the rule that its section of the report states: an
 * interval that excludes 0, a Bayes factor beyond its bounds under every prior, a coefficient
 * beyond two standard errors in a fit that is not singular, the rung of benchmarks. A voice with
 * figures that are undetermined is not counted as a voice for "no difference".
 */
#include "truthtable/report/agreement.h"

#include <math.h>
#include <string.h>

#include "truthtable/report/verdict_words.h"

/* How many figures show a difference, show none, or cannot be read. */
struct voice_tally {
    size_t shows;
    size_t none;
    size_t unreadable;
};

/* One difference suffices; without one, a figure that cannot be read leaves the question open. */
static enum voice_says tally_says(const struct voice_tally *t)
{
    if (t->shows > 0) {
        return SAYS_DIFFERENCE;
    }
    return t->unreadable > 0 || t->none == 0 ? SAYS_UNREADABLE : SAYS_NONE;
}

/* Counts one figure: 1 shows, 0 shows none, -1 cannot be read. */
static void tally_add(struct voice_tally *t, int shows)
{
    size_t *const to = shows > 0 ? &t->shows : shows == 0 ? &t->none : &t->unreadable;
    (*to)++;
}

static const char *tally_words(struct arena *a, const struct voice_tally *t, const char *of)
{
    return arena_printf(
        a, "%zu of %zu %s show a difference%s", t->shows, t->shows + t->none + t->unreadable, of,
        t->unreadable == 0 ? "" : arena_printf(a, ", %zu left open", t->unreadable));
}

static void add_voice(struct agreement *g, struct voice v)
{
    if (g->n < VOICES_MAX) {
        g->voices[g->n++] = v;
    }
}

/* An element of a list by one of its members; NULL. */
static const cJSON *find_by(const cJSON *list, const char *key, const char *value)
{
    const cJSON *one = NULL;
    cJSON_ArrayForEach(one, list)
    {
        const char *has = member_text(one, key);
        if (has != NULL && strcmp(has, value) == 0) {
            return one;
        }
    }
    return NULL;
}

/* The t intervals of the counted measures. */
static void add_intervals(struct agreement *g, struct arena *a, const struct report_model *m)
{
    const cJSON *contrast = find_by(member(m->verdict, "contrasts"), "name", g->contrast);
    const cJSON *one = NULL;
    struct voice_tally t = {0};
    cJSON_ArrayForEach(one, member(contrast, "measures"))
    {
        if (cJSON_IsTrue(member(one, "counted"))) {
            const double low = member_number(one, "ci_low");
            const double high = member_number(one, "ci_high");
            tally_add(&t, !isfinite(low) || !isfinite(high) ? -1 : low > 0 || high < 0);
        }
    }
    add_voice(g, (struct voice){"Intervals over replicates", tally_says(&t),
                                tally_words(a, &t, "counted measures")});
}

/* Only a reading that no prior changes counts. */
static void add_bayes(struct agreement *g, struct arena *a, const cJSON *instrument)
{
    const cJSON *one = NULL;
    struct voice_tally t = {0};
    cJSON_ArrayForEach(one, member(instrument, "measures"))
    {
        const char *reading = words_or_empty(one, "reading");
        tally_add(&t, strcmp(reading, "against the null") == 0 ? 1
                      : strcmp(reading, "for the null") == 0   ? 0
                                                               : -1);
    }
    add_voice(g, (struct voice){"Bayes factors", tally_says(&t),
                                tally_words(a, &t, "measures, whatever the prior,")});
}

/* Whether a fit has a coefficient of the factor beyond two standard errors; -1 where the fit is
 * singular or has none. */
static int fit_shows(const cJSON *instrument, const cJSON *fit, const char *factor)
{
    const cJSON *term = NULL;
    int shows = -1;
    if (!cJSON_IsFalse(member(fit, "singular"))) {
        return -1;
    }
    cJSON_ArrayForEach(term, member(fit, "terms"))
    {
        const cJSON *column =
            find_by(member(instrument, "columns"), "name", words_or_empty(term, "name"));
        const double beta = member_number(term, "beta");
        const double se = member_number(term, "se");
        if (strcmp(words_or_empty(column, "of"), factor) == 0 && isfinite(beta) && isfinite(se)) {
            const int beyond = fabs(beta) > 2 * se;
            shows = beyond > shows ? beyond : shows;
        }
    }
    return shows;
}

static void add_mixed(struct agreement *g, struct arena *a, const cJSON *instrument,
                      const char *factor)
{
    const cJSON *fit = NULL;
    struct voice_tally t = {0};
    size_t singular = 0;
    cJSON_ArrayForEach(fit, member(instrument, "fits"))
    {
        singular += cJSON_IsTrue(member(fit, "singular")) ? 1 : 0;
        tally_add(&t, fit_shows(instrument, fit, factor));
    }
    const char *words = tally_words(a, &t, "fits");
    if (singular > 0) {
        words = arena_printf(a, "%s (%zu singular)", words, singular);
    }
    add_voice(g, (struct voice){"Mixed model", tally_says(&t), words});
}

/* Speaks for its rung of benchmarks, for the other voices are about these; the rung of loss is
 * named beside it. */
static void add_connector(struct agreement *g, struct arena *a, const cJSON *instrument)
{
    const cJSON *rung = member(instrument, "benchmarks");
    const cJSON *loss = member(member(instrument, "loss"), "shows");
    const cJSON *shows = member(rung, "shows");
    const char *gap = cJSON_IsTrue(loss)    ? "the loss shows a gap"
                      : cJSON_IsFalse(loss) ? "the loss shows no gap"
                                            : "the gap in loss is undetermined";
    const bool clears = !cJSON_IsFalse(member(rung, "clears_any"));
    add_voice(g,
              (struct voice){"Connector, rung of benchmarks",
                             cJSON_IsTrue(shows)    ? SAYS_DIFFERENCE
                             : cJSON_IsFalse(shows) ? SAYS_NONE
                                                    : SAYS_UNREADABLE,
                             arena_printf(a, "%s%s%s%s",
                                          clears ? ""
                                                 : "no benchmark clears its "
                                                   "floor; ",
                                          gap, member_text(instrument, "case") == NULL ? "" : ": ",
                                          words_or_empty(instrument, "case"))});
}

/* The contrast to speak of, NULL without one. */
static const char *contrast_of(const struct report_model *m)
{
    const struct plan_program *p = m->program;
    if (p->binding_counter != INDEX_NONE) {
        return p->contrasts[p->counters[p->binding_counter].contrast].name;
    }
    const cJSON *one = NULL;
    cJSON_ArrayForEach(one, member(m->instruments, "instruments"))
    {
        const char *contrast = member_text(one, "contrast");
        if (contrast != NULL && program_find_contrast(p, contrast) != INDEX_NONE) {
            return contrast;
        }
    }
    return NULL;
}

/* What is for discussion only does not take part; nor does an instrument that was not computed. */
static void add_instrument(struct agreement *g, struct arena *a, const cJSON *instrument,
                           const char *factor)
{
    const char *kind = words_or_empty(instrument, "kind");
    const char *contrast = member_text(instrument, "contrast");
    if (cJSON_IsTrue(member(instrument, "discussion_only")) ||
        member_text(instrument, "why") != NULL ||
        (contrast != NULL && strcmp(contrast, g->contrast) != 0)) {
        return;
    }
    if (strcmp(kind, "bayes") == 0) {
        add_bayes(g, a, instrument);
    } else if (strcmp(kind, "connector") == 0) {
        add_connector(g, a, instrument);
    } else if (strcmp(kind, "mixed") == 0 && factor != NULL &&
               find_by(member(instrument, "columns"), "of", factor) != NULL) {
        add_mixed(g, a, instrument, factor);
    }
}

/* What the voices that can be read have in common. */
static const char *sentence_of(struct arena *a, const struct agreement *g)
{
    static const char *const said[] = {
        [SAYS_NONE] = "no difference", [SAYS_DIFFERENCE] = "a difference"};
    const char *names[3][VOICES_MAX];
    size_t n[3] = {0};
    for (size_t i = 0; i < g->n; i++) {
        const enum voice_says s = g->voices[i].says;
        names[s][n[s]++] = g->voices[i].who;
    }
    const size_t readable = n[SAYS_NONE] + n[SAYS_DIFFERENCE];
    if (g->n < 2) {
        return NULL;
    }
    if (readable < 2) {
        return arena_printf(a, "On %s, fewer than two can be read, so there is nothing to compare.",
                            g->contrast);
    }
    const char *rest =
        n[SAYS_UNREADABLE] == 0
            ? ""
            : arena_printf(a, " Not to be read: %s.",
                           words_join(a, names[SAYS_UNREADABLE], n[SAYS_UNREADABLE], ", "));
    if (n[SAYS_NONE] == 0 || n[SAYS_DIFFERENCE] == 0) {
        return arena_printf(a, "On %s, %s that can be read agree: %s.%s", g->contrast,
                            readable == 2 ? "both" : arena_printf(a, "all %zu", readable),
                            said[n[SAYS_NONE] == 0 ? SAYS_DIFFERENCE : SAYS_NONE], rest);
    }
    return arena_printf(a, "On %s, they do not agree. A difference: %s. No difference: %s.%s",
                        g->contrast,
                        words_join(a, names[SAYS_DIFFERENCE], n[SAYS_DIFFERENCE], ", "),
                        words_join(a, names[SAYS_NONE], n[SAYS_NONE], ", "), rest);
}

struct agreement agreement_of(struct arena *a, const struct report_model *m)
{
    const struct plan_program *p = m->program;
    struct agreement g = {.contrast = contrast_of(m)};
    if (g.contrast == NULL) {
        return g;
    }
    const struct plan_contrast *k = &p->contrasts[program_find_contrast(p, g.contrast)];
    const char *factor = k->is_difference ? NULL : p->factors[k->factor].name;
    const cJSON *instrument = NULL;
    add_intervals(&g, a, m);
    cJSON_ArrayForEach(instrument, member(m->instruments, "instruments"))
    {
        add_instrument(&g, a, instrument, factor);
    }
    g.sentence = sentence_of(a, &g);
    return g;
}
