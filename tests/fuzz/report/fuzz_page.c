/* Any text, in every place of a document: nothing of it becomes markup, breaks a table row or
 * leaves bytes that are not UTF-8. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "truthtable/report/document/escape.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/document/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_escapes(const char *text)
{
    struct strbuf html = STRBUF_INIT;
    struct strbuf md = STRBUF_INIT;
    escape_html(&html, text);
    escape_md(&md, text);
    assert(text_is_utf8(html.buf, html.len) && text_is_utf8(md.buf, md.len));
    assert(strpbrk(html.buf, "<>\"'\n") == NULL && strpbrk(md.buf, "<>\n\r") == NULL);
    for (const char *bar = strchr(md.buf, '|'); bar != NULL; bar = strchr(bar + 1, '|')) {
        assert(bar > md.buf && bar[-1] == '\\');
    }
    strbuf_release(&html);
    strbuf_release(&md);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

static void text_cell(const struct doc_slot *s)
{
    s->cell->text = s->row;
}

static void check_document(const char *text)
{
    const struct doc_column columns[] = {COLUMN(text, ALIGN_TEXT, text_cell),
                                         COLUMN("b", ALIGN_NUMBER, text_cell)};
    struct doc d;
    struct strbuf html = STRBUF_INIT;
    struct strbuf md = STRBUF_INIT;
    struct strbuf json = STRBUF_INIT;
    doc_init(&d);
    d.banner = (struct doc_banner){.program = text,
                                   .question = text,
                                   .kind = text,
                                   .outcome = text,
                                   .title = text,
                                   .lead = text};
    doc_section(&d, "section", text);
    doc_paragraph(&d, "%s", text);
    doc_item(&d, doc_facts(&d), text, text)->code = true;
    struct doc_table *t = doc_table(&d, "table", text, columns, 2);
    (void)doc_row(&d, t, text);
    const struct plot_share share = {.label = text, .share = 1};
    struct plot_shares plot = {
        .head = {.title = text, .desc = text}, .shares = &share, .n_shares = 1};
    plot_shares(doc_figure(&d, "figure", text, &plot.head), &plot);
    render_html(&d, &html);
    render_md(&d, &md);
    render_json(&d, &json);
    assert(count(html.buf, "<table>") == 1 && count(html.buf, "<script") == 0);
    assert(count(html.buf, "<td") + count(html.buf, "<th scope=\"row\"") == 2);
    assert(count(html.buf, "<h2") == 1 && count(html.buf, "<p>") == 1);
    assert(count(md.buf, "\n| ") == 2);
    strbuf_release(&html);
    strbuf_release(&md);
    strbuf_release(&json);
    doc_release(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    check_escapes(text);
    check_document(text);
    free(text);
    return 0;
}
