/* Walks the tokens of a condition. A root word followed by a point begins a name; the parts that
 * follow it depend on the root. */
#include "prereg/program/condition_names.h"

#include <assert.h>
#include <string.h>

#include "base/xalloc.h"

static const char *const roots[] = {
    [ROOT_COUNTER] = "counter", [ROOT_CONTRAST] = "contrast",     [ROOT_MEASURE] = "measure",
    [ROOT_FACT] = "fact",       [ROOT_INSTRUMENT] = "instrument",
};

/* As lexer_next(); of a malformed token one character is passed over, never a name behind it. */
static struct token next(struct lexer *lx)
{
    for (;;) {
        const struct token t = lexer_next(lx);
        if (t.kind != TOKEN_BAD) {
            return t;
        }
        lx->pos = t.offset + 1;
    }
}

/* Advances past the next token if it is this character. */
static bool skip_char(struct lexer *lx, char c)
{
    struct lexer ahead = *lx;
    const struct token t = next(&ahead);
    if (!token_is_char(&t, c)) {
        return false;
    }
    *lx = ahead;
    return true;
}

/* Advances past the next token if it is a word. */
static bool take_word(struct lexer *lx, struct token *out)
{
    struct lexer ahead = *lx;
    const struct token t = next(&ahead);
    if (t.kind != TOKEN_WORD) {
        return false;
    }
    *out = t;
    *lx = ahead;
    return true;
}

/* The parts behind the root and its point. */
static bool take_parts(struct lexer *lx, struct condition_name *out)
{
    if (!take_word(lx, &out->of)) {
        return false;
    }
    if (out->root == ROOT_CONTRAST && skip_char(lx, '[')) {
        (void)take_word(lx, &out->measure);
        (void)skip_char(lx, ']');
    }
    if (out->root != ROOT_MEASURE && skip_char(lx, '.')) {
        (void)take_word(lx, &out->field);
    }
    return true;
}

bool condition_next_name(struct lexer *lx, struct condition_name *out)
{
    assert(lx != NULL && lx->text != NULL && out != NULL);
    for (struct token t = next(lx); t.kind != TOKEN_END; t = next(lx)) {
        for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
            *out = (struct condition_name){.root = (enum condition_root)i};
            if (token_is_word(&t, roots[i]) && skip_char(lx, '.') && take_parts(lx, out)) {
                return true;
            }
        }
    }
    return false;
}

bool condition_reads_measure(const char *text, const char *measure)
{
    struct lexer lx = {.text = text};
    struct condition_name name;
    bool reads = false;
    while (!reads && condition_next_name(&lx, &name)) {
        reads = (name.root == ROOT_CONTRAST && token_is_word(&name.measure, measure)) ||
                (name.root == ROOT_MEASURE && token_is_word(&name.of, measure));
    }
    return reads;
}

/* Whether the condition has a name with this root, of `of` (NULL: any) and with `field` (NULL:
 * any). */
static bool reads(const char *text, enum condition_root root, const char *of, const char *field)
{
    struct lexer lx = {.text = text};
    struct condition_name name;
    bool found = false;
    while (!found && condition_next_name(&lx, &name)) {
        found = name.root == root && (of == NULL || token_is_word(&name.of, of)) &&
                (field == NULL || token_is_word(&name.field, field));
    }
    return found;
}

bool condition_reads_fact_of(const char *text, const char *stage)
{
    return reads(text, ROOT_FACT, stage, NULL);
}

bool condition_reads_instrument(const char *text, const char *instrument)
{
    return reads(text, ROOT_INSTRUMENT, instrument, NULL);
}

bool condition_reads_bf10(const char *text, const char *contrast)
{
    return reads(text, ROOT_CONTRAST, contrast, "bf10");
}
