/*
 * The one way from text to a terminal. Names, questions, titles, messages and logs may come from a
 * stranger's program, a worker or a receipt: a terminal shows them and must never obey them.
 *
 * Kept are line ends, tabs and every printable character; a carriage return ends a line, as the
 * progress bars of workers use it. Every other control character, every mark that turns the
 * direction of what follows and every byte that is not UTF-8 becomes '?'.
 */
#ifndef BASE_TERMINAL_H
#define BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* With `styles`, the few sequences that preregctl itself writes pass: bold, dim, four colours and
 * their end, and "home, clear below" as the very first bytes. */
void terminal_text(FILE *to, const char *text, size_t len, bool styles);
/* Without styles. */
void terminal_printf(FILE *to, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* What a program may read, too: as it is, but to a terminal as text without styles. */
void terminal_data(FILE *to, const char *data, size_t len);

#endif
