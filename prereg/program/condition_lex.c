/*
 * Splits a condition into tokens. The position is the only state, without look-ahead; keywords
 * are ordinary words, which the parser recognizes. Names begin with a lower-case letter, so digits
 * always begin a number. A malformed token carries the message for the user.
 */
#include "prereg/program/condition_lex.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* Turns a token into TOKEN_BAD. It keeps its place, which the message is reported at. */
static struct token bad(struct token t, const char *message)
{
    t.kind = TOKEN_BAD;
    t.message = message;
    return t;
}

/* digits ["." digits] [("e"|"E") ["+"|"-"] digits], as TOML writes floats. */
static struct token lex_number(struct lexer *lx, struct token t)
{
    const char *p = t.start + strspn(t.start, DIGITS);
    if (*p == '.') {
        size_t n = strspn(p + 1, DIGITS);
        if (n == 0) {
            return bad(t, "digits must follow the point");
        }
        p += 1 + n;
    }
    if (*p == 'e' || *p == 'E') {
        p += p[1] == '+' || p[1] == '-' ? 2 : 1;
        size_t n = strspn(p, DIGITS);
        if (n == 0) {
            return bad(t, "digits must follow the exponent");
        }
        p += n;
    }
    /* "2x" and "1.2.3" are mistakes, not two tokens. */
    if (strchr(LOWER "_.", *p) != NULL && *p != '\0') {
        return bad(t, "this is neither a number nor a name");
    }
    t.kind = TOKEN_NUMBER;
    t.len = (size_t)(p - t.start);
    t.number = strtod(t.start, NULL);
    lx->pos += t.len;
    return isfinite(t.number) ? t : bad(t, "the number is too large");
}

/* A level in single quotes; a doubled quote is one quote. The token excludes the outer quotes. */
static struct token lex_string(struct lexer *lx, struct token t)
{
    const char *p = t.start + 1;
    for (;; p++) {
        if (*p == '\0') {
            return bad(t, "the quote is not closed");
        }
        if (*p == '\'' && p[1] == '\'') {
            p++;
        } else if (*p == '\'') {
            break;
        }
    }
    t.kind = TOKEN_STRING;
    t.start++;
    t.len = (size_t)(p - t.start);
    lx->pos += t.len + 2;
    return t;
}

/* Longer operators come first, so that "<=" is not read as "<". The caller has seen one of
 * "<>=!". */
static struct token lex_relop(struct lexer *lx, struct token t)
{
    static const struct {
        const char *text;
        enum relop op;
    } relops[] = {{"<=", REL_LE}, {">=", REL_GE}, {"==", REL_EQ},
                  {"!=", REL_NE}, {"<", REL_LT},  {">", REL_GT}};
    for (size_t i = 0; i < sizeof(relops) / sizeof(relops[0]); i++) {
        size_t n = strlen(relops[i].text);
        if (strncmp(t.start, relops[i].text, n) == 0) {
            t.kind = TOKEN_RELOP;
            t.len = n;
            t.relop = relops[i].op;
            lx->pos += n;
            return t;
        }
    }
    if (*t.start == '=' && (t.start[1] == '<' || t.start[1] == '>')) {
        return bad(t, t.start[1] == '<' ? "did you mean <=?" : "did you mean >=?");
    }
    return bad(t, *t.start == '=' ? "a comparison for equality is written =="
                                  : "an inequality is written !=");
}

/* The first character decides the kind of token. */
struct token lexer_next(struct lexer *lx)
{
    lx->pos += strspn(lx->text + lx->pos, " \t\r\n");
    struct token t = {.kind = TOKEN_END, .start = lx->text + lx->pos, .offset = lx->pos};
    char c = *t.start;
    if (c == '\0') {
        return t;
    }
    if (strchr(LOWER, c) != NULL) {
        t.kind = TOKEN_WORD;
        t.len = strspn(t.start, LOWER DIGITS "_");
        lx->pos += t.len;
        return t;
    }
    if (strchr(DIGITS, c) != NULL) {
        return lex_number(lx, t);
    }
    if (c == '\'') {
        return lex_string(lx, t);
    }
    if (strchr("<>=!", c) != NULL) {
        return lex_relop(lx, t);
    }
    if (strchr("()[],.+-*/", c) != NULL) {
        t.kind = TOKEN_CHAR;
        t.len = 1;
        lx->pos++;
        return t;
    }
    return bad(t, c == '"' ? "a level name takes single quotes"
                           : "this character has no meaning here");
}

bool token_is_char(const struct token *t, char c)
{
    return t->kind == TOKEN_CHAR && *t->start == c;
}

bool token_is_word(const struct token *t, const char *word)
{
    return t->kind == TOKEN_WORD && strlen(word) == t->len && memcmp(t->start, word, t->len) == 0;
}
