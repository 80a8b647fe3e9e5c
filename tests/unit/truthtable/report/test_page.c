/* The page's building blocks: escaping, numbers, drawings and the two renderings of a document. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "truthtable/report/document/doc.h"
#include "truthtable/report/document/escape.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/document/plot_axis.h"
#include "truthtable/report/document/render.h"
#include "truthtable/report/document/svg.h"

#define GOLDEN TEST_SOURCE_DIR "/tests/unit/truthtable/report/fixtures/"

struct escape_case {
    const char *text;
    const char *html;
    const char *md;
};

static const struct escape_case escape_cases[] = {
    {"plain", "plain", "plain"},
    {"", "", ""},
    {"<script>&\"'", "&lt;script&gt;&amp;&quot;&#39;", "&lt;script&gt;&amp;\"'"},
    {"a|b*c_d`e", "a|b*c_d`e", "a\\|b\\*c\\_d\\`e"},
    {"[x](y)!", "[x](y)!", "\\[x\\](y)\\!"},
    {"two\nlines\tand\rmore", "two lines and\xef\xbf\xbdmore", "two lines and\xef\xbf\xbdmore"},
    {"# no heading", "# no heading", "\\# no heading"},
    {"- no item", "- no item", "\\- no item"},
    {"12. no item", "12. no item", "12\\. no item"},
    {"0.25", "0.25", "0.25"},
    {"+1.5", "+1.5", "+1.5"},
    {"--", "--", "\\--"},
    {"\xc3\x97 \xcf\x83", "\xc3\x97 \xcf\x83", "\xc3\x97 \xcf\x83"},
    {"bad \xff\xc3", "bad \xef\xbf\xbd\xef\xbf\xbd", "bad \xef\xbf\xbd\xef\xbf\xbd"},
    {"turn \xe2\x80\xae round", "turn \xef\xbf\xbd round", "turn \xef\xbf\xbd round"},
    {"bell \x07 del \x7f", "bell \xef\xbf\xbd del \xef\xbf\xbd",
     "bell \xef\xbf\xbd del \xef\xbf\xbd"},
};

static void test_escapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(escape_cases); i++) {
        CHECK_ROW("%s", escape_cases[i].text);
        struct strbuf html = STRBUF_INIT;
        struct strbuf md = STRBUF_INIT;
        escape_html(&html, escape_cases[i].text);
        escape_md(&md, escape_cases[i].text);
        assert_string_equal(html.buf, escape_cases[i].html);
        assert_string_equal(md.buf, escape_cases[i].md);
        strbuf_release(&html);
        strbuf_release(&md);
    }
}

static void test_breaks_long_names_only_before_letters(void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    escape_html_breaking(&out, "arch=moe,lr=1,042<b>_x, y_");
    assert_string_equal(out.buf, "arch=moe,<wbr>lr=1,042&lt;b&gt;_<wbr>x, y_");
    strbuf_release(&out);
}

static void test_numbers(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    assert_string_equal(fmt_fixed(&a, -1.25, 1), FMT_MINUS "1.2");
    assert_string_equal(fmt_fixed(&a, -0.00001, 3), "0.000");
    assert_string_equal(fmt_fixed(&a, (double)NAN, 3), FMT_NONE);
    assert_string_equal(fmt_fixed(&a, (double)INFINITY, 3), FMT_NONE);
    assert_string_equal(fmt_signed(&a, 0.5, 2), "+0.50");
    assert_string_equal(fmt_signed(&a, 0, 2), "0.00");
    assert_string_equal(fmt_whole(&a, 14042), "14,042");
    assert_string_equal(fmt_whole(&a, 1e300), "1.0000e+300");
    assert_string_equal(fmt_whole(&a, (double)NAN), FMT_NONE);
    assert_string_equal(fmt_short(&a, 0.25, 4), "0.25");
    assert_string_equal(fmt_short(&a, 1.73625, 5), "1.7363");
    assert_string_equal(fmt_short(&a, 34611712, 3), "34,611,712");
    assert_string_equal(fmt_short(&a, 0, 3), "0");
    assert_string_equal(fmt_short(&a, -2e-9, 2), FMT_MINUS "2.0e-09");
    assert_string_equal(fmt_with_error(&a, 1.09764, 0.0183), "1.098 \xc2\xb1 0.018");
    assert_string_equal(fmt_with_error(&a, -1.4029, 0.02), FMT_MINUS "1.403 \xc2\xb1 0.020");
    assert_string_equal(fmt_with_error(&a, 1234.5, 210), "1234 \xc2\xb1 210");
    assert_string_equal(fmt_with_error(&a, 0.5, 0), "0.5");
    assert_string_equal(fmt_with_error(&a, 0.5, (double)NAN), "0.5");
    assert_string_equal(fmt_count(&a, 999), "999");
    assert_string_equal(fmt_count(&a, -1234567), FMT_MINUS "1,234,567");
    assert_string_equal(fmt_count(&a, INT64_MIN), FMT_MINUS "9,223,372,036,854,775,808");
    assert_string_equal(fmt_plural(&a, 1, "cell", "cells"), "1 cell");
    assert_string_equal(fmt_plural(&a, 2000, "cell", "cells"), "2,000 cells");
    assert_string_equal(fmt_bytes(&a, 1536), "1.5 KiB");
    assert_string_equal(fmt_cut(&a, "\xc3\x97\xc3\x97\xc3\x97\xc3\x97", 3),
                        "\xc3\x97\xc3\x97\xe2\x80\xa6");
    assert_string_equal(fmt_cut(&a, "abc", 3), "abc");
    arena_release(&a);
}

struct axis_case {
    double values[2];
    double first;
    double step;
};

static const struct axis_case axis_cases[] = {
    {{0, 10}, 0, 2},         {{0.25, 0.27}, 0.25, 0.005}, {{-0.002, 0.006}, -0.002, 0.002},
    {{7, 7}, 6.7, 0.1}, /* one value has a range around it */
    {{0, 141963}, 0, 20000},
};

