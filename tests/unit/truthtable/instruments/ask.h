/*
 * The instruments' mathematics asked in JSON, so that kept numbers and outside references go
 * through the same door (tests/golden/statistics.json, mixed_model.json,
 * tests/oracle/test_statistics.py).
 *
 *   {"op":"mixed","x":[[..],..],"y":[..],"group":[..]}   {"op":"chi_square","x":..,"df":..}
 *   {"op":"student","p":..,"df":..}                      {"op":"normal","p":..}
 *   {"op":"paired","diff":[..]} {"op":"clustered","diff":[..],"cluster":[..]}
 *   {"op":"dispersion","score":[..],"items":[..]}        {"op":"bayes","d":..,"se":..,"tau":..}
 *   {"op":"power","alpha":..,"power":..,"omega2":..,"var_a":..,"k_a":..,"var_b":..,"k_b":..,"delta":..,"n":..}
 *   {"op":"brier","priors":[..],"hit":..}
 */
#ifndef TESTS_UNIT_TRUTHTABLE_INSTRUMENTS_ASK_H
#define TESTS_UNIT_TRUTHTABLE_INSTRUMENTS_ASK_H

#include "base/json/json.h"
#include "truthtable/instruments/mixed.h"

/* An object of answers; undetermined numbers are null. NULL for an op that there is not. */
cJSON *instruments_ask(const cJSON *request);

/* Numbers of a JSON array; null becomes NaN. */
double *ask_numbers(const cJSON *array, size_t *n, struct arena *a);
/* x from rows, y and group of a case; groups may be any whole numbers from 0. */
void ask_mixed_data(const cJSON *request, struct arena *a, struct mixed_data *out);

#endif
