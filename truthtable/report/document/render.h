/* The three renderings of a report's document. Each appends a whole file to out; all text is
 * escaped here and nowhere else. The HTML is one file without scripts, links to elsewhere or fonts:
 * it reads the same in fifty years. The JSON holds every table as data (docs/report.md); its schema
 * number changes when a reader of the former one would no longer understand it. */
#ifndef TRUTHTABLE_REPORT_DOCUMENT_RENDER_H
#define TRUTHTABLE_REPORT_DOCUMENT_RENDER_H

#include "base/strbuf.h"
#include "truthtable/report/document/doc.h"

void render_md(const struct doc *d, struct strbuf *out);
void render_html(const struct doc *d, struct strbuf *out);
void render_json(const struct doc *d, struct strbuf *out);

#define REPORT_JSON_SCHEMA 1
#define EFFECTS_HEADING    "What the inputs of the table read"

/* style.css, compiled in; NUL-terminated. */
extern const char render_style[];

#endif
