/*
 * prereg-train --bench: how fast this machine trains a given model, and where the time goes.
 *
 * No data are needed: the tokens are random. Rounds alternate between one training step and one
 * pass over the matrix products that a step is made of, so both meet the same machine. The ceiling
 * is what OpenBLAS reaches at those shapes, weighted by their operations; the step's rate counts
 * the model's own operations (docs/models.md) and nothing that is computed twice. With one thread
 * the shares are of processor time, so that a machine with other work does not blur them.
 */
#ifndef WORKER_TRAIN_BENCH_H
#define WORKER_TRAIN_BENCH_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "worker/model/config.h"
#include "worker/nn/pass_clock.h"
#include "worker/nn/product/product.h"

#define BENCH_STEPS_MAX 10000

struct bench_options {
    const char *what; /* a built-in model's name, or a file of parameters or a task */
    int64_t batch;    /* sequences a step; 0: the model's own */
    int64_t context;  /* 0: the model's own */
    int64_t threads;
    int64_t steps;
    enum product_precision precision;
    enum product_kind products; /* of the step; the ceiling is always OpenBLAS's */
    bool json;
};

struct bench_spread {
    double median;
    double low;
    double high;
};

struct bench_result {
    struct model_config model;
    int64_t batch;
    int64_t threads;
    int64_t n;                        /* rounds measured */
    struct bench_spread step_wall;    /* seconds */
    struct bench_spread step_seconds; /* of `clock`, as all that follows */
    struct bench_spread forward_seconds;
    double ceiling; /* FLOP/s */
    double share_of_ceiling;
    double part[PASS_NR]; /* seconds of a step, mean */
    double peak_bytes;    /* resident, before the ceiling's own buffers exist */
    double planned_bytes;
};

/* The products of one training step, and room to run them. */
struct bench_ceiling;
/* n_tokens: of one step. ERR_OTHER without memory. */
int bench_ceiling_create(const struct model_config *cfg, size_t n_tokens, clockid_t clock,
                         struct bench_ceiling **out, struct err *err) MUST_CHECK;
void bench_ceiling_free(struct bench_ceiling *c);
/* Times every shape once; after 64 rounds it has seen enough, and does nothing. */
void bench_ceiling_round(struct bench_ceiling *c);
/* Operations of one step's products: the model's own but for attention's. */
double bench_ceiling_flops(const struct bench_ceiling *c);
/* FLOP/s: all operations over the sum of the shapes' median times. */
double bench_ceiling_rate(const struct bench_ceiling *c);

/* The words after --bench. ERR_USAGE with a message; out is filled with defaults first. */
int bench_options_read(int argc, char **argv, struct bench_options *out,
                       struct err *err) MUST_CHECK;
/* Measures and prints. ERR_USAGE for a model that is unknown or does not fit. */
int bench_run(const struct bench_options *opt, FILE *out, struct err *err) MUST_CHECK;
/* Orders values[n], n >= 1. */
struct bench_spread bench_spread_of(double *values, size_t n);
int bench_print(const struct bench_result *result, bool json, FILE *out,
                struct err *err) MUST_CHECK;

#endif
