/*
 * Finds a member's value in the text of a JSON object by counting brackets and skipping strings. It
 * does not validate: the line was parsed before. It exists because hashes are over the text of a
 * value as it was written, which a parsed value no longer has.
 */
#include "truthtable/imported/judge.h"

#include <string.h>

/* The four characters of white space that JSON has. */
static size_t skip_space(const char *s, size_t len, size_t at)
{
    while (at < len && memchr(" \t\r\n", s[at], 4) != NULL) {
        at++;
    }
    return at;
}

/* The end of the string that begins at `at`; an escaped quote does not end it. */
static size_t skip_string(const char *s, size_t len, size_t at)
{
    for (at++; at < len && s[at] != '"'; at++) {
        at += s[at] == '\\' && at + 1 < len ? 1 : 0;
    }
    return at < len ? at + 1 : len;
}

/* The end of the value that begins at `at`: where its brackets are closed again. */
static size_t skip_value(const char *s, size_t len, size_t at)
{
    size_t depth = 0;
    while (at < len) {
        const char c = s[at];
        if (c == '"') {
            at = skip_string(s, len, at);
        } else if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (c == '}' || c == ']' || c == ',') {
            if (depth == 0) {
                return at;
            }
            depth -= c == ',' ? 0 : 1;
            at++;
        } else {
            at++;
            continue;
        }
        if (depth == 0) {
            return at;
        }
    }
    return len;
}

/* Only members of the outermost object are searched. */
bool span_member(const char *text, size_t len, const char *key, struct span *out)
{
    const size_t n = strlen(key);
    size_t at = skip_space(text, len, 0);
    if (at >= len || text[at] != '{') {
        return false;
    }
    at = skip_space(text, len, at + 1);
    while (at < len && text[at] == '"') {
        const size_t name = at + 1;
        at = skip_string(text, len, at);
        const bool found =
            at - name == n + 1 && memcmp(text + name, key, n) == 0 && text[at - 1] == '"';
        at = skip_space(text, len, at);
        if (at >= len || text[at] != ':') {
            return false;
        }
        const size_t value = skip_space(text, len, at + 1);
        at = skip_value(text, len, value);
        if (found) {
            *out = (struct span){text + value, at - value};
            return true;
        }
        at = skip_space(text, len, at);
        if (at >= len || text[at] != ',') {
            return false;
        }
        at = skip_space(text, len, at + 1);
    }
    return false;
}
