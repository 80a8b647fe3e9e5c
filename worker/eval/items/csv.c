/*
 * One pass over the text with a pointer; a field is collected in a buffer and copied into the
 * arena. Line numbers are those of the file: next_line counts line ends inside quoted fields too,
 * so a message names the line where its record begins. A carriage return ends a record like a line
 * feed, alone or before one.
 */
#include "worker/eval/items/csv.h"

#include "base/strbuf.h"
#include "base/text.h"

int csv_start(struct csv_reader *r, const char *text, size_t len, struct err *err)
{
    if (memchr(text, '\0', len) != NULL)
        return err_set(err, ERR_SYNTAX, "holds a NUL byte");
    if (!text_is_utf8(text, len))
        return err_set(err, ERR_SYNTAX, "is not UTF-8");
    r->at = text;
    r->end = text + len;
    r->line = 0;
    r->next_line = 1;
    return 0;
}

static bool at_line_end(const struct csv_reader *r)
{
    return r->at == r->end || *r->at == '\n' || *r->at == '\r';
}

/* LF, CR or CRLF. */
static void skip_line_end(struct csv_reader *r)
{
    if (r->at < r->end && *r->at == '\r')
        r->at++;
    if (r->at < r->end && *r->at == '\n')
        r->at++;
    r->next_line++;
}

/* At the opening quote; ends after the closing one. */
static int read_quoted(struct csv_reader *r, struct strbuf *field, struct err *err)
{
    r->at++;
    for (;; r->at++) {
        if (r->at == r->end)
            return err_set(err, ERR_SYNTAX, "line %u: a quote is never closed", r->line);
        if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"'))
            break;
        if (*r->at == '"')
            r->at++;
        if (*r->at == '\n')
            r->next_line++;
        strbuf_addc(field, *r->at);
    }
    r->at++;
    if (!at_line_end(r) && *r->at != ',')
        return err_set(err, ERR_SYNTAX, "line %u: text after a closing quote", r->line);
    return 0;
}

/* One field, without its comma or line end. */
static int read_field(struct csv_reader *r, struct strbuf *field, struct err *err)
{
    if (r->at < r->end && *r->at == '"')
        return read_quoted(r, field, err);
    for (; !at_line_end(r) && *r->at != ','; r->at++)
        strbuf_addc(field, *r->at);
    return 0;
}

int csv_next(struct csv_reader *r, struct arena *arena, struct csv_record *record, bool *got,
             struct err *err)
{
    record->n = 0;
    *got = false;
    while (r->at < r->end && at_line_end(r))
        skip_line_end(r);
    if (r->at == r->end)
        return 0;
    r->line = r->next_line;
    struct strbuf field = STRBUF_INIT;
    int rc = 0;
    for (;;) {
        strbuf_clear(&field);
        rc = read_field(r, &field, err);
        if (rc == 0 && record->n == CSV_FIELDS_MAX)
            rc = err_set(err, ERR_SYNTAX, "line %u: more than %d fields", r->line, CSV_FIELDS_MAX);
        if (rc != 0)
            break;
        record->fields[record->n++] = arena_strndup(arena, field.buf, field.len);
        if (at_line_end(r))
            break;
        r->at++; /* the comma */
    }
    strbuf_release(&field);
    if (rc != 0)
        return rc;
    skip_line_end(r);
    *got = true;
    return 0;
}
