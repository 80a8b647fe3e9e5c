/*
 * Conditions: the complete grammar of docs/truth-table.md, compiled to a typed tree with every name
 * resolved.
 *
 *   cond := and {"or" and}      and := not {"and" not}      not := ["not"] comp
 *   comp := sum {relop sum} | sum "within" number
 *   sum  := term {(+|-) term}   term := unary {(*|/) unary}  unary := ["-"] atom
 *   atom := number | "otherwise" | name | "(" cond ")" | abs(sum) | min(sum,...) | max(sum,...)
 *         | ratio(fact, factor, 'a', 'b') | rank(measure.M, factor, 'level' {, factor, 'level'})
 *         | trend(measure.M | contrast.K[M], factor {, factor, 'level'}).FIELD
 *   name := counter.C | contrast.K.FIELD | contrast.K[M].FIELD | measure.M['level'].mean
 *         | fact.STAGE.NAME | instrument.I.FIELD
 *
 * A tree lives in the arena it was parsed into and is constant. Indices refer to the program it was
 * parsed against; facts are numbered in a table shared by all conditions of that program.
 * Invariants: every node has the kids its kind needs; truth and number never mix (an instrument's
 * field is one of the two: prereg/program/instrument.h).
 */
#ifndef TRUTHTABLE_CONDITION_CONDITION_H
#define TRUTHTABLE_CONDITION_CONDITION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/strbuf.h"
#include "prereg/program/program.h"
#include "truthtable/condition/number.h"

#define COND_LENGTH_MAX 4096 /* bytes of one condition */
#define COND_DEPTH_MAX  64   /* nested parentheses and functions */
#define COND_NODES_MAX  1024

enum cond_kind {
    /* truth */
    COND_OR,
    COND_AND,
    COND_NOT,
    COND_CHAIN,  /* kids[0] ops[0] kids[1] ops[1] kids[2] ...: all of them hold */
    COND_WITHIN, /* |kids[0] - 1| <= number */
    COND_OTHERWISE,
    /* numbers */
    COND_NUMBER,
    COND_ADD,
    COND_SUB,
    COND_MUL,
    COND_DIV,
    COND_NEG,
    COND_ABS,
    COND_MIN,
    COND_MAX,
    COND_RATIO,    /* fact, factor, level_a, level_b */
    COND_COUNTER,  /* index */
    COND_CONTRAST, /* index, measure (INDEX_NONE: pooled), field */
    COND_MEASURE,  /* measure, factor, level_a: the mean at that level */
    COND_FACT,     /* fact */
    COND_RANK,     /* measure, factor, level_a, where */
    COND_TREND,    /* measure, index (a contrast; INDEX_NONE: the measure itself), factor, where;
                      field: FIELD_MEAN is the slope */
    /* either */
    COND_INSTRUMENT, /* index, instrument_field, is_truth, name */
};

enum contrast_field {
    /* pooled and per measure */
    FIELD_MEAN,
    FIELD_N,
    /* per measure */
    FIELD_SD,
    FIELD_SE,
    FIELD_CI_LOW,
    FIELD_CI_HIGH,
    FIELD_BF10,
    FIELD_ITEM_SE, /* proportions alone: what sampling items leaves open, and the 95 % interval */
    FIELD_ITEM_LOW,
    FIELD_ITEM_HIGH,
    /* pooled */
    FIELD_MIN,
    FIELD_MAX,
    FIELD_MAX_ABS,
    FIELD_MEAN_ABS,
    FIELD_SIGN,
    FIELD_NR
};

struct cond {
    enum cond_kind kind;
    size_t offset; /* in bytes, into the text */
    const struct cond **kids;
    size_t n_kids;
    const enum relop *ops; /* COND_CHAIN: n_kids - 1 of them */
    double number;
    size_t index;
    size_t measure;
    enum contrast_field field;
    size_t fact;
    size_t factor;
    size_t level_a;
    size_t level_b;
    const struct plan_setting *where; /* levels that a rank or trend is restricted to */
    size_t n_where;
    size_t instrument_field; /* into instrument_fields() of its kind */
    bool is_truth;
    const char *name;
};

/* The distinct facts that conditions read, numbered in order of first use. */
struct fact_ref {
    size_t stage;
    const char *name;
};

struct fact_table {
    struct arena *arena; /* owns refs and names */
    struct fact_ref *refs;
    size_t n;
    size_t cap;
};

/* The place of a condition in the program decides which names it may use. */
enum cond_use {
    COND_USE_INPUT,    /* `otherwise` yes, instruments no */
    COND_USE_VALIDITY, /* neither */
    COND_USE_FORECAST, /* instruments yes */
};

/* NULL after an error, which is in `diag` with its place in grid.toml (text->place is that of the
 * string's opening quote). The tree lives in facts->arena. Parsing stops at a condition's first
 * error. */
const struct cond *cond_parse(const struct cond_text *text, const struct plan_program *p,
                              enum cond_use use, struct fact_table *facts, struct diag *diag);

bool cond_is_truth(const struct cond *c);  /* is valid where a truth value is needed */
bool cond_is_number(const struct cond *c); /* is valid where a number is needed */
/* The name of a field of a trend. */
const char *trend_field_name(enum contrast_field f);
bool cond_same(const struct cond *a, const struct cond *b); /* equal trees */
const char *contrast_field_name(enum contrast_field f);
/* Appends a form that is equal for equal trees, names spelled out: "contrast.arch[mmlu].mean". */
void cond_print(const struct cond *c, const struct plan_program *p, const struct fact_table *facts,
                struct strbuf *out);

#endif
