/*
 * Scans a TOML text for strings and comments only, which is enough to find dots and quotes outside
 * of them. toml.c refuses keys by it before the parser runs, toml_build.cc names the open quote
 * after it has failed.
 */
#include "prereg/load/toml_scan.h"

#include <string.h>

#include "prereg/load/toml.h"

/* `counted` follows `pos`, so that every byte is counted once: see place_here(). */
struct scan {
    const char *text;
    size_t len;
    size_t pos;
    size_t counted;
    struct place place; /* of text[counted] */
};

static struct scan scan_start(const char *text, size_t len)
{
    return (struct scan){.text = text, .len = len, .place = {.line = 1, .column = 1}};
}

/* Returns the place of text[pos]. Columns are counted in characters, as toml++ counts them. */
static struct place place_here(struct scan *s)
{
    for (; s->counted < s->pos; s->counted++) {
        const unsigned char c = (unsigned char)s->text[s->counted];
        if (c == '\n') {
            s->place.line++;
            s->place.column = 1;
        } else if ((c & 0xC0U) != 0x80U) {
            s->place.column++;
        }
    }
    return s->place;
}

static bool at(const struct scan *s, const char *token)
{
    size_t n = strlen(token);
    return s->len - s->pos >= n && memcmp(s->text + s->pos, token, n) == 0;
}

/* Starts on an opening quote. Returns true behind the closing one; false at the end of the line or
 * of the text where there is none (toml++ reports it). */
static bool skip_string(struct scan *s)
{
    const char quote = s->text[s->pos];
    const bool basic = quote == '"';
    const char *triple = basic ? "\"\"\"" : "'''";
    const bool multi = at(s, triple);
    s->pos += multi ? 3 : 1;
    while (s->pos < s->len) {
        const char c = s->text[s->pos];
        if (multi ? at(s, triple) : c == quote) {
            s->pos += multi ? 3 : 1;
            /* A multi-line string may end in one or two quotes of its own: the last three close. */
            for (int i = 0; multi && i < 2 && s->pos < s->len && s->text[s->pos] == quote; i++) {
                s->pos++;
            }
            return true;
        }
        if (c == '\n' && !multi) {
            return false;
        }
        s->pos += basic && c == '\\' && s->pos + 1 < s->len && s->text[s->pos + 1] != '\n' ? 2 : 1;
    }
    return false;
}

static void skip_comment(struct scan *s)
{
    const char *end = memchr(s->text + s->pos, '\n', s->len - s->pos);
    s->pos = end == NULL ? s->len : (size_t)(end - s->text);
}

/* Goes through the text string by string, up to `end` or to the first one that is not closed. */
bool toml_string_before(const char *text, size_t len, struct place end, struct toml_string *out)
{
    struct scan s = scan_start(text, len);
    bool found = false;
    while (s.pos < s.len) {
        const char c = s.text[s.pos];
        if (c == '#') {
            skip_comment(&s);
        } else if (c == '"' || c == '\'') {
            const struct place place = place_here(&s);
            if (place.line > end.line || (place.line == end.line && place.column >= end.column)) {
                break;
            }
            const char triple[] = {c, c, c, '\0'};
            *out = (struct toml_string){
                .place = place, .quote = c, .n_quotes = at(&s, triple) ? 3 : 1};
            out->closed = skip_string(&s);
            found = true;
            if (!out->closed) {
                break;
            }
        } else {
            s.pos++;
        }
    }
    return found;
}

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_-+ \t", c) != NULL;
}

unsigned toml_find_long_key(const char *text, size_t len)
{
    struct scan s = scan_start(text, len);
    unsigned dots = 0;
    while (s.pos < s.len) {
        char c = s.text[s.pos];
        if (c == '"' || c == '\'') {
            (void)skip_string(&s);
            continue;
        }
        if (c == '#') {
            skip_comment(&s);
            continue;
        }
        if (c == '.') {
            if (++dots >= TOML_KEY_PARTS_MAX) {
                return place_here(&s).line;
            }
        } else if (c == '\0' || !is_key_char(c)) {
            dots = 0;
        }
        s.pos++;
    }
    return 0;
}

/* ---- definitions ---- */

/* A header, or a key with its value: what begins a line outside of strings and arrays. */
struct definition {
    unsigned line;
    bool is_header;
    bool is_array;    /* [[...]] */
    const char *name; /* between the brackets, or before the equals sign; of the text */
    size_t len;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* From the name's first character to the one that ends it. */
static void read_name(struct scan *s, struct definition *d)
{
    const char end = d->is_header ? ']' : '=';
    while (s->pos < s->len && (s->text[s->pos] == '[' || is_blank(s->text[s->pos]))) {
        s->pos++;
    }
    d->name = s->text + s->pos;
    while (s->pos < s->len && s->text[s->pos] != end && s->text[s->pos] != '\n') {
        if (s->text[s->pos] == '"' || s->text[s->pos] == '\'') {
            (void)skip_string(s);
        } else {
            s->pos++;
        }
    }
    d->len = (size_t)(s->text + s->pos - d->name);
    while (d->len > 0 && is_blank(d->name[d->len - 1])) {
        d->len--;
    }
}

/* Goes to the end of the value: of the line, unless an array is open there. */
static void skip_value(struct scan *s)
{
    int depth = 0;
    while (s->pos < s->len && (s->text[s->pos] != '\n' || depth > 0)) {
        const char c = s->text[s->pos];
        if (c == '#') {
            skip_comment(s);
        } else if (c == '"' || c == '\'') {
            (void)skip_string(s);
        } else {
            depth += (c == '[' || c == '{') - (c == ']' || c == '}');
            s->pos++;
        }
    }
}

static bool next_definition(struct scan *s, struct definition *d)
{
    while (s->pos < s->len && (is_blank(s->text[s->pos]) || strchr("\n#", s->text[s->pos]))) {
        if (s->text[s->pos] == '#') {
            skip_comment(s);
        } else {
            s->pos++;
        }
    }
    if (s->pos >= s->len) {
        return false;
    }
    d->line = place_here(s).line;
    d->is_header = s->text[s->pos] == '[';
    d->is_array = at(s, "[[");
    read_name(s, d);
    if (d->is_header && s->pos < s->len && s->text[s->pos] == ']') {
        s->pos++; /* a second bracket goes with the rest of its line */
    }
    skip_value(s);
    return true;
}

static bool same_name(const struct definition *a, const struct definition *b)
{
    return a->is_header == b->is_header && a->is_array == b->is_array && a->len == b->len &&
           memcmp(a->name, b->name, a->len) == 0;
}

bool toml_find_definition(const char *text, size_t len, unsigned line, struct toml_twice *out)
{
    struct scan s = scan_start(text, len);
    struct definition second = {0};
    struct definition d;
    unsigned table = 0; /* the line of the header above it: a key is set twice in one table */
    while (next_definition(&s, &d) && d.line <= line) {
        table = d.is_header && d.line < line ? d.line : table;
        second = d;
    }
    *out =
        (struct toml_twice){.is_table = second.is_header, .name = second.name, .len = second.len};
    s = scan_start(text, len);
    while (second.line == line && next_definition(&s, &d) && d.line < line) {
        if (same_name(&d, &second) && (second.is_header || d.line > table)) {
            out->first_line = d.line;
            return true;
        }
    }
    return false;
}
