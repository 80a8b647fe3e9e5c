/* Text of any origin made harmless for a page. Level names, notes and paths may be any string:
 * nothing of theirs may become markup, break a table or turn the direction of the text around it.
 * Malformed UTF-8, control characters and bidirectional overrides become U+FFFD. */
#ifndef TRUTHTABLE_REPORT_DOCUMENT_ESCAPE_H
#define TRUTHTABLE_REPORT_DOCUMENT_ESCAPE_H

#include "base/strbuf.h"

/* For element text and double-quoted attributes alike. */
void escape_html(struct strbuf *out, const char *text);

/* The same, with places (<wbr>) where a long text may be broken: after a comma, an underscore or a
 * slash inside it, and every so often in a run that has none of them, as a digest. */
void escape_html_breaking(struct strbuf *out, const char *text);

/* For running text and table cells of GitHub-flavoured Markdown: everything shows as written, on
 * one line. */
void escape_md(struct strbuf *out, const char *text);

#endif