static void test_axes_have_round_ticks_inside(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(axis_cases); i++) {
        CHECK_ROW("axis_cases[%zu]", i);
        struct axis x = axis_empty();
        axis_see(&x, axis_cases[i].values[0]);
        axis_see(&x, axis_cases[i].values[1]);
        axis_see(&x, (double)NAN);
        axis_fit(&x, 0, 0, 100, 7);
        assert_true(fabs(x.step - axis_cases[i].step) < 1e-12);
        assert_true(fabs(axis_tick(&x, 0) - axis_cases[i].first) < 1e-9);
        for (size_t k = 0; !isnan(axis_tick(&x, k)); k++) {
            double at = axis_place(&x, axis_tick(&x, k));
            assert_true(at > -1e-6 && at < 100 + 1e-6);
            assert_true(k < 20);
        }
    }
}

/* Every element closed in order; void elements of HTML and <.../> need none. */
static void assert_balanced(const char *html)
{
    const char *open[64];
    size_t lens[64];
    size_t depth = 0;
    for (const char *at = strchr(html, '<'); at != NULL; at = strchr(at + 1, '<')) {
        bool closing = at[1] == '/';
        const char *name = at + 1 + (closing ? 1 : 0);
        size_t len = strcspn(name, " >/\n");
        const char *end = strchr(at, '>');
        assert_non_null(end);
        bool is_void = at[1] == '!' || end[-1] == '/' || strncmp(name, "meta", 4) == 0 ||
                       strncmp(name, "wbr", 3) == 0;
        if (closing) {
            assert_true(depth > 0);
            depth--;
            assert_int_equal(lens[depth], len);
            assert_memory_equal(open[depth], name, len);
        } else if (!is_void) {
            assert_true(depth < 64);
            open[depth] = name;
            lens[depth++] = len;
        }
    }
    assert_int_equal(depth, 0);
}

