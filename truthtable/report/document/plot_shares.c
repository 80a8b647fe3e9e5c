/*
 * A bar of shares: the prior probabilities of the outcomes, the one that binds highlighted, and the
 * unassigned remainder. Shares are scaled by their sum, so priors that exceed 1 still fit.
 */
#include <math.h>

#include "truthtable/report/document/fmt.h"
#include "truthtable/report/document/plot.h"
#include "truthtable/report/document/plot_axis.h"

#define EDGE       2.0
#define BAR_TOP    6.0
#define BAR_HEIGHT 30.0
#define LINE       15.0

/* The class of a part: lit, remainder, or plain. */
static const char *share_class(const struct plot_share *share)
{
    return share->lit ? "share lit" : share->rest ? "share rest" : "share";
}

/* Negative shares count as nothing; a sum of nothing counts as 1. */
static double total_of(const struct plot_shares *plot)
{
    double total = 0;
    for (size_t i = 0; i < plot->n_shares; i++) {
        total += fmax(plot->shares[i].share, 0);
    }
    return total > 0 ? total : 1;
}

/* The label is under its part where it has room, and otherwise only in the tooltip and the table.
 */
static void draw_share(struct svg *svg, struct arena *a, const struct plot_share *share,
                       struct svg_point span)
{
    const char *value = fmt_fixed(a, share->share, 2);
    const char *label = fmt_cut(a, share->label, 24);
    double middle = (span.x + span.y) / 2;
    svg_group_open(svg, share_class(share),
                   arena_printf(a, "%s: %s%s", share->label, value,
                                share->lit ? ", the outcome that binds" : ""));
    svg_rect(svg, "block", (struct svg_point){span.x + 1, BAR_TOP},
             (struct svg_point){fmax(span.y - span.x - 2, 0.5), BAR_HEIGHT});
    if (axis_text_width(value) + 6 < span.y - span.x) {
        svg_text(svg, "in-block", SVG_MIDDLE,
                 (struct svg_point){middle, BAR_TOP + BAR_HEIGHT / 2 + 4}, value);
    }
    if (axis_text_width(label) < span.y - span.x) {
        svg_text(svg, "under-block", SVG_MIDDLE,
                 (struct svg_point){middle, BAR_TOP + BAR_HEIGHT + LINE}, label);
    }
    svg_group_close(svg);
}

/* Parts from left to right in the order of the outcomes. */
void plot_shares(struct strbuf *out, const struct plot_shares *plot)
{
    struct svg svg;
    struct arena arena;
    arena_init(&arena);
    const struct plot_head *h = &plot->head;
    svg_open(&svg, out,
             &(struct svg_head){.id = h->id,
                                .title = h->title,
                                .desc = h->desc,
                                .width = PLOT_WIDTH,
                                .height = BAR_TOP + BAR_HEIGHT + LINE + 8});
    double scale = (PLOT_WIDTH - 2 * EDGE) / total_of(plot);
    double x = EDGE;
    for (size_t i = 0; i < plot->n_shares; i++) {
        double end = x + fmax(plot->shares[i].share, 0) * scale;
        draw_share(&svg, &arena, &plot->shares[i], (struct svg_point){x, end});
        x = end;
    }
    svg_close(&svg);
    arena_release(&arena);
}
