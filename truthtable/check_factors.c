/*
 * Whether the levels of every factor make different tasks. Levels of a factor that no task reads
 * are the same computation under other names: a contrast between them compares noise, and
 * replicates among them have a spread of 0. What counts is what a task asks of its worker, its
 * resolved parameters: those of the stage, a level's own from `when`, and "$factor".
 *
 * The stages that count are those that a measure or a condition reads, and all that they come
 * after: an evaluation need not read a factor that its training reads.
 */
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "prereg/stage_set.h"
#include "truthtable/check.h"
#include "truthtable/rules.h"

struct reads {
    const struct program *p;
    struct stage_set stages; /* that count */
    struct diag *diag;
};

static struct stage_set stages_that_count(const struct rules *rules)
{
    const struct program *p = rules->program;
    struct stage_set set = {0};
    for (size_t m = 0; m < p->n_measures; m++) {
        stage_set_add(&set, p->measures[m].stage);
    }
    for (size_t f = 0; f < rules->facts.n; f++) {
        stage_set_add(&set, rules->facts.refs[f].stage);
    }
    for (size_t s = p->n_stages; s-- > 0;) { /* stages are in topological order */
        for (size_t i = 0; stage_set_has(&set, s) && i < p->stages[s].n_after; i++) {
            stage_set_add(&set, p->stages[s].after[i]);
        }
    }
    return set;
}

/* Whether a string "$factor" is anywhere below `v`. */
static bool names_factor(const cJSON *v, const char *factor)
{
    if (cJSON_IsString(v)) {
        return v->valuestring[0] == '$' && strcmp(v->valuestring + 1, factor) == 0;
    }
    const cJSON *m;
    cJSON_ArrayForEach(m, v)
    {
        if (names_factor(m, factor)) {
            return true;
        }
    }
    return false;
}

static bool when_replaces(const struct stage *s, const char *key)
{
    const cJSON *factor;
    cJSON_ArrayForEach(factor, s->when)
    {
        const cJSON *level;
        cJSON_ArrayForEach(level, factor)
        {
            if (json_member(level, key) != NULL) {
                return true;
            }
        }
    }
    return false;
}

/* Whether it takes the factor in every cell: a parameter that names it, and that no level replaces.
 */
static bool takes_always(const struct stage *s, const char *factor)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, s->params)
    {
        if (names_factor(m, factor) && !when_replaces(s, m->string)) {
            return true;
        }
    }
    return false;
}

static bool mentions(const struct stage *s, const char *factor)
{
    return json_member(s->when, factor) != NULL || names_factor(s->params, factor) ||
           names_factor(s->when, factor);
}

/* What the stages that count ask in a cell; only stages that mention the factor can tell its levels
 * apart. */
static struct digest asked_in(const struct reads *r, size_t factor, size_t cell)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t s = 0; s < r->p->n_stages; s++) {
        if (stage_set_has(&r->stages, s) &&
            mentions(&r->p->stages[s], r->p->factors[factor].name)) {
            struct err err;
            cJSON *params = program_task_params(r->p, s, cell);
            if (json_canonical(params, &text, &err) != 0) { /* what JSON cannot hold is no task */
                strbuf_addf(&text, "%zu", cell);
            }
            strbuf_addc(&text, '\n');
            cJSON_Delete(params);
        }
    }
    struct digest d = digest_bytes(text.buf, text.len);
    strbuf_release(&text);
    return d;
}

/* Cells are numbered with the first factor slowest: levels of one factor lie a stride apart. */
static size_t stride_of(const struct program *p, size_t factor)
{
    size_t stride = 1;
    for (size_t i = factor + 1; i < p->n_factors; i++) {
        stride *= p->factors[i].n_levels;
    }
    return stride;
}

/* The cell without the factor: "arch=dense, seed=1"; "" when there is no other. */
static void add_setting(struct strbuf *out, const struct program *p, size_t factor, size_t cell)
{
    for (size_t i = 0; i < p->n_factors; i++) {
        if (i != factor) {
            strbuf_addf(out, "%s%s=%s", out->len == 0 ? "" : ",", p->factors[i].name,
                        p->factors[i].levels[p->cells[cell].levels[i]].text);
        }
    }
}

struct level_asks {
    struct digest asked; /* at the present setting of the other factors */
    size_t group;        /* levels of one group were the same at every setting so far */
    size_t level;
};

static int by_asked(const void *a, const void *b)
{
    const struct level_asks *x = a;
    const struct level_asks *y = b;
    int order = memcmp(x->asked.bytes, y->asked.bytes, sizeof(x->asked.bytes));
    return order != 0 ? order : (x->level > y->level) - (x->level < y->level);
}

static int by_group(const void *a, const void *b)
{
    const struct level_asks *x = a;
    const struct level_asks *y = b;
    return x->group != y->group ? (x->group > y->group) - (x->group < y->group) : by_asked(a, b);
}

