/*
 * Reads the points of a task's attempts. Drawing sets one dot per dot column, linearly interpolated
 * between points, on a canvas of 2 by 4 dots a character, which is the grid of Braille.
 */
#include "ctl/text/curves_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "truthtable/evidence/curve_events.h"

/* the code point of the empty pattern; each dot is a bit below */
#define BRAILLE 0x2800u
#define DOTS_X  2 /* of a character */
#define DOTS_Y  4

struct wanted {
    struct curve_points *points;
    const char *name;
};

static void take_point(void *ctx, const char *name, double x, double y)
{
    const struct wanted *w = ctx;
    if (x >= 0.0 && strcmp(name, w->name) == 0) {
        curve_points_add(w->points, x, y);
    }
}

void curve_points_read(struct curve_points *c, const char *task_folder, const char *name)
{
    struct wanted w = {.points = c, .name = name};
    (void)curve_events_read_task(task_folder, take_point,
                                 &w); /* what cannot be read is not drawn */
}

void curve_frame_add(struct curve_frame *frame, const struct curve_points *c)
{
    for (size_t i = 0; i < c->n; i++) {
        frame->x_max = fmax(frame->x_max, c->xs[i]);
        frame->y_min = fmin(frame->y_min, c->ys[i]);
        frame->y_max = fmax(frame->y_max, c->ys[i]);
    }
}

/* The dots of a panel, row by row from the top. */
struct canvas {
    bool *dots;
    size_t width;
    size_t height;
};

/* The index of share (0..1) among n places; NaN and values outside are at the nearest end. */
static size_t place(double share, size_t n)
{
    const double at = share * (double)(n - 1) + 0.5;
    return !(at > 0.0) ? 0 : at >= (double)n ? n - 1 : (size_t)at;
}

/* Draws one curve: a dot in each column between its first and its last point. */
static void draw_curve(struct canvas *canvas, const struct curve_frame *frame,
                       const struct curve_points *c)
{
    const double spread = frame->y_max > frame->y_min ? frame->y_max - frame->y_min : 1.0;
    const double most = frame->x_max > 0.0 ? frame->x_max : 1.0;
    size_t next = 0;
    for (size_t column = 0; column < canvas->width && c->n > 0; column++) {
        const double x = most * (double)column / (double)(canvas->width - 1);
        while (next < c->n && c->xs[next] < x) {
            next++;
        }
        /* no dot before the first point or after the last */
        if (next == c->n || (next == 0 && c->xs[0] > x + most / (double)canvas->width)) {
            continue;
        }
        /* between two points the curve is a straight line */
        double y = c->ys[next];
        if (next > 0 && c->xs[next] > x) {
            const double x0 = c->xs[next - 1];
            const double share = (x - x0) / (c->xs[next] - x0);
            y = c->ys[next - 1] + share * (c->ys[next] - c->ys[next - 1]);
        }
        const size_t row = canvas->height - 1 - place((y - frame->y_min) / spread, canvas->height);
        canvas->dots[row * canvas->width + column] = true;
    }
}

/* One character of the panel: 2 by 4 dots as a Braille character, or an asterisk if any is set. */
static void add_character(struct strbuf *out, const struct canvas *canvas, size_t row,
                          size_t column, bool utf8)
{
    static const unsigned char bits[DOTS_Y][DOTS_X] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned code = 0;
    for (size_t y = 0; y < DOTS_Y; y++) {
        for (size_t x = 0; x < DOTS_X; x++) {
            if (canvas->dots[(row * DOTS_Y + y) * canvas->width + column * DOTS_X + x]) {
                code |= bits[y][x];
            }
        }
    }
    /* a space, so that the end of a row can be trimmed */
    if (!utf8 || code == 0) {
        strbuf_addc(out, code == 0 ? ' ' : '*');
        return;
    }
    code += BRAILLE;
    strbuf_addc(out, (char)(0xe0 | (code >> 12)));
    strbuf_addc(out, (char)(0x80 | ((code >> 6) & 0x3f)));
    strbuf_addc(out, (char)(0x80 | (code & 0x3f)));
}

/* All curves on one canvas, then row by row with the range at the left; spaces at a row's end
 * are removed. */
void curves_draw(struct strbuf *out, const struct curve_frame *frame,
                 const struct curve_points *curves, size_t n)
{
    struct canvas canvas = {.width = frame->columns * DOTS_X, .height = frame->rows * DOTS_Y};
    canvas.dots = xcalloc(canvas.width * canvas.height, sizeof(*canvas.dots));
    for (size_t i = 0; i < n; i++) {
        draw_curve(&canvas, frame, &curves[i]);
    }
    for (size_t row = 0; row < frame->rows; row++) {
        if (row == 0 || row + 1 == frame->rows) {
            strbuf_addf(out, "%10.4g ", row == 0 ? frame->y_max : frame->y_min);
        } else {
            strbuf_addf(out, "%11s", "");
        }
        strbuf_adds(out, frame->utf8 ? "\u2502" : "|");
        for (size_t column = 0; column < frame->columns; column++) {
            add_character(out, &canvas, row, column, frame->utf8);
        }
        while (out->len > 0 && out->buf[out->len - 1] == ' ') {
            out->buf[--out->len] = '\0';
        }
        strbuf_addc(out, '\n');
    }
    strbuf_addf(out, "%11s0%*.10g\n", "", (int)frame->columns, frame->x_max);
    free(canvas.dots);
}
