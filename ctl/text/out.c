/*
 * Tables, styles, JSON and errors, all to a strbuf first. Widths are counted in columns of the
 * terminal, not in bytes. Untrusted text passes out_line() before it is in a table, and
 * terminal_text() or terminal_data() when it is written, which keeps control characters away from a
 * terminal.
 */
#include "ctl/text/out.h"

#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"

struct term term_of_stdout(void)
{
    struct term t = {.columns = 80};
    const char *no_color = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    bool dumb = kind == NULL || strcmp(kind, "dumb") == 0;
    t.is_terminal = isatty(STDOUT_FILENO) == 1;
    t.colour = t.is_terminal && !dumb && (no_color == NULL || no_color[0] == '\0');
    t.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    struct winsize size;
    /* the width of the window, where there is one */
    if (t.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        t.columns = size.ws_col;
    }
    return t;
}

/* The parameters of the escape sequence; NULL for no style. */
static const char *style_code(enum style style)
{
    switch (style) {
    case STYLE_BOLD: return "1";
    case STYLE_DIM: return "2";
    case STYLE_RED: return "31";
    case STYLE_GREEN: return "32";
    case STYLE_YELLOW: return "33";
    case STYLE_CYAN: return "36";
    case STYLE_NONE: break;
    }
    return NULL;
}

void out_styled(struct strbuf *sb, const struct term *t, enum style style, const char *text)
{
    const char *code = style_code(style);
    if (t->colour && code != NULL) {
        strbuf_addf(sb, "\033[%sm%s\033[0m", code, text);
    } else {
        strbuf_adds(sb, text);
    }
}

/* States of tasks and of programs share one table. */
enum style out_state_style(const char *state)
{
    static const struct {
        const char *state;
        enum style style;
    } rows[] = {
        {"waiting", STYLE_DIM},    {"ready", STYLE_NONE},       {"backoff", STYLE_YELLOW},
        {"starting", STYLE_CYAN},  {"running", STYLE_CYAN},     {"done", STYLE_GREEN},
        {"blocked", STYLE_RED},    {"never_run", STYLE_YELLOW}, {"paused", STYLE_YELLOW},
        {"finished", STYLE_GREEN}, {"finishing", STYLE_GREEN},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].state, state) == 0) {
            return rows[i].style;
        }
    }
    return STYLE_NONE;
}

void out_line(struct strbuf *sb, const char *text)
{
    const size_t from = sb->len;
    strbuf_adds(sb, text);
    text_make_line(sb->buf + from);
}

/* The member as text, without style. */
static void member_text(struct strbuf *sb, const struct term *t, const cJSON *v, enum out_kind kind)
{
    char number[JSON_NUMBER_MAX];
    if (v == NULL || cJSON_IsNull(v)) {
        strbuf_adds(sb, t->utf8 ? "–" : "-");
    } else if (cJSON_IsString(v)) {
        out_line(sb, v->valuestring);
    } else if (cJSON_IsBool(v)) {
        strbuf_adds(sb, cJSON_IsTrue(v) ? "yes" : "no");
    } else if (cJSON_IsNumber(v) && kind == OUT_SPAN) {
        char span[48];
        strbuf_adds(sb, clock_span_text((int64_t)v->valuedouble, span, sizeof(span)));
    } else if (cJSON_IsNumber(v) && kind == OUT_NUMBER && fabs(v->valuedouble) < 1e6) {
        strbuf_addf(sb, "%.6g", v->valuedouble);
    } else if (cJSON_IsNumber(v)) {
        json_number_text(v->valuedouble, number);
        strbuf_adds(sb, number);
    }
}

static void add_spaces(struct strbuf *sb, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        strbuf_addc(sb, ' ');
    }
}

static bool is_right(enum out_kind kind)
{
    return kind == OUT_COUNT || kind == OUT_NUMBER;
}

/* One cell of a table, ready to be padded. */
struct out_field {
    const char *text;
    enum style style;
    size_t width;
    bool right;
};

/* Text with its padding: on the left for numbers, else on the right. */
static void add_field(struct strbuf *sb, const struct term *t, const struct out_field *f)
{
    size_t columns = text_columns(f->text);
    size_t pad = columns < f->width ? f->width - columns : 0;
    add_spaces(sb, f->right ? pad : 0);
    out_styled(sb, t, f->style, f->text);
    add_spaces(sb, f->right ? 0 : pad);
}

/* A table while it is drawn. */
struct table {
    const struct out_column *columns;
    size_t n_columns;
    size_t *widths;
};