static void assert_golden(const char *name, const struct strbuf *actual)
{
    struct strbuf expected = STRBUF_INIT;
    struct err err = {0};
    char *path = xasprintf(GOLDEN "%s", name);
    char *mine = xasprintf(TEST_BINARY_DIR "/actual-%s", name); /* never beside the sources */
    if (file_read(path, 1 << 20, &expected, &err) != 0 || expected.len != actual->len ||
        memcmp(expected.buf, actual->buf, actual->len) != 0) {
        assert_int_equal(file_write_atomic(mine, actual->buf, actual->len, 0644, &err), 0);
        fail_msg("%s differs from %s (look at both)", mine, path);
    }
    strbuf_release(&expected);
    free(path);
    free(mine);
}

static void draw_dots(struct strbuf *out)
{
    static const struct plot_mark first[] = {{0.26, 0.255, 0.265, 0, "seed 1: 0.26"},
                                             {0.262, (double)NAN, (double)NAN, 0, "<seed 2>"},
                                             {0.255, (double)NAN, (double)NAN, 1, ">0.255"}};
    static const struct plot_mark second[] = {
        {(double)NAN, (double)NAN, (double)NAN, 0, "nothing"}};
    static const struct plot_row rows[] = {
        {"arch=dense", 0, first, 3},
        {"a name that is <far> longer than any label may be", 9, second, 1}};
    static const struct plot_rule rules[] = {{0.25, "chance 0.25", "chance"},
                                             {0.2505, "floor 0.2505", "floor"},
                                             {0.27, "best arm 0.27", "best"}};
    struct plot_dots plot = {.head = {"f", "Title & all", "Desc", "score", NULL},
                             .rows = rows,
                             .n_rows = 2,
                             .rules = rules,
                             .n_rules = 3,
                             .band_from = 0.2505};
    plot_dots(out, &plot);
}

static void draw_lines(struct strbuf *out)
{
    static const double xs[] = {0, 100, 200, 300};
    static const double falling[] = {8, 4, 3, 2.5};
    static const double broken[] = {8, 5, (double)NAN, 3};
    static const struct plot_curve curves[] = {
        {0, false, xs, falling, 4, "one", NULL, NULL, false},
        {1, true, xs, broken, 4, "two", NULL, NULL, false},
        {2, false, xs, falling, 0, "empty", NULL, NULL, false}};
    static const char *const names[] = {"arch=dense", "arch=<moe>", "none"};
    struct plot_lines plot = {.head = {"g", "Curves", "Desc", "step", "loss"},
                              .curves = curves,
                              .n_curves = 3,
                              .names = names,
                              .n_names = 3};
    plot_lines(out, &plot);
}

/* A band that breaks where a mark has none, a mark without neighbors, and the line at 0. */
static void draw_bands(struct strbuf *out)
{
    static const double xs[] = {0.1, 0.4, 0.7, 1};
    static const double gaps[] = {-0.05, 0.01, 0.03, 0.06};
    static const double lows[] = {-0.07, -0.01, (double)NAN, 0.04};
    static const double highs[] = {-0.03, 0.03, (double)NAN, 0.08};
    static const double only[] = {(double)NAN, (double)NAN, (double)NAN, -0.02};
    static const struct plot_curve curves[] = {{0, true, xs, gaps, 4, "one", lows, highs, true},
                                               {1, true, xs, only, 4, "two", NULL, NULL, true}};
    static const char *const names[] = {"active", "total"};
    struct plot_lines plot = {.head = {"b", "Gaps", "Desc", "fraction", "gap"},
                              .curves = curves,
                              .n_curves = 2,
                              .names = names,
                              .n_names = 2,
                              .zero = true};
    plot_lines(out, &plot);
}

static void draw_shares(struct strbuf *out)
{
    static const struct plot_share shares[] = {{"O1", 0.6, false, false},
                                               {"O<2>", 0.3, true, false},
                                               {"a long label for a sliver", 0.02, false, false},
                                               {"remainder", 0.08, false, true}};
    struct plot_shares plot = {
        .head = {"h", "Priors", "Desc", NULL, NULL}, .shares = shares, .n_shares = 4};
    plot_shares(out, &plot);
}

