/*
 * Every message passes through err_set(), which cuts and cleans it: callers may format foreign
 * text.
 */
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* One line of valid UTF-8, whatever was put in and wherever it was cut: a message goes to journals
 * and sockets, which refuse anything else, and to terminals, which would do what it says. */
static void msg_tidy(char *msg, size_t size)
{
    size_t len = strlen(msg);
    if (len + 1 == size) {
        len = text_whole_chars(msg, len);
        msg[len] = '\0';
    }
    text_make_line(msg);
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
    assert(err != NULL && code < 0);
    va_list ap;
    va_start(ap, fmt);
    err->code = code;
    (void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    msg_tidy(err->msg, sizeof(err->msg));
    err->expected[0] = '\0';
    err->found[0] = '\0';
    return code;
}

static int code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT: return ERR_NO_SPACE;
    case ENOENT: return ERR_NOT_FOUND;
    case EEXIST: return ERR_EXISTS;
    default: return ERR_IO;
    }
}

int err_set_errno(struct err *err, int errnum, const char *fmt, ...)
{
    assert(err != NULL);
    char text[sizeof(err->msg)];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_set(err, code_of_errno(errnum), "%s: %s", text, strerror(errnum));
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    assert(err != NULL && err->code < 0);
    char head[sizeof(err->msg)];
    char tail[sizeof(err->msg)];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(head, sizeof(head), fmt, ap);
    va_end(ap);
    memcpy(tail, err->msg, sizeof(tail));
    return err_set(err, err->code, "%s: %s", head, tail);
}

void err_at(struct err *err, const char *file, size_t line)
{
    assert(err != NULL && file != NULL);
    text_copy_line(err->file, sizeof(err->file), file);
    err->line = line;
}

int err_differs(struct err *err, const char *what, const char *expected, const char *found)
{
    const int code = err_set(err, ERR_LOCK, "%s", what);
    text_copy_line(err->expected, sizeof(err->expected), expected == NULL ? "nothing" : expected);
    text_copy_line(err->found, sizeof(err->found), found == NULL ? "nothing" : found);
    return code;
}

int err_differs_int(struct err *err, const char *what, long long expected, long long found)
{
    char a[32];
    char b[32];
    (void)snprintf(a, sizeof(a), "%lld", expected);
    (void)snprintf(b, sizeof(b), "%lld", found);
    return err_differs(err, what, a, b);
}

int err_join(const struct err *from, struct err *err)
{
    char line[32] = "";
    char values[400] = "";
    assert(from != err && from->code < 0);
    if (from->line > 0) {
        (void)snprintf(line, sizeof(line), ":%zu", from->line);
    }
    if (from->expected[0] != '\0' || from->found[0] != '\0') {
        (void)snprintf(values, sizeof(values), ": expected %s, found %s", from->expected,
                       from->found);
    }
    return err_set(err, from->code, "%s%s%s%s%s", from->file, line,
                   from->file[0] == '\0' ? "" : ": ", from->msg, values);
}

void err_clear(struct err *err)
{
    *err = (struct err){0};
}

enum exit_code err_exit_code(int code)
{
    switch (code) {
    case ERR_NONE: return EXIT_OK;
    case ERR_USAGE: return EXIT_USAGE;
    case ERR_LOCK:
    case ERR_CORRUPT: return EXIT_LOCK;
    case ERR_INVALID: return EXIT_INVALID;
    case ERR_NO_DAEMON: return EXIT_NO_DAEMON;
    case ERR_MOVED: return EXIT_MOVED;
    default: return EXIT_ANY;
    }
}
