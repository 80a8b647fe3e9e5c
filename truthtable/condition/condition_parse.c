/*
 * Recursive descent over the grammar in condition.h, one function per production. Types are checked
 * while parsing: an operand that must be a number or a truth value is refused at its own column.
 * The first error ends the parse: it sets `failed`, after which every function returns NULL and the
 * current token is TOKEN_END. Depth, nodes, operands and length are limited, because programs may
 * come from strangers. Names are resolved in condition_name.c.
 */
#include "truthtable/condition/condition_parse.h"

#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"

#define KIDS_MAX 64

struct kids {
    struct cond *items[KIDS_MAX];
    size_t n;
};

static struct cond *parse_or(struct cond_parser *ps);
static struct cond *parse_sum(struct cond_parser *ps);

/* Passes a truth value on; fails at the operand otherwise. NULL (failed before) passes too. */
static struct cond *need_truth(struct cond_parser *ps, struct cond *c)
{
    if (c != NULL && !cond_is_truth(c)) {
        return cond_fail(ps, c->offset, "a number stands where a comparison is needed");
    }
    return c;
}

/* The same for numbers. */
static struct cond *need_number(struct cond_parser *ps, struct cond *c)
{
    if (c != NULL && !cond_is_number(c)) {
        return cond_fail(ps, c->offset, "a truth value stands where a number is needed");
    }
    return c;
}

/* Gives a node its operands, copied into the arena. */
static struct cond *with_kids(struct cond_parser *ps, struct cond *c, struct cond *const *items,
                              size_t n)
{
    if (c == NULL || ps->failed) {
        return NULL;
    }
    const struct cond **kids = arena_array(ps->facts->arena, n, sizeof(*kids));
    for (size_t i = 0; i < n; i++) {
        kids[i] = items[i];
    }
    c->kids = kids;
    c->n_kids = n;
    return c;
}

/* Adds an operand; false after a failure, which includes one operand too many. */
static bool kids_push(struct cond_parser *ps, struct kids *k, struct cond *c)
{
    if (c != NULL && k->n == KIDS_MAX) {
        c = cond_fail(ps, c->offset, "more than %d operands", KIDS_MAX);
    }
    if (c != NULL) {
        k->items[k->n++] = c;
    }
    return c != NULL;
}

/* A node with one operand; NULL if the operand failed. */
static struct cond *unary_node(struct cond_parser *ps, enum cond_kind kind, size_t offset,
                               struct cond *kid)
{
    return kid == NULL ? NULL : with_kids(ps, cond_new(ps, kind, offset), &kid, 1);
}

/* abs(sum), min(sum, ...), max(sum, ...) */
static struct cond *parse_function(struct cond_parser *ps, enum cond_kind kind)
{
    size_t offset = ps->tok.offset;
    struct kids args = {0};
    cond_advance(ps);
    if (!cond_expect(ps, '(')) {
        return NULL;
    }
    for (;;) {
        if (!kids_push(ps, &args, need_number(ps, parse_sum(ps)))) {
            return NULL;
        }
        /* abs takes one argument, min and max any number. */
        if (kind == COND_ABS || !token_is_char(&ps->tok, ',')) {
            break;
        }
        cond_advance(ps);
    }
    return cond_expect(ps, ')') ? with_kids(ps, cond_new(ps, kind, offset), args.items, args.n)
                                : NULL;
}

/* Only the levels of an input have an order that "otherwise" can refer to. */
static struct cond *parse_otherwise(struct cond_parser *ps)
{
    if (ps->use != COND_USE_INPUT) {
        return cond_fail(ps, ps->tok.offset,
                         "\"otherwise\" has a meaning in the levels of inputs only");
    }
    struct cond *c = cond_new(ps, COND_OTHERWISE, ps->tok.offset);
    cond_advance(ps);
    return ps->failed ? NULL : c;
}

/* The words of functions are not reserved elsewhere: a counter may be named "min", because names
 * follow a point. */
