/*
 * Prints a compiled condition in a canonical form, and compares two trees. The form is fully
 * parenthesized and spells out every name, so equal trees print equally and the text parses back to
 * the same tree. The prover and the effects use cond_same() to recognize one quantity in several
 * conditions.
 */
#include "base/json/json.h"
#include "truthtable/condition/condition.h"

/* The operands in parentheses, separated by the operator. */
static void print_joined(const struct cond *c, const char *between, const struct plan_program *p,
                         const struct fact_table *facts, struct strbuf *out)
{
    strbuf_addc(out, '(');
    for (size_t i = 0; i < c->n_kids; i++) {
        strbuf_adds(out, i == 0 ? "" : between);
        cond_print(c->kids[i], p, facts, out);
    }
    strbuf_addc(out, ')');
}

/* A function or prefix operator: its name and the operands in parentheses. */
static void print_call(const struct cond *c, const char *name, const struct plan_program *p,
                       const struct fact_table *facts, struct strbuf *out)
{
    strbuf_adds(out, name);
    print_joined(c, ", ", p, facts, out);
}

/* The shortest text that reads back as the same double. */
static void print_number(double v, struct strbuf *out)
{
    char text[JSON_NUMBER_MAX];
    json_number_text(v, text);
    strbuf_adds(out, text);
}

