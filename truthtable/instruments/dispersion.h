/*
 * Are the cells' scores as far apart as sampling of items alone would put them?
 * chi2 = sum n_i (p_i - pbar)^2 / (pbar (1 - pbar)) on cells - 1 degrees, pbar the mean over items.
 * A small lower tail says that the cells are tighter than independent samples: they answer the same
 * items alike.
 */
#ifndef TRUTHTABLE_INSTRUMENTS_DISPERSION_H
#define TRUTHTABLE_INSTRUMENTS_DISPERSION_H

#include <stddef.h>

struct dispersion {
    const char *why; /* NULL: all of the below is determined */
    double mean;     /* pbar */
    double chi2, df;
    double p_lower; /* P(chi-square <= chi2) */
    double p_upper;
};

/* Accuracies score[i] of items[i] items each. */
void dispersion_of(const double *score, const double *items, size_t n_cells,
                   struct dispersion *out);

#endif
