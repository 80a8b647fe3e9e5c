/* Tokens of a condition, for its parser (truthtable/condition) and for condition_names.h. A token
 * borrows the text. */
#ifndef PREREG_PROGRAM_CONDITION_LEX_H
#define PREREG_PROGRAM_CONDITION_LEX_H

#include <stdbool.h>
#include <stddef.h>

enum relop { REL_LT, REL_LE, REL_GT, REL_GE, REL_EQ, REL_NE };

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,   /* [a-z][a-z0-9_]* */
    TOKEN_NUMBER, /* unsigned decimal, finite */
    TOKEN_STRING, /* 'it''s': start and length are without the outer quotes */
    TOKEN_RELOP,
    TOKEN_CHAR, /* one of ( ) [ ] , . + - * / */
    TOKEN_BAD,  /* message says why */
};

struct token {
    enum token_kind kind;
    const char *start;
    size_t len;
    size_t offset; /* of the token, quotes included */
    double number;
    enum relop relop;
    const char *message;
};

struct lexer {
    const char *text;
    size_t pos;
};

/* Returns the next token and advances past it; TOKEN_END again and again at the end. */
struct token lexer_next(struct lexer *lx);
/* Whether the token is this one character, or exactly this word. */
bool token_is_char(const struct token *t, char c);
bool token_is_word(const struct token *t, const char *word);

#endif
