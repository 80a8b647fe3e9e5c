/*
 * Lays out cells by condition and by contrast. Cells are numbered with the first factor slowest, so
 * the partner of a cell in a contrast is a constant number of cells away: (level b - level a) times
 * the stride of the contrast's factor. That number may be negative and is kept modulo SIZE_MAX + 1.
 * A difference of contrasts has no cells of its own and uses the settings of its first part.
 */
#include "truthtable/condition/cell_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/xalloc.h"

size_t layout_cell(const struct layout *l, size_t condition, size_t replicate)
{
    return l->cells[condition * l->n_replicates + replicate];
}

size_t layout_pair_a(const struct layout *l, size_t contrast, size_t setting, size_t replicate)
{
    return layout_cell(l, l->contrasts[contrast].conditions[setting], replicate);
}

size_t layout_pair_b(const struct layout *l, size_t contrast, size_t setting, size_t replicate)
{
    return layout_pair_a(l, contrast, setting, replicate) + l->contrasts[contrast].shift;
}

/* Sorts cells into conditions, in the program's order; the r-th cell of each condition has the same
 * replicate levels. */
static void lay_cells(struct layout *l, const struct plan_program *p, struct arena *arena)
{
    l->n_replicates = 1;
    for (size_t f = 0; f < p->n_factors; f++) {
        l->n_replicates *= p->factors[f].replicate ? p->factors[f].n_levels : 1;
    }
    size_t *cells = arena_array(arena, p->n_conditions * l->n_replicates, sizeof(*cells));
    size_t *filled = xcalloc(p->n_conditions, sizeof(*filled));
    for (size_t c = 0; c < p->n_cells; c++) {
        size_t condition = p->cells[c].condition;
        cells[condition * l->n_replicates + filled[condition]++] = c;
    }
    free(filled);
    l->cells = cells;
}

/* How far apart two cells are whose levels differ by one in this factor alone. */
static size_t stride_of(const struct plan_program *p, size_t factor)
{
    size_t stride = 1;
    for (size_t f = factor + 1; f < p->n_factors; f++) {
        stride *= p->factors[f].n_levels;
    }
    return stride;
}

/* Whether `where` fixes the factor to one level. */
static bool is_pinned(const struct plan_contrast *k, size_t factor)
{
    for (size_t i = 0; i < k->n_where; i++) {
        if (k->where[i].factor == factor) {
            return true;
        }
    }
    return false;
}

/* Free factors are those whose levels make the settings of a contrast: not compared, not pinned,
 * not replicates. */
static bool is_free(const struct plan_program *p, const struct plan_contrast *k, size_t factor)
{
    return factor != k->factor && !p->factors[factor].replicate && !is_pinned(k, factor);
}

/* Whether a condition is in the first arm: level a of the factor, and every pinned level. */
static bool in_arm_a(const struct plan_contrast *k, const struct plan_condition *c)
{
    bool in = c->levels[k->factor] == k->level_a;
    for (size_t i = 0; i < k->n_where; i++) {
        in = in && c->levels[k->where[i].factor] == k->where[i].level;
    }
    return in;
}

/* The levels of the free factors, "lr=0.002"; "all" if there is none. */
static const char *setting_name(const struct plan_program *p, const struct plan_contrast *k,
                                const struct plan_condition *c, struct arena *arena)
{
    struct strbuf name = STRBUF_INIT;
    for (size_t f = 0; f < p->n_factors; f++) {
        if (is_free(p, k, f)) {
            strbuf_addf(&name, "%s%s=%s", name.len > 0 ? "," : "", p->factors[f].name,
                        p->factors[f].levels[c->levels[f]].text);
        }
    }
    const char *kept = arena_strdup(arena, name.len > 0 ? name.buf : "all");
    strbuf_release(&name);
    return kept;
}

/* The settings of a contrast, one for each condition of its first arm. */
static void lay_contrast(struct contrast_layout *cl, const struct plan_program *p,
                         const struct plan_contrast *k, struct arena *arena)
{
    size_t *conditions = arena_array(arena, p->n_conditions, sizeof(*conditions));
    cl->names = arena_array(arena, p->n_conditions, sizeof(*cl->names));
    for (size_t i = 0; i < p->n_conditions; i++) {
        if (in_arm_a(k, &p->conditions[i])) {
            cl->names[cl->n_settings] = setting_name(p, k, &p->conditions[i], arena);
            conditions[cl->n_settings++] = i;
        }
    }
    cl->conditions = conditions;
    cl->shift = (k->level_b - k->level_a) * stride_of(p, k->factor);
}

static bool same_free_factors(const struct plan_program *p, const struct plan_contrast *a,
                              const struct plan_contrast *b)
{
    for (size_t f = 0; f < p->n_factors; f++) {
        if (is_free(p, a, f) != is_free(p, b, f)) {
            return false;
        }
    }
    return true;
}

/* Both parts must have the same settings, or their differences could not be subtracted pair by
 * pair. */
static void lay_difference(struct layout *l, const struct plan_program *p, size_t index,
                           struct diag *diag)
{
    const struct plan_contrast *k = &p->contrasts[index];
    const struct contrast_layout *of = &l->contrasts[k->of];
    if (!same_free_factors(p, &p->contrasts[k->of], &p->contrasts[k->minus]) ||
        of->n_settings != l->contrasts[k->minus].n_settings) {
        diag_add(diag, DIAG_ERROR, k->place.line, k->place.column,
                 "contrast \"%s\": \"%s\" and \"%s\" do not have the same settings", k->name,
                 p->contrasts[k->of].name, p->contrasts[k->minus].name);
        return;
    }
    l->contrasts[index].n_settings = of->n_settings;
    l->contrasts[index].names = of->names;
}

/* Differences come second, because they copy the settings of their parts. */
void layout_init(struct layout *l, const struct plan_program *p, struct arena *arena,
                 struct diag *diag)
{
    *l = (struct layout){0};
    lay_cells(l, p, arena);
    l->contrasts = arena_array(arena, p->n_contrasts, sizeof(*l->contrasts));
    for (size_t k = 0; k < p->n_contrasts; k++) {
        if (!p->contrasts[k].is_difference) {
            lay_contrast(&l->contrasts[k], p, &p->contrasts[k], arena);
        }
    }
    for (size_t k = 0; k < p->n_contrasts; k++) {
        if (p->contrasts[k].is_difference) {
            lay_difference(l, p, k, diag);
        }
    }
}
