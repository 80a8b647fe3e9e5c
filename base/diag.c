/*
 * Items are kept in the order in which they were added and sorted by place only for printing, so
 * that of several items at one place the first found comes first.
 */
#include "base/diag.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/xalloc.h"

void diag_init(struct diag *d, const char *file)
{
    *d = (struct diag){.file = file == NULL ? NULL : xstrdup(file)};
    if (d->file != NULL) {
        text_make_line(d->file); /* for people alone */
    }
}

void diag_release(struct diag *d)
{
    for (size_t i = 0; i < d->n_items; i++) {
        free(d->items[i].msg);
    }
    free(d->items);
    free(d->file);
    *d = (struct diag){0};
}

void diag_add(struct diag *d, enum diag_level level, unsigned line, unsigned column,
              const char *fmt, ...)
{
    if (level == DIAG_ERROR) {
        d->n_errors++;
    }
    if (d->n_items >= DIAG_MAX) {
        d->n_dropped++;
        return;
    }
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    text_make_line(text);
    ARRAY_GROW(d->items, d->n_items, d->cap);
    d->items[d->n_items++] =
        (struct diag_item){.level = level, .line = line, .column = column, .msg = xstrdup(text)};
}

static const char *level_name(enum diag_level level)
{
    switch (level) {
    case DIAG_ERROR: return "error";
    case DIAG_WARNING: return "warning";
    case DIAG_NOTE: return "note";
    }
    return "?";
}

static int by_place(const void *a, const void *b)
{
    const struct diag_item *x = *(const struct diag_item *const *)a;
    const struct diag_item *y = *(const struct diag_item *const *)b;
    if (x->line != y->line) {
        return x->line < y->line ? -1 : 1;
    }
    if (x->column != y->column) {
        return x->column < y->column ? -1 : 1;
    }
    return x < y ? -1 : (x > y ? 1 : 0); /* as added: the items are in one array */
}

static const struct diag_item **sorted(const struct diag *d)
{
    const struct diag_item **order = xcalloc(d->n_items, sizeof(*order));
    for (size_t i = 0; i < d->n_items; i++) {
        order[i] = &d->items[i];
    }
    if (d->n_items > 1) {
        qsort(order, d->n_items, sizeof(*order), by_place);
    }
    return order;
}

static void print(const struct diag *d, FILE *out, bool errors_alone)
{
    const struct diag_item **order = sorted(d);
    for (size_t i = 0; i < d->n_items; i++) {
        const struct diag_item *it = order[i];
        if (errors_alone && it->level != DIAG_ERROR) {
            continue;
        }
        const char *file = d->file == NULL ? "input" : d->file;
        if (it->line == 0) {
            (void)fprintf(out, "%s: %s: %s\n", file, level_name(it->level), it->msg);
        } else {
            (void)fprintf(out, "%s:%u:%u: %s: %s\n", file, it->line, it->column,
                          level_name(it->level), it->msg);
        }
    }
    if (d->n_dropped > 0) {
        (void)fprintf(out, "... and %zu more\n", d->n_dropped);
    }
    free(order);
}

void diag_print(const struct diag *d, FILE *out)
{
    print(d, out, false);
}

void diag_print_errors(const struct diag *d, FILE *out)
{
    print(d, out, true);
}

int diag_result(const struct diag *d, struct err *err)
{
    if (d->n_errors == 0) {
        return 0;
    }
    const struct diag_item **order = sorted(d);
    size_t first = 0;
    while (first < d->n_items && order[first]->level != DIAG_ERROR) {
        first++;
    }
    const char *file = d->file == NULL ? "input" : d->file;
    const char *msg = first < d->n_items ? order[first]->msg : "errors";
    unsigned line = first < d->n_items ? order[first]->line : 0;
    unsigned column = first < d->n_items ? order[first]->column : 0;
    int code = d->n_errors > 1
                   ? err_set(err, ERR_INVALID, "%s:%u:%u: %s (and %zu more error%s)", file, line,
                             column, msg, d->n_errors - 1, d->n_errors == 2 ? "" : "s")
                   : err_set(err, ERR_INVALID, "%s:%u:%u: %s", file, line, column, msg);
    free(order);
    return code;
}
