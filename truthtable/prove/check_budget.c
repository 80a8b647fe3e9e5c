/*
 * The data budget: how often each stage passes over each source of its data, as its worker
 * describes it (the facts "passes:SOURCE" and "data_tokens:SOURCE"). Up to about four passes,
 * repeated text teaches nearly as much as new text (Muennighoff et al., 2023). Beyond that a run
 * measures memorisation too, and arms that repeat their data unequally differ in more than their
 * design says.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "prereg/task/describe.h"
#include "truthtable/prove/check_parts.h"

#define PASSES_MOST 4.0
#define PASSES_FACT "passes:"
#define TOKENS_FACT "data_tokens:"
#define SOURCES_MAX ((size_t)64)

/* Where a source is passed over most. */
struct most_passed {
    const char *source; /* borrowed from what the workers describe */
    double passes;
    size_t condition;
};

/* The sources of one stage. */
struct stage_budget {
    struct most_passed sources[SOURCES_MAX];
    size_t n;
};

/* Finds or adds a source; NULL beyond SOURCES_MAX. */
static struct most_passed *find_source(struct stage_budget *b, const char *source)
{
    for (size_t i = 0; i < b->n; i++) {
        if (strcmp(b->sources[i].source, source) == 0) {
            return &b->sources[i];
        }
    }
    if (b->n == SOURCES_MAX) {
        return NULL;
    }
    b->sources[b->n] = (struct most_passed){.source = source};
    return &b->sources[b->n++];
}

/* Keeps a condition where it passes over a source more often than those before it. */
static void see_condition(struct stage_budget *b, const cJSON *answer, size_t condition)
{
    const cJSON *fact = NULL;
    cJSON_ArrayForEach(fact, json_member(answer, "facts"))
    {
        if (fact->string == NULL || strncmp(fact->string, PASSES_FACT, strlen(PASSES_FACT)) != 0 ||
            !cJSON_IsNumber(fact)) {
            continue;
        }
        struct most_passed *m = find_source(b, fact->string + strlen(PASSES_FACT));
        if (m != NULL && fact->valuedouble > m->passes) {
            m->passes = fact->valuedouble;
            m->condition = condition;
        }
    }
}

/* One warning for a source, with the condition that repeats it most. */
static void warn_passes(const struct plan_program *p, const cJSON *describe, size_t stage,
                        const struct most_passed *m, struct diag *diag)
{
    char name[160];
    char tokens[64] = "";
    double n = 0;
    (void)snprintf(name, sizeof(name), TOKENS_FACT "%s", m->source);
    if (describe_fact(describe_find(describe, p, m->condition, stage), name, &n)) {
        (void)snprintf(tokens, sizeof(tokens), " of about %.3g tokens", n);
    }
    diag_add(diag, DIAG_WARNING, p->stages[stage].place.line, p->stages[stage].place.column,
             "stage.%s: %s passes %.3g times over \"%.60s\"%s: beyond %.0f passes, repeated text "
             "teaches less than new text; give it more data or a shorter horizon",
             p->stages[stage].name, p->conditions[m->condition].name, m->passes, m->source, tokens,
             PASSES_MOST);
}

/* With [scope], what differs must be declared there, and check_scope() says so. */
static void warn_arms(const struct check_report *r, struct diag *diag)
{
    const struct fixed_difference *d = &r->differences[FIXED_PASSES];
    if (r->program->scope.declared || !d->differs) {
        return;
    }
    const struct plan_contrast *k = &r->program->contrasts[d->contrast];
    diag_add(
        diag, DIAG_WARNING, k->place.line, k->place.column,
        "contrast.%s: one arm passes over its data %.3g times as often as the other, which can "
        "explain a difference between them; declare it as a confound in [scope], or hold it "
        "fixed",
        k->name, d->ratio);
}

void check_budget(const struct check_report *r, const cJSON *describe, struct diag *diag)
{
    const struct plan_program *p = r->program;
    for (size_t s = 0; describe != NULL && s < p->n_stages; s++) {
        struct stage_budget b = {.n = 0};
        for (size_t c = 0; c < p->n_conditions; c++) {
            see_condition(&b, describe_find(describe, p, c, s), c);
        }
        for (size_t i = 0; i < b.n; i++) {
            if (b.sources[i].passes > PASSES_MOST) {
                warn_passes(p, describe, s, &b.sources[i], diag);
            }
        }
    }
    warn_arms(r, diag);
}