struct levels {
    size_t n;
    struct level_asks *items;
    bool same; /* two of them are the same at some setting: a, b and its first cell */
    size_t a;
    size_t b;
    size_t cell;
};

static void compare_at(const struct reads *r, size_t factor, size_t cell, struct levels *l)
{
    size_t stride = stride_of(r->p, factor);
    for (size_t i = 0; i < l->n; i++) {
        l->items[i].asked = asked_in(r, factor, cell + l->items[i].level * stride);
    }
    qsort(l->items, l->n, sizeof(*l->items), by_asked);
    for (size_t i = 1; i < l->n && !l->same; i++) {
        l->same = digest_equal(&l->items[i - 1].asked, &l->items[i].asked);
        l->a = l->items[i - 1].level;
        l->b = l->items[i].level;
        l->cell = cell;
    }
    qsort(l->items, l->n, sizeof(*l->items), by_group);
    size_t group = 0;
    size_t before = l->items[0].group;
    for (size_t i = 0; i < l->n; i++) {
        bool differs = l->items[i].group != before ||
                       (i > 0 && !digest_equal(&l->items[i - 1].asked, &l->items[i].asked));
        before = l->items[i].group;
        group += differs ? 1 : 0;
        l->items[i].group = group;
    }
}

static void refuse_unread(const struct reads *r, const struct factor *f)
{
    diag_add(r->diag, DIAG_ERROR, f->place.line, f->place.column,
             "factor.%s: no stage that a measure reads takes it: its %zu levels are the same tasks "
             "under other names; write NAME = \"$%s\" in the stage's params, or "
             "[stage.STAGE.when.%s]",
             f->name, f->n_levels, f->name, f->name);
}

static void refuse_pair(const struct reads *r, const struct factor *f, size_t a, size_t b)
{
    diag_add(r->diag, DIAG_ERROR, f->place.line, f->place.column,
             "factor.%s: levels \"%s\" and \"%s\" are the same tasks in every stage that a measure "
             "reads: nothing is compared between them",
             f->name, f->levels[a].text, f->levels[b].text);
}

/* Two levels that differ in some cells alone: replicates must differ in all, for an interval over
 * equal ones has no width; an arm may have no effect on another factor's level. */
static void report_partly(const struct reads *r, size_t factor, const struct levels *l)
{
    const struct factor *f = &r->p->factors[factor];
    struct strbuf setting = STRBUF_INIT;
    add_setting(&setting, r->p, factor, l->cell);
    diag_add(r->diag, f->replicate ? DIAG_ERROR : DIAG_WARNING, f->place.line, f->place.column,
             "factor.%s: levels \"%s\" and \"%s\" are the same tasks where %s%s", f->name,
             f->levels[l->a].text, f->levels[l->b].text, setting.buf,
             f->replicate ? ": such replicates have no spread" : "");
    strbuf_release(&setting);
}

static void compare_levels(const struct reads *r, size_t factor)
{
    const struct program *p = r->p;
    const struct factor *f = &p->factors[factor];
    struct levels l = {.n = f->n_levels, .items = xcalloc(f->n_levels, sizeof(*l.items))};
    bool refused = false;
    for (size_t i = 0; i < l.n; i++) {
        l.items[i].level = i;
    }
    for (size_t c = 0; c < p->n_cells; c++) {
        if (p->cells[c].levels[factor] == 0) {
            compare_at(r, factor, c, &l);
        }
    }
    for (size_t i = 1; i < l.n && !refused; i++) {
        refused = l.items[i - 1].group == l.items[i].group;
        if (refused) {
            refuse_pair(r, f, l.items[i - 1].level, l.items[i].level);
        }
    }
    if (!refused && l.same) {
        report_partly(r, factor, &l);
    }
    free(l.items);
}

static void compare_factor(const struct reads *r, size_t factor)
{
    const struct program *p = r->p;
    bool mentioned = false;
    bool always = false;
    for (size_t s = 0; s < p->n_stages; s++) {
        if (stage_set_has(&r->stages, s)) {
            mentioned = mentioned || mentions(&p->stages[s], p->factors[factor].name);
            always = always || takes_always(&p->stages[s], p->factors[factor].name);
        }
    }
    if (p->factors[factor].n_levels < 2 || always) {
        return;
    }
    if (mentioned) {
        compare_levels(r, factor);
    } else {
        refuse_unread(r, &p->factors[factor]);
    }
}

void check_factors(const struct program *p, struct diag *diag)
{
    struct rules rules;
    struct diag of_conditions; /* reported where they are compiled for their own sake */
    struct err err;
    diag_init(&of_conditions, p->path);
    if (rules_compile(p, &rules, &of_conditions, &err) == 0) {
        struct reads r = {.p = p, .stages = stages_that_count(&rules), .diag = diag};
        for (size_t f = 0; f < p->n_factors && !stage_set_is_empty(&r.stages); f++) {
            compare_factor(&r, f);
        }
    }
    rules_release(&rules);
    diag_release(&of_conditions);
}
