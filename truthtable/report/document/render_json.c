/*
 * Renders the document as JSON, for programs: sections, tables and cells by their identifiers, with
 * numbers beside the printed texts. It is written piece by piece, because a tree of every cell of a
 * large program would need many times the memory. The schema is in docs/report.md.
 */
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "truthtable/report/document/render.h"

/* Each row of a table is on a line of its own, so that two reports can be compared with diff. */

/* Texts come from files that were read as UTF-8, but for what a worker left on disk. */
static void add_string(struct strbuf *out, const char *text)
{
    if (text == NULL) {
        strbuf_adds(out, "null");
        return;
    }
    char *copy = xstrdup(text);
    text_make_utf8(copy);
    json_add_string(out, copy);
    free(copy);
}

/* A member with a text, or null. */
static void add_member(struct strbuf *out, const char *key, const char *text)
{
    strbuf_addf(out, ",\"%s\":", key);
    add_string(out, text);
}

/* A plain tone is not written. */
static void add_tone(struct strbuf *out, enum doc_tone tone)
{
    static const char *const names[TONE_NR] = {
        [TONE_PLAIN] = "plain", [TONE_LIT] = "lit", [TONE_GOOD] = "good",
        [TONE_WARN] = "warn",   [TONE_BAD] = "bad", [TONE_MUTED] = "muted",
    };
    /* Most cells are plain, and the file would double with them. */
    if (tone != TONE_PLAIN) {
        add_member(out, "tone", names[tone]);
    }
}

/* NaN and infinity become null. */
static void add_number(struct strbuf *out, double v)
{
    char text[JSON_NUMBER_MAX];
    if (!isfinite(v)) {
        strbuf_adds(out, "null");
        return;
    }
    json_number_text(v, text);
    strbuf_adds(out, text);
}

/* The text as printed, and the data behind it. */
static void add_cell(struct strbuf *out, const struct doc_cell *cell)
{
    static const char *const flags[] = {"null", "false", "true"};
    strbuf_adds(out, "{\"text\":");
    add_string(out, cell->text);
    add_tone(out, cell->tone);
    for (const struct doc_datum *datum = cell->data; datum != NULL; datum = datum->next) {
        strbuf_addc(out, ',');
        add_string(out, datum->name);
        strbuf_addc(out, ':');
        if (datum->kind == DATUM_FLAG) {
            strbuf_adds(out, flags[datum->flag + 1]);
        } else {
            add_number(out, datum->number);
        }
    }
    strbuf_addc(out, '}');
}

/* "holds" says what a column contains: text, numbers or marks. */
static void add_columns(struct strbuf *out, const struct doc_table *t)
{
    static const char *const aligns[] = {
        [ALIGN_TEXT] = "text", [ALIGN_NUMBER] = "number", [ALIGN_MARK] = "mark"};
    strbuf_adds(out, ",\"columns\":[");
    for (size_t i = 0; i < t->n_columns; i++) {
        strbuf_adds(out, i == 0 ? "{\"title\":" : ",{\"title\":");
        add_string(out, t->columns[i].title);
        add_member(out, "holds", aligns[t->columns[i].align]);
        strbuf_addc(out, '}');
    }
    strbuf_addc(out, ']');
}

/* All columns, including those that pages leave out. */
static void add_table(struct strbuf *out, const struct doc_block *b)
{
    const struct doc_table *t = b->table;
    add_member(out, "id", t->id);
    strbuf_addf(out, ",\"number\":%u", b->number);
    add_member(out, "caption", t->caption);
    add_columns(out, t);
    strbuf_adds(out, ",\"rows\":[");
    for (const struct doc_row *row = t->first; row != NULL; row = row->next) {
        strbuf_addf(out, "%s\n     {\"cells\":[", row == t->first ? "" : ",");
        for (size_t i = 0; i < t->n_columns; i++) {
            strbuf_adds(out, i == 0 ? "" : ",");
            add_cell(out, &row->cells[i]);
        }
        strbuf_addc(out, ']');
        add_tone(out, row->tone);
        strbuf_addc(out, '}');
    }
    strbuf_addc(out, ']');
}

