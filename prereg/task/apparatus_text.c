/* The sentence about one result of an apparatus check: the journal keeps it, receipts repeat it. */
#include "prereg/task/apparatus_text.h"

#include <math.h>
#include <stdio.h>

void apparatus_text(const struct plan_apparatus *a, double value, bool holds, const char *why,
                    char text[APPARATUS_TEXT_SIZE])
{
    if (isnan(value)) {
        (void)snprintf(text, APPARATUS_TEXT_SIZE,
                       "%s: expected %.10g within %.10g, and it was not measured: %.100s",
                       a->metric_text, a->value, a->within, why);
        return;
    }
    (void)snprintf(text, APPARATUS_TEXT_SIZE, "%s: expected %.10g within %.10g, got %.10g%s",
                   a->metric_text, a->value, a->within, value, holds ? ": it holds" : "");
}
