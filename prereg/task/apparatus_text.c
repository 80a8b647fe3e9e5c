/* Whether one result of an apparatus check holds, and the sentence about it, which the journal
 * keeps and receipts repeat. */
#include "prereg/task/apparatus_text.h"

#include <math.h>
#include <stdio.h>

static bool is_near(double value, double other, double within, double rounding)
{
    const double slack = rounding * fmax(1.0, fmax(fabs(value), fabs(other)));
    return fabs(value - other) <= within + slack;
}

/* A tolerance of 0 between the two scores means the same number, without rounding. */
bool apparatus_score_holds(const struct plan_apparatus *a, const struct apparatus_score *score,
                           double rounding)
{
    return !isnan(score->value) && is_near(score->value, a->value, a->within, rounding) &&
           (isnan(score->first) ||
            is_near(score->value, score->first, a->again, a->again > 0 ? rounding : 0));
}

/* ", and 0.65 as the first time"; nothing of a first run. */
static void first_text(const struct plan_apparatus *a, double first, char out[static 80])
{
    out[0] = '\0';
    if (!isnan(first) && a->again > 0) {
        (void)snprintf(out, 80, ", and %.10g within %.10g as the first time", first, a->again);
    } else if (!isnan(first)) {
        (void)snprintf(out, 80, ", and %.10g as the first time", first);
    }
}

void apparatus_text(const struct plan_apparatus *a, const struct apparatus_score *score, bool holds,
                    char text[APPARATUS_TEXT_SIZE])
{
    char first[80];
    first_text(a, score->first, first);
    if (isnan(score->value)) {
        (void)snprintf(text, APPARATUS_TEXT_SIZE,
                       "%s: expected %.10g within %.10g%s, and it was not measured: %.100s",
                       a->metric_text, a->value, a->within, first,
                       score->why == NULL ? "" : score->why);
        return;
    }
    (void)snprintf(text, APPARATUS_TEXT_SIZE, "%s: expected %.10g within %.10g%s, got %.10g%s",
                   a->metric_text, a->value, a->within, first, score->value,
                   holds ? ": it holds" : "");
}
