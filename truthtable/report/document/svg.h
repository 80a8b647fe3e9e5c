/*
 * A small writer of inline SVG. Shapes carry class names only; colours, dark mode and print live in
 * the page's style sheet (style.c), so a drawing has no colour of its own. Coordinates are user
 * units, y downwards, printed with at most two decimals: same input, same bytes. Text is escaped
 * here.
 *
 * Order of calls: svg_open, shapes, svg_close. Groups nest and must be balanced.
 */
#ifndef TRUTHTABLE_REPORT_DOCUMENT_SVG_H
#define TRUTHTABLE_REPORT_DOCUMENT_SVG_H

#include <stddef.h>

#include "base/strbuf.h"

struct svg_point {
    double x;
    double y;
};

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

struct svg_head {
    const char *id;    /* unique on the page: title and description are tied to it */
    const char *title; /* what the drawing is */
    const char *desc;  /* what it shows, for those who do not see it */
    double width;
    double height;
};

struct svg {
    struct strbuf *out;
    size_t depth; /* open groups */
};

void svg_open(struct svg *s, struct strbuf *out, const struct svg_head *head);
void svg_close(struct svg *s);
/* A group with a class and, unless NULL, a tooltip. */
void svg_group_open(struct svg *s, const char *cls, const char *tooltip);
void svg_group_close(struct svg *s);
void svg_line(struct svg *s, const char *cls, struct svg_point a, struct svg_point b);
void svg_rect(struct svg *s, const char *cls, struct svg_point at, struct svg_point size);
void svg_circle(struct svg *s, const char *cls, struct svg_point at, double r);
void svg_polyline(struct svg *s, const char *cls, const struct svg_point *points, size_t n);
/* Closed and filled. */
void svg_polygon(struct svg *s, const char *cls, const struct svg_point *points, size_t n);
void svg_text(struct svg *s, const char *cls, enum svg_anchor anchor, struct svg_point at,
              const char *text);

#endif