/* A chain keeps its links in the order written: a < b <= c. */
static void print_chain(const struct cond *c, const struct plan_program *p,
                        const struct fact_table *facts, struct strbuf *out)
{
    static const char *const relops[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    for (size_t i = 0; i < c->n_kids; i++) {
        strbuf_adds(out, i == 0 ? "" : relops[c->ops[i - 1]]);
        cond_print(c->kids[i], p, facts, out);
    }
}

/* In single quotes, a quote doubled, as the lexer reads it. */
static void print_level(const char *level, struct strbuf *out)
{
    strbuf_addc(out, '\'');
    for (; *level != '\0'; level++) {
        strbuf_adds(out, *level == '\'' ? "'" : "");
        strbuf_addc(out, *level);
    }
    strbuf_addc(out, '\'');
}

/* The names behind the indices, looked up in the program. */
static void print_name(const struct cond *c, const struct plan_program *p,
                       const struct fact_table *facts, struct strbuf *out)
{
    if (c->kind == COND_COUNTER) {
        strbuf_addf(out, "counter.%s", p->counters[c->index].name);
    } else if (c->kind == COND_CONTRAST) {
        strbuf_addf(out, "contrast.%s", p->contrasts[c->index].name);
        if (c->measure != INDEX_NONE) {
            strbuf_addf(out, "[%s]", p->measures[c->measure].name);
        }
        strbuf_addf(out, ".%s", contrast_field_name(c->field));
    } else if (c->kind == COND_MEASURE) {
        strbuf_addf(out, "measure.%s[", p->measures[c->measure].name);
        print_level(p->factors[c->factor].levels[c->level_a].text, out);
        strbuf_adds(out, "].mean");
    } else if (c->kind == COND_INSTRUMENT) {
        strbuf_addf(out, "instrument.%s.%s", p->instruments[c->index].name, c->name);
    } else {
        const struct fact_ref *f = &facts->refs[c->fact];
        strbuf_addf(out, "fact.%s.%s", p->stages[f->stage].name, f->name);
    }
}

/* ratio(fact.STAGE.NAME, factor, 'a', 'b'). */
static void print_ratio(const struct cond *c, const struct plan_program *p,
                        const struct fact_table *facts, struct strbuf *out)
{
    const struct plan_factor *f = &p->factors[c->factor];
    strbuf_adds(out, "ratio(");
    print_name(c, p, facts, out);
    strbuf_addf(out, ", %s, ", f->name);
    print_level(f->levels[c->level_a].text, out);
    strbuf_adds(out, ", ");
    print_level(f->levels[c->level_b].text, out);
    strbuf_addc(out, ')');
}

/* {, factor, 'level'}) */
static void print_where(const struct cond *c, const struct plan_program *p, struct strbuf *out)
{
    for (size_t i = 0; i < c->n_where; i++) {
        const struct plan_factor *f = &p->factors[c->where[i].factor];
        strbuf_addf(out, ", %s, ", f->name);
        print_level(f->levels[c->where[i].level].text, out);
    }
    strbuf_addc(out, ')');
}

/* rank(measure.M, factor, 'level'). */
static void print_rank(const struct cond *c, const struct plan_program *p, struct strbuf *out)
{
    const struct plan_factor *f = &p->factors[c->factor];
    strbuf_addf(out, "rank(measure.%s, %s, ", p->measures[c->measure].name, f->name);
    print_level(f->levels[c->level_a].text, out);
    print_where(c, p, out);
}

/* trend(contrast.K[M], factor).slope. */
static void print_trend(const struct cond *c, const struct plan_program *p, struct strbuf *out)
{
    const char *measure = p->measures[c->measure].name;
    if (c->index == INDEX_NONE) {
        strbuf_addf(out, "trend(measure.%s", measure);
    } else {
        strbuf_addf(out, "trend(contrast.%s[%s]", p->contrasts[c->index].name, measure);
    }
    strbuf_addf(out, ", %s", p->factors[c->factor].name);
    print_where(c, p, out);
    strbuf_addf(out, ".%s", trend_field_name(c->field));
}

/* The switch names every kind, so that a new one cannot be forgotten. */
void cond_print(const struct cond *c, const struct plan_program *p, const struct fact_table *facts,
                struct strbuf *out)
{
    switch (c->kind) {
    case COND_OR: print_joined(c, " or ", p, facts, out); break;
    case COND_AND: print_joined(c, " and ", p, facts, out); break;
    case COND_NOT: print_call(c, "not ", p, facts, out); break;
    case COND_CHAIN: print_chain(c, p, facts, out); break;
    case COND_WITHIN:
        cond_print(c->kids[0], p, facts, out);
        strbuf_adds(out, " within ");
        print_number(c->number, out);
        break;
    case COND_OTHERWISE: strbuf_adds(out, "otherwise"); break;
    case COND_NUMBER: print_number(c->number, out); break;
    case COND_ADD: print_joined(c, " + ", p, facts, out); break;
    case COND_SUB: print_joined(c, " - ", p, facts, out); break;
    case COND_MUL: print_joined(c, " * ", p, facts, out); break;
    case COND_DIV: print_joined(c, " / ", p, facts, out); break;
    case COND_NEG: print_call(c, "-", p, facts, out); break;
    case COND_ABS: print_call(c, "abs", p, facts, out); break;
    case COND_MIN: print_call(c, "min", p, facts, out); break;
    case COND_MAX: print_call(c, "max", p, facts, out); break;
    case COND_RATIO: print_ratio(c, p, facts, out); break;
    case COND_RANK: print_rank(c, p, out); break;
    case COND_TREND: print_trend(c, p, out); break;
    case COND_COUNTER:
    case COND_CONTRAST:
    case COND_MEASURE:
    case COND_FACT:
    case COND_INSTRUMENT: print_name(c, p, facts, out); break;
    }
}

/* Compares every field that carries meaning; those that a kind does not use are equal in every node
 * of that kind. NaN does not occur. */
bool cond_same(const struct cond *a, const struct cond *b)
{
    bool same =
        a == b || (a->kind == b->kind && a->n_kids == b->n_kids && a->index == b->index &&
                   a->measure == b->measure && a->field == b->field && a->fact == b->fact &&
                   a->factor == b->factor && a->level_a == b->level_a && a->level_b == b->level_b &&
                   a->instrument_field == b->instrument_field && a->n_where == b->n_where &&
                   a->number >= b->number && a->number <= b->number);
    for (size_t i = 0; same && i < a->n_where; i++) {
        same = a->where[i].factor == b->where[i].factor && a->where[i].level == b->where[i].level;
    }
    for (size_t i = 0; i < a->n_kids && same && a != b; i++) {
        same = cond_same(a->kids[i], b->kids[i]) &&
               (a->kind != COND_CHAIN || i == 0 || a->ops[i - 1] == b->ops[i - 1]);
    }
    return same;
}
