/*
 * Renders the document as GitHub-flavored Markdown. Figures are reduced to their captions and
 * summaries; tables keep the columns that the page shows. Every text is escaped for the place where
 * it is printed.
 */
#include <string.h>

#include "truthtable/report/document/escape.h"
#include "truthtable/report/document/render.h"

/* A code span, or plain text where Markdown would misread it as the end of the span. */
static void add_code(struct strbuf *out, const char *text)
{
    bool plain = text[0] != '\0';
    for (const char *p = text; *p != '\0'; p++) {
        plain = plain && *p >= ' ' && *p < 0x7f && *p != '`' && *p != '|';
    }
    if (plain) {
        strbuf_addf(out, "`%s`", text);
    } else {
        escape_md(out, text);
    }
}

/* A bullet list; facts have their name in bold. */
static void add_items(struct strbuf *out, const struct doc_list *list)
{
    for (const struct doc_item *item = list->first; item != NULL; item = item->next) {
        strbuf_adds(out, "- ");
        if (item->name != NULL) {
            strbuf_adds(out, "**");
            escape_md(out, item->name);
            strbuf_adds(out, ":** ");
        }
        if (item->code) {
            add_code(out, item->text);
        } else {
            escape_md(out, item->text);
        }
        strbuf_addc(out, '\n');
    }
    strbuf_addc(out, '\n');
}

/* A highlighted row is bold, since Markdown has no color. */
static void add_row(struct strbuf *out, size_t n, const struct doc_row *row)
{
    strbuf_addc(out, '|');
    for (size_t i = 0; i < n; i++) {
        bool bold = row->tone == TONE_LIT && row->cells[i].text[0] != '\0';
        strbuf_addc(out, ' ');
        strbuf_adds(out, bold ? "**" : "");
        escape_md(out, row->cells[i].text);
        strbuf_adds(out, bold ? "**" : "");
        strbuf_adds(out, " |");
    }
    strbuf_addc(out, '\n');
}

/* The rule below the head carries the alignment. */
static void add_table(struct strbuf *out, const struct doc_block *b)
{
    static const char *const rules[] = {
        [ALIGN_TEXT] = "---|", [ALIGN_NUMBER] = "---:|", [ALIGN_MARK] = ":---:|"};
    const struct doc_table *t = b->table;
    const size_t n = doc_columns_shown(t);
    strbuf_addf(out, "*Table %u.* ", b->number);
    escape_md(out, t->caption);
    strbuf_adds(out, "\n\n|");
    for (size_t i = 0; i < n; i++) {
        strbuf_addc(out, ' ');
        escape_md(out, t->columns[i].title);
        strbuf_adds(out, " |");
    }
    strbuf_adds(out, "\n|");
    for (size_t i = 0; i < n; i++) {
        strbuf_adds(out, rules[t->columns[i].align]);
    }
    strbuf_addc(out, '\n');
    for (const struct doc_row *row = t->first; row != NULL; row = row->next) {
        add_row(out, n, row);
    }
    strbuf_addc(out, '\n');
}

/* One block by its kind. */
static void add_block(struct strbuf *out, const struct doc_block *b)
{
    switch (b->kind) {
    case BLOCK_HEADING:
        if (b->level == 2) {
            strbuf_addf(out, "## %u. ", b->number);
        } else {
            strbuf_adds(out, "### ");
        }
        escape_md(out, b->text);
        strbuf_adds(out, "\n\n");
        break;
    case BLOCK_PARAGRAPH:
        escape_md(out, b->text);
        strbuf_adds(out, "\n\n");
        break;
    case BLOCK_NOTICE:
        strbuf_adds(out, "> **");
        escape_md(out, b->text);
        strbuf_adds(out, "**\n\n");
        break;
    case BLOCK_LIST:
    case BLOCK_FACTS: add_items(out, &b->list); break;
    case BLOCK_TABLE: add_table(out, b); break;
    case BLOCK_FIGURE:
        strbuf_addf(out, "*Figure %u (drawn in report.html).* ", b->number);
        escape_md(out, b->figure->caption);
        strbuf_addc(out, ' ');
        escape_md(out, b->figure->summary);
        strbuf_adds(out, "\n\n");
        break;
    }
}

/* The head of the report, then the blocks in order. */
void render_md(const struct doc *d, struct strbuf *out)
{
    const struct doc_banner *banner = &d->banner;
    strbuf_adds(out, "# ");
    if (banner->label != NULL) {
        escape_md(out, banner->label);
        strbuf_adds(out, ": ");
    }
    escape_md(out, banner->outcome);
    if (strcmp(banner->outcome, banner->title) != 0) {
        strbuf_adds(out, ": ");
        escape_md(out, banner->title);
    }
    strbuf_adds(out, "\n\nProgram **");
    escape_md(out, banner->program);
    strbuf_adds(out, "**. ");
    escape_md(out, banner->question);
    strbuf_adds(out, "\n\n**");
    escape_md(out, banner->lead);
    strbuf_adds(out, "**\n\n");
    if (banner->errors.first != NULL) {
        add_items(out, &banner->errors);
    }
    if (banner->effects.first != NULL) {
        strbuf_adds(out, EFFECTS_HEADING ":\n\n");
        add_items(out, &banner->effects);
    }
    add_items(out, &banner->figures);
    for (const struct doc_block *b = d->first; b != NULL; b = b->next) {
        add_block(out, b);
    }
}
