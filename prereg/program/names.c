/* Finds names of every kind in the same way: through struct names, which relies on the name being
 * the first member of each struct. */
#include "prereg/program/names.h"

#include <string.h>

/* Copied, because the item's type is not known here. */
const char *names_at(struct names names, size_t i)
{
    const char *name;
    memcpy(&name, (const char *)names.items + i * names.size, sizeof(name));
    return name;
}

size_t names_find(struct names names, const char *name)
{
    for (size_t i = 0; i < names.n; i++) {
        if (strcmp(names_at(names, i), name) == 0) {
            return i;
        }
    }
    return INDEX_NONE;
}

struct names names_factors(const struct plan_program *p)
{
    return (struct names){"factor", p->factors, p->n_factors, sizeof(*p->factors)};
}

struct names names_levels(const struct plan_factor *f)
{
    return (struct names){"level", f->levels, f->n_levels, sizeof(*f->levels)};
}

struct names names_stages(const struct plan_program *p)
{
    return (struct names){"stage", p->stages, p->n_stages, sizeof(*p->stages)};
}

struct names names_measures(const struct plan_program *p)
{
    return (struct names){"measure", p->measures, p->n_measures, sizeof(*p->measures)};
}

struct names names_contrasts(const struct plan_program *p)
{
    return (struct names){"contrast", p->contrasts, p->n_contrasts, sizeof(*p->contrasts)};
}

struct names names_inputs(const struct plan_program *p)
{
    return (struct names){"input", p->inputs, p->n_inputs, sizeof(*p->inputs)};
}

struct names names_input_levels(const struct plan_input *in)
{
    return (struct names){"level", in->levels, in->n_levels, sizeof(*in->levels)};
}

struct names names_outcomes(const struct plan_program *p)
{
    return (struct names){"outcome", p->outcomes, p->n_outcomes, sizeof(*p->outcomes)};
}
