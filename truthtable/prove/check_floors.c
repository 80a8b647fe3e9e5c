/*
 * Floors against chance, and chance against what the worker says of its items. A floor within two
 * binomial standard errors of chance is cleared by guessing often enough to matter; a chance that
 * is not that of the items makes every figure of "above chance" wrong.
 */
#include <math.h>
#include <string.h>

#include "base/math/elementary.h"
#include "prereg/task/describe.h"
#include "truthtable/condition/stats.h"
#include "truthtable/prove/check.h"

#define NEAR_SE     2.0
#define SAME_CHANCE 5e-3

/* Uniform guessing over the choices of the items, as a worker says at the first condition that is
 * known; NaN: not said, or the metric is not a share of right choices. */
static double described_chance(const struct plan_program *p, const cJSON *describe,
                               const struct plan_measure *m)
{
    double chance = (double)NAN;
    bool of_choices = strcmp(m->metric, "acc") == 0 || strcmp(m->metric, "acc_norm") == 0;
    for (size_t c = 0; describe != NULL && of_choices && c < p->n_conditions; c++) {
        if (describe_fact(describe_find(describe, p, c, m->stage), "chance", &chance)) {
            return chance;
        }
    }
    return (double)NAN;
}

/* Warns if the plan's chance differs from guessing among the choices; 0.005 allows for a chance
 * written with two digits. */
static void check_chance(const struct plan_measure *m, double said, struct diag *diag)
{
    if (m->has_chance && fabs(m->chance - said) > SAME_CHANCE) {
        diag_add(diag, DIAG_WARNING, m->place.line, m->place.column,
                 "measure.%s: chance = %.15g, and guessing among the choices of its items gives "
                 "%.4g",
                 m->name, m->chance, said);
    }
}

/* The probability in the message is the normal tail above the floor, for a cell that guesses. */
static void check_floor(const struct plan_measure *m, double chance, struct diag *diag)
{
    const double n = m->has_items ? (double)m->items : (double)NAN;
    const double above = stat_floor_above_chance(m->floor, chance, n);
    const double wanted = chance + NEAR_SE * sqrt(chance * (1 - chance) / n);
    if (m->floor <= chance) {
        diag_add(diag, DIAG_WARNING, m->place.line, m->place.column,
                 "measure.%s: the floor %s is not above chance, %.4g: guessing clears it", m->name,
                 m->floor_text, chance);
    } else if (above <= NEAR_SE) {
        diag_add(diag, DIAG_WARNING, m->place.line, m->place.column,
                 "measure.%s: the floor %s is %.2f standard errors above chance (%.4g on %lld "
                 "items): a guessing cell clears it with probability %.2g; %.0f standard errors "
                 "are %.4g",
                 m->name, m->floor_text, above, chance, (long long)m->items,
                 elementary_erfc(above / sqrt(2)) / 2, NEAR_SE, wanted);
    }
}

/* The plan's own chance takes precedence over the described one. */
void check_floors(const struct plan_program *p, const cJSON *describe, struct diag *diag)
{
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        const double said = described_chance(p, describe, m);
        if (isfinite(said)) {
            check_chance(m, said, diag);
        }
        const double chance = m->has_chance ? m->chance : said;
        if (m->has_floor && isfinite(chance)) {
            check_floor(m, chance, diag);
        }
    }
}
