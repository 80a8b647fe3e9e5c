/*
 * Moves the [run] tables of one program's text into another: for an amended program that is
 * submitted again with another [run]. Only tables that begin with a line of their own ([run],
 * [run.STAGE]) are recognized, and lines are classified without parsing TOML: the caller parses the
 * result and compares it with the two texts it was made from.
 */
#ifndef PREREG_PROGRAM_RUN_TEXT_H
#define PREREG_PROGRAM_RUN_TEXT_H

#include "base/strbuf.h"

/* `text` without its [run] tables, then those of `from`. */
void run_text_replace(const char *text, const char *from, struct strbuf *out);

#endif
