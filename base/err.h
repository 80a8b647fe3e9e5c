/*
 * Errors: a negative code and one message that grows on the way up.
 *
 * A function that can fail returns int (0, or a negative ERR_*) and takes `struct err *err` last.
 * err_set() where it happens, err_wrap() on the way up ("load grid.toml: line 12: expected a
 * number"), logged or printed once, at the top. `err` is never NULL. The message never holds a
 * newline.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stddef.h>

#define MUST_CHECK        __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

enum err_code {
    ERR_NONE = 0,
    ERR_USAGE = -1,     /* the caller's words are off (exit 2) */
    ERR_LOCK = -2,      /* lock mismatch, drift or tampering (exit 3) */
    ERR_INVALID = -3,   /* the program is invalid (exit 5) */
    ERR_NO_DAEMON = -4, /* no daemon answers on the socket (exit 6) */
    ERR_IO = -5,        /* the operating system failed; its words are in the message */
    ERR_NO_SPACE = -6,  /* ENOSPC or EDQUOT */
    ERR_NOT_FOUND = -7,
    ERR_EXISTS = -8,
    ERR_SYNTAX = -9, /* malformed text from outside */
    ERR_RANGE = -10, /* a number from outside its range, or something over its size limit */
    ERR_BUSY = -11,  /* another process holds it */
    ERR_TIMEOUT = -12,
    ERR_PROTOCOL = -13, /* the peer or worker broke the protocol */
    ERR_REFUSED = -14,  /* allowed never or not now; the message says why */
    ERR_CORRUPT = -15,  /* a digest or chain does not hold */
    ERR_VERSION = -16,  /* written by another version */
    ERR_OTHER = -17,
    ERR_MOVED = -18, /* another daemon has taken the state folder over (exit 8) */
};

struct err {
    int code;
    char msg[256]; /* cut to fit at a character boundary, always terminated */
    /* Only of an err that was zero, or cleared, before err_at(): the others leave the place alone.
     */
    char file[128];     /* "" when it is about no single file */
    size_t line;        /* from 1; 0: no line */
    char expected[160]; /* of err_differs(); "" with found: there is nothing to compare */
    char found[160];
};

/* Exit codes of every executable; docs/exit-codes.md. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_ANY = 1,
    EXIT_USAGE = 2,
    EXIT_LOCK = 3,
    EXIT_INDETERMINATE = 4,
    EXIT_INVALID = 5,
    EXIT_NO_DAEMON = 6,
    EXIT_VOID = 7,
    EXIT_MOVED = 8,
};

/* Sets code and message; returns the code, so that `return err_set(...)` works. */
int err_set(struct err *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* As err_set, from errno: ENOSPC and EDQUOT become ERR_NO_SPACE, ENOENT ERR_NOT_FOUND, the rest
 * ERR_IO;
 * ": <strerror>" is appended. */
int err_set_errno(struct err *err, int errnum, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Prepends "<formatted>: " to the message; returns the code it already had. Values of err_differs()
 * are dropped. */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Sets the place of the error that may follow. */
void err_at(struct err *err, const char *file, size_t line);
/* Sets ERR_LOCK: `what` has another value than follows. NULL is shown as "nothing". */
int err_differs(struct err *err, const char *what, const char *expected, const char *found);
int err_differs_int(struct err *err, const char *what, long long expected, long long found);
/* Sets one with its place and values in the message: "journal.jsonl:12: hash: expected ..., found
 * ..."; returns the code. */
int err_join(const struct err *from, struct err *err);

void err_clear(struct err *err);

/* The documented exit code for an error code. */
enum exit_code err_exit_code(int code);

#endif
