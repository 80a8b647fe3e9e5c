/*
 * The share of one source of the training mix in the gap of the whole loss: its weight times its
 * own gap, over the whole gap. A loss of the mix is the sources' losses weighted by the mix
 * (docs/models.md), so the shares of all sources add up to 1.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_CONNECTOR_SHARE_H
#define TRUTHTABLE_INSTRUMENTS_CONNECTOR_SHARE_H

#include "truthtable/instruments/instrument_work.h"

struct source_share {
    double weight;   /* in the mix; NaN: unknown */
    double share;    /* NaN: unknown, as the next */
    double se;       /* over replicates */
    const char *why; /* of an unknown share, or of its error alone; NULL */
};

/* Computes the share of `source`, whose losses are those of the measure `part`, in the gap of the
 * measure `whole` in a contrast. The name in the mix is what follows the metric's colon, else
 * `source`. */
struct source_share connector_share(const struct work *w, size_t contrast, size_t whole,
                                    size_t part, const char *source);

#endif
