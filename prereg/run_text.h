/*
 * The [run] tables of a program's text, taken out of one text and put into another: for an amended
 * program that is submitted again with another [run]. Only tables that begin with a line of their
 * own ([run], [run.STAGE]) are seen, and lines are told apart without reading TOML: the caller
 * parses what comes out, and holds it against what it was made of.
 */
#ifndef PREREG_RUN_TEXT_H
#define PREREG_RUN_TEXT_H

#include "base/strbuf.h"

/* `text` without its [run] tables, then those of `from`. */
void run_text_replace(const char *text, const char *from, struct strbuf *out);

#endif
