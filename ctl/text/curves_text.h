/*
 * Curves from the events of attempts (docs/worker-protocol.md, "point"), and drawing them with the
 * dots of Braille characters. The caller leaves out what the plan seals.
 */
#ifndef CTL_TEXT_CURVES_TEXT_H
#define CTL_TEXT_CURVES_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "truthtable/evidence/curve_points.h"

/* Appends the points of that name in a task's folder (curve_events.h); a resumed attempt repeats
 * the points after its checkpoint. Lines that are not points are skipped. */
void curve_points_read(struct curve_points *c, const char *task_folder, const char *name);

/* The ranges that all curves of a panel share, and the panel's size. */
struct curve_frame {
    double x_max;
    double y_min;
    double y_max;
    size_t columns; /* characters of a panel, without its axis */
    size_t rows;
    bool utf8;
};

/* Widens the frame to hold the points; start with CURVE_FRAME_INIT. */
#define CURVE_FRAME_INIT ((struct curve_frame){.y_min = 1e308, .y_max = -1e308})
void curve_frame_add(struct curve_frame *frame, const struct curve_points *c);
/* Appends the frame's rows, with its range at the left and the last x below. Without utf8 dots are
 * asterisks. */
void curves_draw(struct strbuf *out, const struct curve_frame *frame,
                 const struct curve_points *curves, size_t n);

#endif
