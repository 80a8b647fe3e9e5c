/*
 * Escapes text for HTML and Markdown. Text is decoded as UTF-8 character by character; malformed
 * bytes, control characters and characters that change the direction of text become U+FFFD, so no
 * name can hide or reorder what surrounds it. Escaping happens once, in the renderers.
 */
#include "truthtable/report/document/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define RUN_MAX     ((size_t)16)

/* Control characters, bidirectional controls, and Unicode's own line and paragraph separators. */
static bool is_harmful(uint32_t cp)
{
    bool control = cp < 0x20 || (cp >= 0x7f && cp < 0xa0);
    bool turns_text = (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) ||
                      cp == 0x200e || cp == 0x200f || cp == 0x061c;
    bool breaks_line = cp == 0x2028 || cp == 0x2029;
    return control || turns_text || breaks_line;
}

typedef const char *(*replace_fn)(uint32_t cp);

/* Safe in text and in quoted attributes; line breaks become spaces. */
static const char *html_replacement(uint32_t cp)
{
    switch (cp) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    case '\n':
    case '\t': return " ";
    default: return NULL;
    }
}

/* Every character that GitHub-flavored Markdown may interpret within a line. */
static const char *md_replacement(uint32_t cp)
{
    static const char special[] = "\\`*_{}[]#!|~$";
    static const char escaped[][3] = {"\\\\", "\\`", "\\*", "\\_", "\\{", "\\}", "\\[",
                                      "\\]",  "\\#", "\\!", "\\|", "\\~", "\\$"};
    if (cp == '\n' || cp == '\t') {
        return " ";
    }
    if (cp == '&' || cp == '<' || cp == '>') {
        return html_replacement(cp);
    }
    /* 0 would match the terminator of `special`. */
    const char *at = cp > 0 && cp < 0x80 ? strchr(special, (int)cp) : NULL;
    return at == NULL ? NULL : escaped[at - special];
}

/* The common loop; `replace` returns NULL for what stays. */
static void escape_with(struct strbuf *out, const char *text, replace_fn replace)
{
    size_t len = strlen(text);
    size_t i = 0;
    while (i < len) {
        uint32_t cp = 0;
        size_t n = text_utf8_next(text + i, len - i, &cp);
        if (n == 0) {
            strbuf_adds(out, REPLACEMENT);
            i++;
            continue;
        }
        const char *other = replace(cp);
        if (other != NULL) {
            strbuf_adds(out, other);
        } else if (is_harmful(cp)) {
            strbuf_adds(out, REPLACEMENT);
        } else {
            strbuf_add(out, text + i, n);
        }
        i += n;
    }
}

/* Nothing of the text can become markup. */
void escape_html(struct strbuf *out, const char *text)
{
    escape_with(out, text, html_replacement);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A run without any place to break is a fingerprint or a digest: it gets break opportunities of its
 * own. */
static void escape_run(struct strbuf *out, const char *text, size_t len)
{
    bool plain = strcspn(text, " -\t") >= len;
    while (plain && len > 2 * RUN_MAX) {
        size_t n = RUN_MAX;
        while (n > 1 && ((unsigned char)text[n] & 0xc0U) == 0x80U) {
            n--; /* not inside a character */
        }
        char *part = xstrndup(text, n);
        escape_html(out, part);
        strbuf_adds(out, "<wbr>");
        free(part);
        text += n;
        len -= n;
    }
    char *rest = xstrndup(text, len);
    escape_html(out, rest);
    free(rest);
}

/* Breaks after punctuation only if a letter follows: a number such as 1,000 stays whole. */
void escape_html_breaking(struct strbuf *out, const char *text)
{
    char piece[2] = {0};
    const char *from = text;
    for (const char *at = strpbrk(text, ",_/"); at != NULL; at = strpbrk(at + 1, ",_/")) {
        piece[0] = *at;
        escape_run(out, from, (size_t)(at - from));
        escape_html(out, piece);
        strbuf_adds(out, is_letter(at[1]) ? "<wbr>" : "");
        from = at + 1;
    }
    escape_run(out, from, strlen(from));
}

/* Whether a list marker is complete before this character. */
static bool ends_marker(char c)
{
    return c == ' ' || c == '\t' || c == '\0';
}

/* A paragraph must not start as a list item, a numbered item or an underline does. */
static size_t md_leading_bytes(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    if (digits > 0 && (text[digits] == '.' || text[digits] == ')') &&
        ends_marker(text[digits + 1])) {
        return digits + 1;
    }
    bool bullet = (text[0] == '-' || text[0] == '+') && ends_marker(text[1]);
    return bullet || text[0] == '=' || strncmp(text, "--", 2) == 0 ? 1 : 0;
}

/* A marker at the start of a paragraph is escaped at its last character, "1\\.". */
void escape_md(struct strbuf *out, const char *text)
{
    size_t lead = md_leading_bytes(text);
    if (lead > 0) {
        strbuf_add(out, text, lead - 1);
        strbuf_addc(out, '\\');
        strbuf_addc(out, text[lead - 1]);
    }
    escape_with(out, text + lead, md_replacement);
}