/* Every class of load, a blank, and rows that need less height than there is. */
static void draw_heat(struct strbuf *out)
{
    static const double xs[] = {1, 50, 100, 150, 200, 250, 300, 350};
    static const double loads[] = {0, 0.4, 0.7, 1, 1.4, 1.9, 2.5, (double)NAN,
                                   1, 1,   1,   1, 1,   1,   0,   0};
    static const struct plot_panel panels[] = {{"layer <0>", loads, 2}, {"layer 1", loads + 8, 1}};
    struct plot_heat plot = {.head = {"i", "Load", "Desc", "step", NULL},
                             .xs = xs,
                             .n_columns = 8,
                             .panels = panels,
                             .n_panels = 2};
    plot_heat(out, &plot);
}

static void test_drawings_are_as_they_were(void **state)
{
    static const struct {
        const char *golden;
        void (*draw)(struct strbuf *out);
    } cases[] = {{"dots.svg", draw_dots},
                 {"lines.svg", draw_lines},
                 {"bands.svg", draw_bands},
                 {"shares.svg", draw_shares},
                 {"heat.svg", draw_heat}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].golden);
        struct strbuf out = STRBUF_INIT;
        cases[i].draw(&out);
        assert_balanced(out.buf);
        assert_golden(cases[i].golden, &out);
        strbuf_release(&out);
    }
}

/* Of more columns than there are ticks: the first and the last have one, and as many as fit. */
static void test_ticks_of_a_heat_map(void **state)
{
    static const struct {
        size_t n_columns;
        size_t n_ticks;
    } cases[] = {{1, 1}, {2, 2}, {8, 8}, {9, 8}, {16, 8}, {59, 8}, {60, 8}};
    double xs[60];
    double loads[60];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(xs); i++) {
        xs[i] = 1 + (double)i;
        loads[i] = 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu columns", cases[i].n_columns);
        const struct plot_panel panel = {"layer", loads, 1};
        struct strbuf out = STRBUF_INIT;
        char last[32];
        size_t n = 0;
        plot_heat(&out, &(struct plot_heat){.head = {"i", "Load", "Desc", "step", NULL},
                                            .xs = xs,
                                            .n_columns = cases[i].n_columns,
                                            .panels = &panel,
                                            .n_panels = 1});
        (void)snprintf(last, sizeof(last), ">%zu</text>", cases[i].n_columns);
        assert_non_null(strstr(out.buf, ">1</text>"));
        assert_non_null(strstr(out.buf, last));
        for (const char *at = out.buf; (at = strstr(at, "class=\"axis\"")) != NULL; at++) {
            n++;
        }
        assert_int_equal(n, cases[i].n_ticks);
        strbuf_release(&out);
    }
}

/* "s0 d0": what tells a line from the others of a figure. */
/* What "%.2f" prints, without trailing zeros and without the sign of a zero. */
static const char *coordinate_text(char text[64], double v)
{
    int len = snprintf(text, 64, "%.2f", v);
    while (text[len - 1] == '0') {
        len--;
    }
    len -= text[len - 1] == '.' ? 1 : 0;
    text[len] = '\0';
    return strcmp(text, "-0") == 0 ? "0" : text;
}

static void expect_coordinate(double v)
{
    char text[64];
    struct strbuf want = STRBUF_INIT;
    struct strbuf out = STRBUF_INIT;
    struct svg s = {.out = &out};
    strbuf_addf(&want, "<polyline class=\"c\" points=\"%s,0\"/>\n", coordinate_text(text, v));
    svg_polyline(&s, "c", &(struct svg_point){v, 0}, 1);
    if (strcmp(out.buf, want.buf) != 0) {
        fail_msg("%.17g: %s", v, out.buf);
    }
    strbuf_release(&out);
    strbuf_release(&want);
}

static void test_coordinates_have_two_decimals_at_most(void **state)
{
    static const double values[] = {0,      -0.0,   0.001,   -0.001,      0.005,      -0.005,
                                    0.015,  0.125,  0.375,   -0.125,      1.005,      2.675,
                                    1e6,    -1e6,   999.995, 10,          -10.5,      0.1,
                                    100.01, 1e-300, 1234.5,  999999.9949, 0.994999999};
    struct rng rng;
    rng_seed(&rng, 1);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        expect_coordinate(values[i]);
    }
    for (size_t i = 0; i < 200000; i++) {
        const double middle = ((double)rng_below(&rng, 200000) - 100000) / 200;
        expect_coordinate(2000 * rng_unit(&rng) - 1000);
        expect_coordinate(middle);
        expect_coordinate(nextafter(middle, 1e9));
        expect_coordinate(nextafter(middle, -1e9));
    }
    (void)state;
}

