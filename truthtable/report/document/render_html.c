/*
 * Renders the document as one HTML file: inline style, inline SVG, no script, nothing loaded from
 * anywhere. A content policy forbids all sources, in case a text should ever get past the escaping.
 * Markup is accessible: row and column heads have a scope, figures have titles and descriptions,
 * and color never carries a meaning alone.
 */
#include "truthtable/report/document/escape.h"
#include "truthtable/report/document/render.h"

/* Nothing but the inline style may be used: the page cannot load anything, whatever its texts
 * contain.
 */
#define CONTENT_POLICY                                                                             \
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

#define WIDE_COLUMNS ((size_t)7)  /* more are set smaller on paper */
#define SHORT_ROWS   ((size_t)24) /* a table that is kept on one printed page */

/* A tone is a class of the style sheet. */
static const char *tone_class(enum doc_tone tone)
{
    static const char *const names[TONE_NR] = {
        [TONE_PLAIN] = "plain", [TONE_LIT] = "lit", [TONE_GOOD] = "good",
        [TONE_WARN] = "warn",   [TONE_BAD] = "bad", [TONE_MUTED] = "muted",
    };
    return names[tone];
}

/* An element with escaped text. */
static void add_element(struct strbuf *out, const char *tag, const char *text)
{
    strbuf_addf(out, "<%s>", tag);
    escape_html(out, text);
    strbuf_addf(out, "</%s>\n", tag);
}

/* An item's text; digests and paths in a fixed pitch. */
static void add_value(struct strbuf *out, const struct doc_item *item)
{
    strbuf_adds(out, item->code ? "<code>" : "");
    escape_html(out, item->text);
    strbuf_adds(out, item->code ? "</code>" : "");
}

/* Names and values as a description list. */
static void add_facts(struct strbuf *out, const struct doc_list *list, const char *cls)
{
    strbuf_addf(out, "<dl class=\"%s\">\n", cls);
    for (const struct doc_item *item = list->first; item != NULL; item = item->next) {
        strbuf_addf(out, "<div class=\"%s\"><dt>", tone_class(item->tone));
        escape_html(out, item->name);
        strbuf_adds(out, "</dt><dd>");
        add_value(out, item);
        strbuf_adds(out, "</dd></div>\n");
    }
    strbuf_adds(out, "</dl>\n");
}

/* Items as a bullet list. */
static void add_list(struct strbuf *out, const struct doc_list *list)
{
    strbuf_adds(out, "<ul>\n");
    for (const struct doc_item *item = list->first; item != NULL; item = item->next) {
        strbuf_addf(out, "<li class=\"%s\">", tone_class(item->tone));
        add_value(out, item);
        strbuf_adds(out, "</li>\n");
    }
    strbuf_adds(out, "</ul>\n");
}

/* Cells with their alignment and tone. */
static void add_row(struct strbuf *out, const struct doc_table *t, size_t n,
                    const struct doc_row *row)
{
    static const char *const aligns[] = {
        [ALIGN_TEXT] = "text", [ALIGN_NUMBER] = "num", [ALIGN_MARK] = "mark"};
    strbuf_addf(out, "<tr class=\"%s\">", tone_class(row->tone));
    for (size_t i = 0; i < n; i++) {
        /* a name is not repeated from the row above, and a row head without a name would be read as
         * empty */
        bool heads = i == 0 && row->cells[0].text != NULL && row->cells[0].text[0] != '\0';
        const char *tag = heads ? "th" : "td";
        strbuf_addf(out, "<%s%s class=\"%s %s\">", tag, heads ? " scope=\"row\"" : "",
                    aligns[t->columns[i].align], tone_class(row->cells[i].tone));
        escape_html_breaking(out, row->cells[i].text);
        strbuf_addf(out, "</%s>", tag);
    }
    strbuf_adds(out, "</tr>\n");
}

/* Wide tables scroll on the screen and are set smaller on paper; short ones are kept on one
 * page. */
static void add_table(struct strbuf *out, const struct doc_block *b)
{
    static const char *const aligns[] = {
        [ALIGN_TEXT] = "text", [ALIGN_NUMBER] = "num", [ALIGN_MARK] = "mark"};
    const struct doc_table *t = b->table;
    const size_t n = doc_columns_shown(t);
    strbuf_addf(out,
                "<div class=\"scroll%s%s\" id=\"table-%s\" tabindex=\"0\" role=\"region\" "
                "aria-label=\"Table %u\">\n",
                t->n_rows <= SHORT_ROWS ? " short" : "", n > WIDE_COLUMNS ? " wide" : "", t->id,
                b->number);
    strbuf_addf(out, "<table>\n<caption><span><b>Table %u.</b> ", b->number);
    escape_html(out, t->caption);
    strbuf_adds(out, "</span></caption>\n<thead><tr>");
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(out, "<th scope=\"col\" class=\"%s\">", aligns[t->columns[i].align]);
        escape_html_breaking(out, t->columns[i].title);
        strbuf_adds(out, "</th>");
    }
    strbuf_adds(out, "</tr></thead>\n<tbody>\n");
    for (const struct doc_row *row = t->first; row != NULL; row = row->next) {
        add_row(out, t, n, row);
    }
    strbuf_adds(out, "</tbody>\n</table>\n</div>\n");
}

