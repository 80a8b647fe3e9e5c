/*
 * What preregctl prints: one answer, two renderers. An answer is a JSON object; --json prints it,
 * the text renderers draw tables from the same object. Text is built in a strbuf and written once,
 * so that a screen is never torn and tests can compare it.
 */
#ifndef CTL_TEXT_OUT_H
#define CTL_TEXT_OUT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

/* What a terminal, or whatever standard output is, can show. */
struct term {
    bool colour; /* a terminal, NO_COLOR unset or empty, TERM not "dumb" */
    bool utf8;
    bool is_terminal;
    size_t columns; /* 80 when unknown */
};

/* Styles of text; they vanish where the terminal shows no colour. */
enum style {
    STYLE_NONE,
    STYLE_BOLD,
    STYLE_DIM,
    STYLE_RED,
    STYLE_GREEN,
    STYLE_YELLOW,
    STYLE_CYAN,
};

/* How a member is drawn. Absent and null members are drawn as a dash. */
enum out_kind {
    OUT_TEXT,
    OUT_COUNT, /* right-aligned */
    OUT_NUMBER,
    OUT_SPAN, /* milliseconds, as "3 min 20 s" */
    OUT_YES,  /* "yes" or "no" */
    OUT_STATE /* a task's state, in its colour */
};

/* A column of a table, or a line of fields: its heading, and the member of each row that it
 * shows. */
struct out_column {
    const char *heading;
    const char *key;
    enum out_kind kind;
};

/* What standard output can show: colour, UTF-8, width. */
struct term term_of_stdout(void);
/* Appends text in a style, or plain where the terminal shows no colour. */
void out_styled(struct strbuf *sb, const struct term *t, enum style style, const char *text);
/* Appends untrusted text as part of one line: it can neither break the line nor control the
 * terminal. */
void out_line(struct strbuf *sb, const char *text);
/* One line per element of `rows`, under headings; the last column is not padded. */
void out_table(struct strbuf *sb, const struct term *t, const cJSON *rows,
               const struct out_column *columns, size_t n_columns);

/* The colour of a task's state; STYLE_NONE for unknown words. */
enum style out_state_style(const char *state);

/* Writes what was built, as a terminal may show it (base/terminal.h); the caller may go on with sb.
 */
void out_text(const struct strbuf *sb);
/* Writes data for other programs, JSON say, byte by byte unless it is a terminal that reads it. */
void out_data(const struct strbuf *sb);
/* Writes {"schema":1, …members of answer}. The answer is borrowed. */
int out_json(const cJSON *answer, struct err *err) MUST_CHECK;
/* ERR_IO when standard output took not everything (a full disk, say). */
int out_flush(struct err *err) MUST_CHECK;
/* Waits. ERR_IO at once when the reader of standard output is gone: a --follow that has nothing to
 * write would never notice. */
int out_wait(int64_t ms, struct err *err) MUST_CHECK;
/* The message to standard error and, with json, an object to standard output. command NULL: it was
 * about none. */
void out_error(const char *command, bool json, const struct err *err);

#endif