static struct cond *parse_atom_inner(struct cond_parser *ps)
{
    static const struct {
        const char *word;
        enum cond_kind kind;
    } functions[] = {{"abs", COND_ABS}, {"min", COND_MIN}, {"max", COND_MAX}};
    if (ps->tok.kind == TOKEN_NUMBER) {
        struct cond *c = cond_new(ps, COND_NUMBER, ps->tok.offset);
        if (c != NULL) {
            c->number = ps->tok.number;
        }
        cond_advance(ps);
        return ps->failed ? NULL : c;
    }
    /* Parentheses may hold a truth or a number; the caller checks which. */
    if (token_is_char(&ps->tok, '(')) {
        cond_advance(ps);
        struct cond *c = parse_or(ps);
        return c != NULL && cond_expect(ps, ')') ? c : NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        if (token_is_word(&ps->tok, functions[i].word)) {
            return parse_function(ps, functions[i].kind);
        }
    }
    if (token_is_word(&ps->tok, "otherwise")) {
        return parse_otherwise(ps);
    }
    if (token_is_word(&ps->tok, "ratio")) {
        return cond_parse_ratio(ps);
    }
    if (token_is_word(&ps->tok, "rank")) {
        return cond_parse_rank(ps);
    }
    if (token_is_word(&ps->tok, "trend")) {
        return cond_parse_trend(ps);
    }
    if (ps->tok.kind == TOKEN_WORD) {
        return cond_parse_name(ps);
    }
    return cond_fail_expected(ps, "a number or a name");
}

/* Counts nesting around the recursion, which runs through atoms only. */
static struct cond *parse_atom(struct cond_parser *ps)
{
    if (ps->failed) {
        return NULL;
    }
    if (ps->depth >= COND_DEPTH_MAX) {
        return cond_fail(ps, ps->tok.offset, "nested deeper than %d", COND_DEPTH_MAX);
    }
    ps->depth++;
    struct cond *c = parse_atom_inner(ps);
    ps->depth--;
    return c;
}

/* A minus binds tighter than any operator and cannot be repeated: "--x" is refused. */
static struct cond *parse_unary(struct cond_parser *ps)
{
    if (!token_is_char(&ps->tok, '-')) {
        return parse_atom(ps);
    }
    size_t offset = ps->tok.offset;
    cond_advance(ps);
    return unary_node(ps, COND_NEG, offset, need_number(ps, parse_atom(ps)));
}

/* One left-associative level: operand {op operand}. */
static struct cond *parse_binary(struct cond_parser *ps, const char ops[2],
                                 const enum cond_kind kinds[2],
                                 struct cond *(*operand)(struct cond_parser *))
{
    struct cond *left = operand(ps);
    while (left != NULL && (token_is_char(&ps->tok, ops[0]) || token_is_char(&ps->tok, ops[1]))) {
        enum cond_kind kind = token_is_char(&ps->tok, ops[0]) ? kinds[0] : kinds[1];
        size_t offset = ps->tok.offset;
        if (need_number(ps, left) == NULL) {
            return NULL;
        }
        cond_advance(ps);
        struct cond *right = need_number(ps, operand(ps));
        struct cond *both[2] = {left, right};
        left = right == NULL ? NULL : with_kids(ps, cond_new(ps, kind, offset), both, 2);
    }
    return left;
}

/* Products and quotients, left to right. */
static struct cond *parse_term(struct cond_parser *ps)
{
    static const enum cond_kind kinds[2] = {COND_MUL, COND_DIV};
    return parse_binary(ps, "*/", kinds, parse_unary);
}

/* Sums and differences, left to right. */
static struct cond *parse_sum(struct cond_parser *ps)
{
    static const enum cond_kind kinds[2] = {COND_ADD, COND_SUB};
    return parse_binary(ps, "+-", kinds, parse_term);
}

/* X within T: |X - 1| <= T, for ratios. T is a literal. */
static struct cond *parse_within(struct cond_parser *ps, struct cond *left)
{
    struct token t;
    size_t offset = ps->tok.offset;
    if (need_number(ps, left) == NULL) {
        return NULL;
    }
    cond_advance(ps);
    if (!cond_take(ps, TOKEN_NUMBER, "a number", &t)) {
        return NULL;
    }
    struct cond *c = unary_node(ps, COND_WITHIN, offset, left);
    if (c != NULL) {
        c->number = t.number;
    }
    return c;
}

/* A chain "a < b <= c" compares neighbors and holds if all links do. A sum without a relation is
 * passed up as a number. */