/* The width of every column: that of its widest text, headings included. */
static void table_measure(struct table *table, const struct term *t, const cJSON *rows)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < table->n_columns; i++) {
        table->widths[i] = text_columns(table->columns[i].heading);
    }
    for (const cJSON *row = rows ? rows->child : NULL; row != NULL; row = row->next) {
        for (size_t i = 0; i < table->n_columns; i++) {
            const struct out_column *c = &table->columns[i];
            strbuf_clear(&text);
            member_text(&text, t, json_member(row, c->key), c->kind);
            size_t width = text_columns(text.buf);
            table->widths[i] = width > table->widths[i] ? width : table->widths[i];
        }
    }
    strbuf_release(&text);
}

/* Appends one row; NULL appends the headings. The last column is not padded, so lines have no
 * spaces at their end. */
static void table_row(const struct table *table, struct strbuf *sb, const struct term *t,
                      const cJSON *row)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < table->n_columns; i++) {
        const struct out_column *c = &table->columns[i];
        strbuf_clear(&text);
        if (row != NULL) {
            member_text(&text, t, json_member(row, c->key), c->kind);
        } else {
            strbuf_adds(&text, c->heading);
        }
        bool last = i + 1 == table->n_columns;
        struct out_field f = {.text = text.buf, .style = STYLE_NONE, .right = is_right(c->kind)};
        f.width = last && !f.right ? 0 : table->widths[i];
        if (row == NULL) {
            f.style = STYLE_DIM;
        } else if (c->kind == OUT_STATE) {
            f.style = out_state_style(text.buf);
        }
        add_field(sb, t, &f);
        strbuf_adds(sb, last ? "\n" : "  ");
    }
    strbuf_release(&text);
}

void out_table(struct strbuf *sb, const struct term *t, const cJSON *rows,
               const struct out_column *columns, size_t n_columns)
{
    struct table table = {columns, n_columns, xcalloc(n_columns, sizeof(size_t))};
    table_measure(&table, t, rows);
    table_row(&table, sb, t, NULL);
    for (const cJSON *row = rows ? rows->child : NULL; row != NULL; row = row->next) {
        table_row(&table, sb, t, row);
    }
    free(table.widths);
}

void out_text(const struct strbuf *sb)
{
    terminal_text(stdout, sb->buf, sb->len, isatty(STDOUT_FILENO) == 1);
}

void out_data(const struct strbuf *sb)
{
    terminal_data(stdout, sb->buf, sb->len);
}

/* "schema" comes first, whatever the answer's own order is. */
int out_json(const cJSON *answer, struct err *err)
{
    cJSON *whole = json_object();
    json_put_int(whole, "schema", 1);
    for (const cJSON *m = answer->child; m != NULL; m = m->next) {
        if (strcmp(m->string, "schema") != 0) {
            json_put(whole, m->string, json_copy(m));
        }
    }
    struct strbuf sb = STRBUF_INIT;
    int rc = json_pretty(whole, &sb, err);
    strbuf_addc(&sb, '\n');
    if (rc == 0) {
        out_data(&sb);
    }
    strbuf_release(&sb);
    cJSON_Delete(whole);
    return rc;
}

int out_wait(int64_t ms, struct err *err)
{
    const int64_t until = clock_mono().ms + ms;
    for (int64_t left = ms; left >= 0; left = until - clock_mono().ms) {
        struct pollfd p = {.fd = STDOUT_FILENO};
        if (poll(&p, 1, left < 60000 ? (int)left : 60000) > 0 &&
            (p.revents & (POLLERR | POLLHUP))) {
            return err_set(err, ERR_IO, "the reader of standard output is gone");
        }
        if (left == 0) {
            break;
        }
    }
    return 0;
}

int out_flush(struct err *err)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return err_set_errno(err, errno, "write standard output");
    }
    return 0;
}

/* The line on stderr is for people in either case; the object is for the reader of stdout. What was
 * printed before is flushed first, because both streams may go to one pipe. */
void out_error(const char *command, bool json, const struct err *err)
{
    (void)fflush(stdout);
    terminal_printf(stderr, "preregctl%s%s: %s\n", command == NULL ? "" : " ",
                    command == NULL ? "" : command, err->msg);
    if (!json) {
        return;
    }
    cJSON *answer = json_object();
    cJSON *error = json_object();
    json_put_int(error, "code", err->code);
    json_put_int(error, "exit_code", (int64_t)err_exit_code(err->code));
    json_put_string(error, "message", err->msg);
    json_put(answer, "error", error);
    struct err ignored = {0};
    if (out_json(answer, &ignored) == 0) {
        (void)fflush(stdout);
    }
    cJSON_Delete(answer);
}
