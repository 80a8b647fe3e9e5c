/*
 * GPT-2's pattern by hand for ASCII text, without a regular expression. Wherever a byte of another
 * character could take part in the decision the function returns 0 and the caller asks PCRE2, so
 * both ways give the same pieces; tests hold one against the other.
 */
#include "worker/data/tokenizer/split.h"

#include <stdbool.h>

/* What a byte is to the pattern: [^\s\p{L}\p{N}], \p{L}, \p{N}, \s, or part of a character outside
 * ASCII. */
enum class { OTHER, LETTER, DIGIT, SPACE, FOREIGN };

static inline enum class class_of(char c) {
    unsigned char b = (unsigned char)c;

    if (b >= 0x80) return FOREIGN;
    if ((unsigned)((b | 0x20) - 'a') < 26) return LETTER;
    if ((unsigned)(b - '0') < 10) return DIGIT;
    return b == ' ' || (b >= '\t' && b <= '\r') ? SPACE : OTHER;
}

/* 's 't 'm 'd 're 've 'll; 0 otherwise. */
static size_t contraction(const char *text, size_t len)
{
    if (len < 2 || text[0] != '\'')
        return 0;
    switch (text[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd': return 2;
    case 'r':
    case 'v': return len > 2 && text[2] == 'e' ? 3 : 0;
    case 'l': return len > 2 && text[2] == 'l' ? 3 : 0;
    default: return 0;
    }
}

/* A run of white space leaves its last character to the following word, unless it is the only one:
 * " ?" takes a blank before anything else is tried, and no other. */
static size_t space_piece(const char *text, size_t len)
{
    size_t n = 1;

    while (n < len && class_of(text[n]) == SPACE)
        n++;
    if (n == len)
        return n;
    if (class_of(text[n]) == FOREIGN)
        return 0;
    return n > 1 ? n - 1 : 1;
}

size_t split_gpt2_piece(const char *text, size_t len)
{
    size_t n = contraction(text, len);

    if (n > 0)
        return n;
    bool blank = text[0] == ' ' && len > 1;
    size_t at = blank ? 1 : 0;
    enum class kind = class_of(text[at]);
    if (kind == FOREIGN)
        return 0;
    if (kind == SPACE)
        return space_piece(text, len);
    do
        at++;
    while (at < len && class_of(text[at]) == kind);
    return at < len && class_of(text[at]) == FOREIGN ? 0 : at;
}