static void test_lines_of_a_legend_differ(void **state)
{
    static const char *const names[PLOT_LEGEND_MAX] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                                       "i", "j", "k", "l", "m", "n", "o", "p"};
    struct strbuf out = STRBUF_INIT;
    char classes[PLOT_LEGEND_MAX][8];
    size_t n = 0;
    (void)state;
    plot_lines(&out, &(struct plot_lines){.head = {"e", "Many", "Lines", "x", "y"},
                                          .names = names,
                                          .n_names = PLOT_LEGEND_MAX});
    for (const char *at = out.buf; (at = strstr(at, "class=\"s")) != NULL; at++) {
        if (at[8] >= '0' && at[8] <= '9') {
            assert_true(n < PLOT_LEGEND_MAX);
            memcpy(classes[n], at + 7, 5);
            classes[n++][5] = '\0';
        }
    }
    assert_int_equal(n, PLOT_LEGEND_MAX);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(classes[i], classes[k]);
        }
    }
    strbuf_release(&out);
}

static void test_drawings_of_nothing(void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    struct plot_head head = {"e", "Empty", "Nothing", "x", "y"};
    plot_dots(&out, &(struct plot_dots){.head = head, .band_from = (double)NAN});
    plot_lines(&out, &(struct plot_lines){.head = head});
    plot_heat(&out, &(struct plot_heat){.head = head});
    plot_shares(&out, &(struct plot_shares){.head = head});
    assert_balanced(out.buf);
    assert_null(strstr(out.buf, "nan"));
    assert_null(strstr(out.buf, "inf"));
    strbuf_release(&out);
}

static void name_cell(const struct doc_slot *s)
{
    s->cell->text = s->row;
}

static void value_cell(const struct doc_slot *s)
{
    doc_number(s, "0.10", 0.1);
    doc_datum(s, "se", (double)NAN);
    doc_flag(s, "clears", -1);
    doc_flag(s, "counts", 1);
}

static void fill_document(struct doc *d)
{
    static const struct doc_column columns[] = {
        COLUMN("Name", ALIGN_TEXT, name_cell),
        COLUMN("Value <x>", ALIGN_NUMBER, value_cell),
    };
    struct plot_head head = {.desc = "Sum"};
    d->banner = (struct doc_banner){.program = "p<",
                                    .question = "Why?",
                                    .kind = "Verdict",
                                    .outcome = "O1",
                                    .title = "A & B",
                                    .lead = "Because."};
    (void)doc_item(d, &d->banner.figures, "Rows", "1");
    doc_section(d, "first", "First");
    doc_paragraph(d, "%d %s", 2, "<words>");
    doc_notice(d, TONE_BAD, "Careful");
    struct doc_table *t = doc_table(d, "t", "Caption", columns, 2);
    doc_row(d, t, "a|b")->tone = TONE_LIT;
    doc_item(d, doc_facts(d), "digest", "abc`def")->code = true;
    doc_item(d, doc_list(d), NULL, "item")->code = true;
    strbuf_adds(doc_figure(d, "loss:x", "Fig", &head), "<svg></svg>");
    assert_string_equal(head.id, "figure-loss-x");
    doc_section(d, "second", "Second");
    (void)doc_table(d, "t", "Bad \xff", columns, 1);
    doc_section(d, "second", "Second again");
}