/* The items of a list or of facts. */
static void add_items(struct strbuf *out, const char *key, const struct doc_list *list)
{
    strbuf_addf(out, ",\"%s\":[", key);
    for (const struct doc_item *item = list->first; item != NULL; item = item->next) {
        strbuf_adds(out, item == list->first ? "{\"text\":" : ",{\"text\":");
        add_string(out, item->text);
        if (item->name != NULL) {
            add_member(out, "name", item->name);
        }
        add_tone(out, item->tone);
        strbuf_addc(out, '}');
    }
    strbuf_addc(out, ']');
}

/* The drawing itself is not data and is left out. */
static void add_figure(struct strbuf *out, const struct doc_block *b)
{
    add_member(out, "id", b->figure->id);
    strbuf_addf(out, ",\"number\":%u", b->number);
    add_member(out, "caption", b->figure->caption);
    add_member(out, "summary", b->figure->summary);
}

/* One block by its kind. */
static void add_block(struct strbuf *out, const struct doc_block *b)
{
    static const char *const kinds[] = {
        [BLOCK_HEADING] = "heading", [BLOCK_PARAGRAPH] = "paragraph", [BLOCK_NOTICE] = "notice",
        [BLOCK_LIST] = "list",       [BLOCK_FACTS] = "facts",         [BLOCK_TABLE] = "table",
        [BLOCK_FIGURE] = "figure",
    };
    strbuf_addf(out, "{\"kind\":\"%s\"", kinds[b->kind]);
    switch (b->kind) {
    case BLOCK_HEADING:
    case BLOCK_PARAGRAPH:
    case BLOCK_NOTICE:
        add_member(out, "text", b->text);
        add_tone(out, b->tone);
        break;
    case BLOCK_LIST:
    case BLOCK_FACTS: add_items(out, "items", &b->list); break;
    case BLOCK_TABLE: add_table(out, b); break;
    case BLOCK_FIGURE: add_figure(out, b); break;
    }
    strbuf_addc(out, '}');
}

/* The head of the report, without a list around it. */
static void add_banner(struct strbuf *out, const struct doc_banner *b)
{
    add_member(out, "program", b->program);
    add_member(out, "root", b->root);
    add_member(out, "head", b->head);
    add_member(out, "question", b->question);
    add_member(out, "label", b->label);
    strbuf_adds(out, ",\n \"verdict\":{\"outcome\":");
    add_string(out, b->outcome);
    add_member(out, "kind", b->kind);
    add_member(out, "title", b->title);
    add_member(out, "lead", b->lead);
    add_tone(out, b->tone);
    add_items(out, "errors", &b->errors);
    add_items(out, "effects", &b->effects);
    add_items(out, "figures", &b->figures);
    strbuf_addc(out, '}');
}

/* Headings of level 3 are blocks within a section. */
static bool opens_section(const struct doc_block *b)
{
    return b != NULL && b->kind == BLOCK_HEADING && b->level == 2;
}

/* Blocks up to the next section; returns where that begins. */
static const struct doc_block *add_blocks(struct strbuf *out, const struct doc_block *from)
{
    const struct doc_block *b = from;
    strbuf_adds(out, "[");
    for (; b != NULL && !opens_section(b); b = b->next) {
        /* One block to a line, indented for the eye. */
        strbuf_adds(out, b == from ? "\n   " : ",\n   ");
        add_block(out, b);
    }
    strbuf_adds(out, "]");
    return b;
}

/* Blocks before the first section are the notices. */
void render_json(const struct doc *d, struct strbuf *out)
{
    strbuf_addf(out, "{\"schema\":%d", REPORT_JSON_SCHEMA);
    add_banner(out, &d->banner);
    strbuf_adds(out, ",\n \"notices\":");
    const struct doc_block *b = add_blocks(out, d->first);
    strbuf_adds(out, ",\n \"sections\":[");
    const struct doc_block *first = b;
    while (b != NULL) {
        strbuf_adds(out, b == first ? "\n  {\"id\":" : ",\n  {\"id\":");
        add_string(out, b->id);
        strbuf_addf(out, ",\"number\":%u", b->number);
        add_member(out, "title", b->text);
        strbuf_adds(out, ",\"blocks\":");
        b = add_blocks(out, b->next);
        strbuf_addc(out, '}');
    }
    strbuf_adds(out, "]}\n");
}