/* The drawing and its caption. */
static void add_figure(struct strbuf *out, const struct doc_block *b)
{
    strbuf_adds(out, "<figure>\n<div class=\"scroll\">\n");
    strbuf_add(out, b->figure->svg.buf, b->figure->svg.len);
    strbuf_addf(out, "</div>\n<figcaption><b>Figure %u.</b> ", b->number);
    escape_html(out, b->figure->caption);
    strbuf_adds(out, "</figcaption>\n</figure>\n");
}

/* Sections are numbered and can be linked to; subsections are neither. */
static void add_heading(struct strbuf *out, const struct doc_block *b)
{
    if (b->level == 2) {
        strbuf_addf(out, "<h2 id=\"%s\"><span class=\"no\">%u</span> ", b->id, b->number);
        escape_html(out, b->text);
        strbuf_adds(out, "</h2>\n");
    } else {
        add_element(out, "h3", b->text);
    }
}

/* One block by its kind. */
static void add_block(struct strbuf *out, const struct doc_block *b)
{
    switch (b->kind) {
    case BLOCK_HEADING: add_heading(out, b); break;
    case BLOCK_PARAGRAPH: add_element(out, "p", b->text); break;
    case BLOCK_NOTICE:
        strbuf_addf(out, "<p class=\"notice %s\" role=\"note\">", tone_class(b->tone));
        escape_html(out, b->text);
        strbuf_adds(out, "</p>\n");
        break;
    case BLOCK_LIST: add_list(out, &b->list); break;
    case BLOCK_FACTS: add_facts(out, &b->list, "facts"); break;
    case BLOCK_TABLE: add_table(out, b); break;
    case BLOCK_FIGURE: add_figure(out, b); break;
    }
}

/* Links to all sections. */
static void add_contents(struct strbuf *out, const struct doc *d)
{
    strbuf_adds(out, "<nav aria-label=\"Contents\"><ol>\n");
    for (const struct doc_block *b = d->first; b != NULL; b = b->next) {
        if (b->kind == BLOCK_HEADING && b->level == 2) {
            strbuf_addf(out, "<li><a href=\"#%s\">", b->id);
            escape_html(out, b->text);
            strbuf_adds(out, "</a></li>\n");
        }
    }
    strbuf_adds(out, "</ol></nav>\n");
}

/* The head of the report: question, verdict, reason, and the numbers that matter. */
static void add_banner(struct strbuf *out, const struct doc_banner *b)
{
    strbuf_addf(out, "<header class=\"banner %s\">\n<p class=\"eyebrow\">", tone_class(b->tone));
    if (b->label != NULL) {
        strbuf_adds(out, "<b>");
        escape_html(out, b->label);
        strbuf_adds(out, "</b> &middot; report of an imported program &middot; <b>");
    } else {
        strbuf_adds(out, "Report of a pre-registered program &middot; <b>");
    }
    escape_html(out, b->program);
    strbuf_adds(out, "</b></p>\n<p class=\"question\">");
    escape_html(out, b->question);
    strbuf_adds(out, "</p>\n<div class=\"verdict\"><p class=\"kind\">");
    escape_html(out, b->kind);
    strbuf_adds(out, "</p>\n<h1><span class=\"outcome\">");
    escape_html(out, b->outcome);
    strbuf_adds(out, "</span> <span class=\"title\">");
    escape_html(out, b->title);
    strbuf_adds(out, "</span></h1>\n<p class=\"lead\">");
    escape_html(out, b->lead);
    strbuf_adds(out, "</p></div>\n");
    if (b->errors.first != NULL) {
        add_list(out, &b->errors);
    }
    if (b->effects.first != NULL) {
        add_element(out, "p", EFFECTS_HEADING ":");
        add_list(out, &b->effects);
    }
    add_facts(out, &b->figures, "figures");
    strbuf_adds(out, "</header>\n");
}

/* The whole page, from the same blocks as the other renderings. */
void render_html(const struct doc *d, struct strbuf *out)
{
    strbuf_adds(out,
                "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"" CONTENT_POLICY "\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    if (d->banner.label != NULL) {
        escape_html(out, d->banner.label);
        strbuf_adds(out, " - ");
    }
    escape_html(out, d->banner.program);
    strbuf_adds(out, ": ");
    escape_html(out, d->banner.outcome);
    strbuf_adds(out, "</title>\n<style>\n");
    strbuf_adds(out, render_style);
    strbuf_adds(out, "</style>\n</head>\n<body>\n<main>\n");
    add_banner(out, &d->banner);
    add_contents(out, d);
    for (const struct doc_block *b = d->first; b != NULL; b = b->next) {
        add_block(out, b);
    }
    strbuf_adds(out, "</main>\n</body>\n</html>\n");
}