static struct cond *parse_comp(struct cond_parser *ps)
{
    struct kids k = {0};
    enum relop ops[KIDS_MAX];
    struct cond *left = parse_sum(ps);
    if (left == NULL) {
        return NULL;
    }
    if (token_is_word(&ps->tok, "within")) {
        return parse_within(ps, left);
    }
    if (ps->tok.kind != TOKEN_RELOP) {
        return left;
    }
    size_t offset = left->offset;
    if (!kids_push(ps, &k, need_number(ps, left))) {
        return NULL;
    }
    /* ops[i] is between operands i and i + 1. */
    while (ps->tok.kind == TOKEN_RELOP) {
        ops[k.n - 1] = ps->tok.relop;
        cond_advance(ps);
        if (!kids_push(ps, &k, need_number(ps, parse_sum(ps)))) {
            return NULL;
        }
    }
    struct cond *c = with_kids(ps, cond_new(ps, COND_CHAIN, offset), k.items, k.n);
    if (c != NULL) {
        /* The array of the parse has room for the most operands; the tree keeps what it needs. */
        enum relop *kept = arena_array(ps->facts->arena, k.n, sizeof(*kept));
        memcpy(kept, ops, (k.n - 1) * sizeof(*kept));
        c->ops = kept;
    }
    return c;
}

/* "not" applies to one comparison; "not not x" is refused. */
static struct cond *parse_not(struct cond_parser *ps)
{
    if (!token_is_word(&ps->tok, "not")) {
        return parse_comp(ps);
    }
    size_t offset = ps->tok.offset;
    cond_advance(ps);
    return unary_node(ps, COND_NOT, offset, need_truth(ps, parse_comp(ps)));
}

/* A list of operands joined by one word, as a flat node; a single operand is passed through. */
static struct cond *parse_joined(struct cond_parser *ps, const char *word, enum cond_kind kind,
                                 struct cond *(*operand)(struct cond_parser *))
{
    struct kids k = {0};
    struct cond *first = operand(ps);
    if (first == NULL || !token_is_word(&ps->tok, word)) {
        return first;
    }
    if (!kids_push(ps, &k, need_truth(ps, first))) {
        return NULL;
    }
    while (token_is_word(&ps->tok, word)) {
        cond_advance(ps);
        if (!kids_push(ps, &k, need_truth(ps, operand(ps)))) {
            return NULL;
        }
    }
    return with_kids(ps, cond_new(ps, kind, first->offset), k.items, k.n);
}

/* "and" binds tighter than "or". */
static struct cond *parse_and(struct cond_parser *ps)
{
    return parse_joined(ps, "and", COND_AND, parse_not);
}

static struct cond *parse_or(struct cond_parser *ps)
{
    return parse_joined(ps, "or", COND_OR, parse_and);
}

/* Compiles one condition. The whole text must be consumed, and the result must be a truth value. */
const struct cond *cond_parse(const struct cond_text *text, const struct plan_program *p,
                              enum cond_use use, struct fact_table *facts, struct diag *diag)
{
    struct cond_parser ps = {.text = text,
                             .program = p,
                             .use = use,
                             .facts = facts,
                             .diag = diag,
                             .lexer = {.text = text->text}};
    if (strlen(text->text) > COND_LENGTH_MAX) {
        return cond_fail(&ps, 0, "longer than %d bytes", COND_LENGTH_MAX);
    }
    cond_advance(&ps);
    struct cond *c = need_truth(&ps, parse_or(&ps));
    if (c != NULL && ps.tok.kind != TOKEN_END) {
        return cond_fail_expected(&ps, "\"and\", \"or\" or the end");
    }
    return ps.failed ? NULL : c;
}

/* The kinds of truth come first in the enum; an instrument's field is of either type. */
bool cond_is_truth(const struct cond *c)
{
    return c->kind <= COND_OTHERWISE || (c->kind == COND_INSTRUMENT && c->is_truth);
}

/* Every kind is a truth or a number, and an instrument's field is one of the two. */
bool cond_is_number(const struct cond *c)
{
    return c->kind > COND_OTHERWISE && !(c->kind == COND_INSTRUMENT && c->is_truth);
}
