/*
 * Writes inline SVG. Coordinates are clamped and printed with at most two decimals, trailing zeros
 * dropped, so equal values give equal bytes and no value can produce an invalid number. Class names
 * and texts are escaped.
 */
#include "truthtable/report/document/svg.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "truthtable/report/document/escape.h"

#define PLACE_MAX 1e6 /* far outside every drawing: anything beyond is drawn there */

/* Finds v in hundredths, rounded as "%.2f" rounds; false for what may be the middle of two.
 * Rounding is monotone and the middle a double: a product that is not the middle is on the side of
 * the exact one. */
static bool find_hundredths(double v, int64_t *out)
{
    const double scaled = v * 100;
    const double below = floor(scaled);
    const double rest = scaled - below;
    *out = (int64_t)below + (rest > 0.5 ? 1 : 0);
    return rest < 0.5 || rest > 0.5;
}

/* Curves have a hundred thousand coordinates, and printf() is slow with floating-point numbers. */
static void add_hundredths(struct strbuf *out, int64_t hundredths)
{
    char text[32];
    size_t at = sizeof(text);
    int64_t left = hundredths < 0 ? -hundredths : hundredths;
    if (left % 10 != 0) {
        text[--at] = (char)('0' + left % 10);
    }
    if (left % 100 != 0) {
        text[--at] = (char)('0' + left / 10 % 10);
        text[--at] = '.';
    }
    left /= 100;
    do {
        text[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (hundredths < 0) {
        text[--at] = '-';
    }
    strbuf_add(out, text + at, sizeof(text) - at);
}

/* Coordinates derive from measured values, which may be anything. */
static void add_number(struct strbuf *out, double v)
{
    char text[64];
    int64_t hundredths = 0;
    v = isnan(v) ? 0 : fmax(fmin(v, PLACE_MAX), -PLACE_MAX);
    if (!find_hundredths(v, &hundredths)) {
        (void)snprintf(text, sizeof(text), "%.2f", v);
        hundredths = llround(strtod(text, NULL) * 100);
    }
    add_hundredths(out, hundredths);
}

/* One numeric attribute. */
static void add_attr(struct svg *s, const char *name, double v)
{
    strbuf_addf(s->out, " %s=\"", name);
    add_number(s->out, v);
    strbuf_addc(s->out, '"');
}

/* Opens a tag with its class; the caller closes it. */
static void add_tag(struct svg *s, const char *tag, const char *cls)
{
    strbuf_addf(s->out, "<%s class=\"", tag);
    escape_html(s->out, cls);
    strbuf_addc(s->out, '"');
}

/* Title and description are tied to the drawing for screen readers. */
void svg_open(struct svg *s, struct strbuf *out, const struct svg_head *head)
{
    s->out = out;
    s->depth = 0;
    strbuf_adds(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 ");
    add_number(out, head->width);
    strbuf_addc(out, ' ');
    add_number(out, head->height);
    strbuf_addc(out, '"');
    add_attr(s, "width", head->width);
    add_attr(s, "height", head->height);
    strbuf_adds(out, " aria-labelledby=\"");
    escape_html(out, head->id);
    strbuf_adds(out, "-title ");
    escape_html(out, head->id);
    strbuf_adds(out, "-desc\">\n<title id=\"");
    escape_html(out, head->id);
    strbuf_adds(out, "-title\">");
    escape_html(out, head->title);
    strbuf_adds(out, "</title>\n<desc id=\"");
    escape_html(out, head->id);
    strbuf_adds(out, "-desc\">");
    escape_html(out, head->desc);
    strbuf_adds(out, "</desc>\n");
}

/* Groups must be balanced. */
void svg_close(struct svg *s)
{
    assert(s->depth == 0);
    strbuf_adds(s->out, "</svg>\n");
}

/* A title within a group is shown as a tooltip. */
void svg_group_open(struct svg *s, const char *cls, const char *tooltip)
{
    s->depth++;
    add_tag(s, "g", cls);
    strbuf_adds(s->out, ">\n");
    if (tooltip != NULL) {
        strbuf_adds(s->out, "<title>");
        escape_html(s->out, tooltip);
        strbuf_adds(s->out, "</title>\n");
    }
}

/* Closes the innermost group. */
void svg_group_close(struct svg *s)
{
    assert(s->depth > 0);
    s->depth--;
    strbuf_adds(s->out, "</g>\n");
}

/* From a to b. */
void svg_line(struct svg *s, const char *cls, struct svg_point a, struct svg_point b)
{
    add_tag(s, "line", cls);
    add_attr(s, "x1", a.x);
    add_attr(s, "y1", a.y);
    add_attr(s, "x2", b.x);
    add_attr(s, "y2", b.y);
    strbuf_adds(s->out, "/>\n");
}

/* `at` is the upper left corner. */
void svg_rect(struct svg *s, const char *cls, struct svg_point at, struct svg_point size)
{
    add_tag(s, "rect", cls);
    add_attr(s, "x", at.x);
    add_attr(s, "y", at.y);
    add_attr(s, "width", size.x);
    add_attr(s, "height", size.y);
    strbuf_adds(s->out, "/>\n");
}

/* Around `at`. */
void svg_circle(struct svg *s, const char *cls, struct svg_point at, double r)
{
    add_tag(s, "circle", cls);
    add_attr(s, "cx", at.x);
    add_attr(s, "cy", at.y);
    add_attr(s, "r", r);
    strbuf_adds(s->out, "/>\n");
}

/* No points, no element. */
static void add_points(struct svg *s, const char *tag, const char *cls,
                       const struct svg_point *points, size_t n)
{
    if (n == 0) {
        return;
    }
    add_tag(s, tag, cls);
    strbuf_adds(s->out, " points=\"");
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            strbuf_addc(s->out, ' ');
        }
        add_number(s->out, points[i].x);
        strbuf_addc(s->out, ',');
        add_number(s->out, points[i].y);
    }
    strbuf_adds(s->out, "\"/>\n");
}

void svg_polyline(struct svg *s, const char *cls, const struct svg_point *points, size_t n)
{
    add_points(s, "polyline", cls, points, n);
}

void svg_polygon(struct svg *s, const char *cls, const struct svg_point *points, size_t n)
{
    add_points(s, "polygon", cls, points, n);
}

/* The anchor says which part of the text is at the point. */
void svg_text(struct svg *s, const char *cls, enum svg_anchor anchor, struct svg_point at,
              const char *text)
{
    static const char *const anchors[] = {
        [SVG_START] = "start", [SVG_MIDDLE] = "middle", [SVG_END] = "end"};
    add_tag(s, "text", cls);
    add_attr(s, "x", at.x);
    add_attr(s, "y", at.y);
    strbuf_addf(s->out, " text-anchor=\"%s\">", anchors[anchor]);
    escape_html(s->out, text);
    strbuf_adds(s->out, "</text>\n");
}
