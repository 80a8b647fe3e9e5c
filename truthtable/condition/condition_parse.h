/* The state of one parse, shared by grammar and names; private to the condition parser. After a
 * failure every function returns NULL and says nothing more. */
#ifndef TRUTHTABLE_CONDITION_CONDITION_PARSE_H
#define TRUTHTABLE_CONDITION_CONDITION_PARSE_H

#include <stddef.h>
#include <string.h>

#include "prereg/program/condition_lex.h"
#include "truthtable/condition/condition.h"

struct cond_parser {
    const struct cond_text *text;
    const struct plan_program *program;
    enum cond_use use;
    struct fact_table *facts;
    struct diag *diag;
    struct lexer lexer;
    struct token tok; /* not yet consumed */
    bool failed;
    size_t depth;
    size_t n_nodes;
};

/* Reports at a byte offset of the text; returns NULL. */
struct cond *cond_fail(struct cond_parser *ps, size_t offset, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* Reports what is found where `what` is expected. */
struct cond *cond_fail_expected(struct cond_parser *ps, const char *what);
/* Reports an unknown name with the nearest of the known ones. */
struct cond *cond_fail_unknown(struct cond_parser *ps, const struct token *t, const char *what,
                               const char *const *known, size_t n_known);
/* NULL over COND_NODES_MAX. */
struct cond *cond_new(struct cond_parser *ps, enum cond_kind kind, size_t offset);
/* Moves to the next token. After a failure the current token is TOKEN_END, so that loops end. */
void cond_advance(struct cond_parser *ps);
/* Consumes the character or fails. */
bool cond_expect(struct cond_parser *ps, char c);
/* Consumes a word or a string (what: for the message) into *out, or fails. */
bool cond_take(struct cond_parser *ps, enum token_kind kind, const char *what, struct token *out);

/* An array of n structs whose first member at `offset` is a name, seen as a list of names. */
struct cond_names {
    const void *items;
    size_t n;
    size_t size;
    size_t offset;
};

#define COND_NAMES(array, count, type, member)                                                     \
    (struct cond_names)                                                                            \
    {                                                                                              \
        (array), (count), sizeof(type), offsetof(type, member)                                     \
    }

/* Whether a token, which is not terminated, is this word. */
static inline bool cond_token_is(const struct token *t, const char *s)
{
    return strlen(s) == t->len && memcmp(s, t->start, t->len) == 0;
}

/* Consumes a word; returns its index in the list, or INDEX_NONE after an error that suggests the
 * nearest name. */
size_t cond_take_name(struct cond_parser *ps, const char *what, struct cond_names list);
/* Consumes ", 'level'" of the factor, or fails. */
bool cond_take_level(struct cond_parser *ps, const struct plan_factor *f, size_t *level);

/* A name, or ratio(...): the current token is its first word. */
struct cond *cond_parse_name(struct cond_parser *ps);
struct cond *cond_parse_ratio(struct cond_parser *ps);
/* condition_levels.c */
struct cond *cond_parse_rank(struct cond_parser *ps);
struct cond *cond_parse_trend(struct cond_parser *ps);

#endif
