/*
 * Works line by line: a header line decides whether the lines up to the next header belong to
 * [run]. A header-like line inside a multi-line string or array would be misread, which is why
 * callers parse and compare the result.
 */
#include "prereg/program/run_change.h"

#include <stdbool.h>
#include <string.h>

static size_t skip_blank(const char *line, size_t at)
{
    return at + strspn(line + at, " \t");
}

/* A line "[...]" and nothing behind it but a comment; *name: where the name begins. */
static bool is_header(const char *line, size_t len, size_t *name)
{
    size_t at = skip_blank(line, 0);
    if (at >= len || line[at] != '[') {
        return false;
    }
    at += line[at + 1] == '[' ? 2 : 1;
    *name = skip_blank(line, at);
    const char *end = memchr(line + at, ']', len - at);
    if (end == NULL || *name >= len || line[*name] == '[') {
        return false;
    }
    size_t behind = (size_t)(end - line);
    behind += strspn(end, "]");
    behind = skip_blank(line, behind);
    return behind >= len || strchr("#\r\n", line[behind]) != NULL;
}

static bool is_run(const char *line, size_t name)
{
    size_t end = name + 3;
    return strncmp(line + name, "run", 3) == 0 && strchr(" \t.]", line[end]) != NULL &&
           line[end] != '\0';
}

/* The lines of [run] tables, or all the others. */
static void add_lines(const char *text, bool of_run, struct strbuf *out)
{
    bool in_run = false;
    while (*text != '\0') {
        size_t name = 0;
        size_t len = strcspn(text, "\n");
        len += text[len] == '\n';
        if (is_header(text, len, &name)) {
            in_run = is_run(text, name);
        }
        if (in_run == of_run) {
            strbuf_add(out, text, len);
        }
        text += len;
    }
    if (out->len > 0 && out->buf[out->len - 1] != '\n') {
        strbuf_addc(out, '\n');
    }
}

void run_text_replace(const char *text, const char *from, struct strbuf *out)
{
    add_lines(text, false, out);
    add_lines(from, true, out);
}
