/* The state of one parse, shared by grammar and names; private to the condition parser. After a
 * failure every function returns NULL and says nothing more. */
#ifndef TRUTHTABLE_CONDITION_CONDITION_PARSE_H
#define TRUTHTABLE_CONDITION_CONDITION_PARSE_H

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

/* A name, or ratio(...): the current token is its first word. */
struct cond *cond_parse_name(struct cond_parser *ps);
struct cond *cond_parse_ratio(struct cond_parser *ps);
struct cond *cond_parse_rank(struct cond_parser *ps);
struct cond *cond_parse_trend(struct cond_parser *ps);

#endif