static void test_renders_one_document_twice(void **state)
{
    (void)state;
    struct doc d;
    struct strbuf md = STRBUF_INIT;
    struct strbuf html = STRBUF_INIT;
    doc_init(&d);
    fill_document(&d);
    render_md(&d, &md);
    render_html(&d, &html);
    assert_non_null(strstr(md.buf, "# O1: A &amp; B\n"));
    assert_non_null(
        strstr(md.buf, "## 1. First\n\n2 &lt;words&gt;\n\n> **Careful**\n\n*Table 1.* Caption\n\n| "
                       "Name | Value &lt;x&gt; |\n|---|---:|\n| **a\\|b** | **0.10** |\n"));
    assert_non_null(strstr(md.buf, "- **digest:** abc\\`def\n\n- `item`\n"));
    assert_non_null(strstr(md.buf, "## 2. Second"));
    assert_balanced(html.buf);
    assert_non_null(strstr(html.buf, "<th scope=\"col\" class=\"num\">Value &lt;x&gt;</th>"));
    assert_non_null(
        strstr(html.buf, "<tr class=\"lit\"><th scope=\"row\" class=\"text plain\">a|b</th>"));
    assert_non_null(strstr(html.buf, "<li><a href=\"#second\">Second</a></li>"));
    assert_null(strstr(html.buf, "<words>"));
    strbuf_release(&md);
    strbuf_release(&html);
    doc_release(&d);
}

static void test_json_is_the_document_as_data(void **state)
{
    (void)state;
    struct doc d;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    cJSON *json = NULL;
    doc_init(&d);
    fill_document(&d);
    render_json(&d, &text);
    assert_int_equal(json_parse(text.buf, text.len, &json, &err), 0);
    strbuf_clear(&text);
    assert_int_equal(json_line(json, &text, &err), 0);
    static const char *const parts[] = {
        "{\"schema\":1,\"program\":\"p<\",\"root\":null,",
        "\"label\":null,\"verdict\":{\"outcome\":\"O1\",",
        "\"figures\":[{\"text\":\"1\",\"name\":\"Rows\"}]},\"notices\":[]",
        ("\"sections\":[{\"id\":\"first\",\"number\":1,\"title\":\"First\",\"blocks\":["
         "{\"kind\":\"paragraph\",\"text\":\"2 <words>\"},"
         "{\"kind\":\"notice\",\"text\":\"Careful\",\"tone\":\"bad\"},"),
        "\"columns\":[{\"title\":\"Name\",\"holds\":\"text\"},",
        ("{\"cells\":[{\"text\":\"a|b\"},{\"text\":\"0.10\",\"value\":0.1,\"se\":null,"
         "\"clears\":null,\"counts\":true}],\"tone\":\"lit\"}"),
        "{\"kind\":\"figure\",\"id\":\"loss-x\",\"number\":1,",
        "{\"kind\":\"table\",\"id\":\"t-2\",\"number\":2,\"caption\":\"Bad ?\",",
        "{\"id\":\"second-2\",\"number\":3,\"title\":\"Second again\",\"blocks\":[]}]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (strstr(text.buf, parts[i]) == NULL) {
            fail_msg("no %s in %s", parts[i], text.buf);
        }
    }
    cJSON_Delete(json);
    strbuf_release(&text);
    doc_release(&d);
}

static void test_page_reaches_nowhere(void **state)
{
    (void)state;
    struct doc d;
    struct strbuf html = STRBUF_INIT;
    doc_init(&d);
    fill_document(&d);
    render_html(&d, &html);
    static const char *const forbidden[] = {"http://", "https://", "<script", "<link",
                                            "<img",    "url(",     "@import", "src="};
    for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
        CHECK_ROW("%s", forbidden[i]);
        assert_null(strstr(html.buf, forbidden[i]));
    }
    assert_non_null(strstr(html.buf, "default-src 'none'"));
    strbuf_release(&html);
    doc_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_breaks_long_names_only_before_letters),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_axes_have_round_ticks_inside),
        cmocka_unit_test(test_drawings_are_as_they_were),
        cmocka_unit_test(test_ticks_of_a_heat_map),
        cmocka_unit_test(test_coordinates_have_two_decimals_at_most),
        cmocka_unit_test(test_lines_of_a_legend_differ),
        cmocka_unit_test(test_drawings_of_nothing),
        cmocka_unit_test(test_renders_one_document_twice),
        cmocka_unit_test(test_json_is_the_document_as_data),
        cmocka_unit_test(test_page_reaches_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
