/*
 * prereg-train --bench: how fast this machine trains a given model, and where the time goes.
 *
 * No data are needed: the tokens are random. Rounds alternate between one training step and one
 * pass over the matrix products that a step is made of, so both meet the same machine; its two
 * limits are measured right after. The step's rate counts the model's own operations
 * (docs/models.md) and nothing that is computed twice. With one thread the shares are of processor
 * time, so that a machine with other work does not blur them.
 */
#ifndef WORKER_TRAIN_BENCH_H
#define WORKER_TRAIN_BENCH_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "worker/model/config.h"
#include "worker/nn/pass_clock.h"
#include "worker/nn/product/product.h"

#define BENCH_STEPS_MAX  10000
#define BENCH_ROUNDS_MAX 64 /* of products and limits: then they were seen often enough */

struct bench_options {
    const char *what; /* a built-in model's name, or a file of parameters or a task */
    int64_t batch;    /* sequences a step; 0: the model's own */
    int64_t context;  /* 0: the model's own */
    int64_t threads;
    int64_t steps;
    enum product_precision precision;
    enum product_kind products;
    bool json;
};

struct bench_spread {
    double median;
    double low;
    double high;
};

/* What a part of a step computes and moves, once. */
struct bench_part {
    double operations;
    double bytes;
};

struct bench_result {
    struct model_config model;
    int64_t batch;
    int64_t threads;
    int64_t n;                        /* rounds measured */
    struct bench_spread step_wall;    /* seconds */
    struct bench_spread step_seconds; /* of `clock`, as all that follows */
    struct bench_spread forward_seconds;
    double rate;      /* FLOP/s of the step */
    double products;  /* FLOP/s of its products alone */
    double peak;      /* FLOP/s of the kernel */
    double bandwidth; /* bytes/s of memory */
    enum product_kind kind;
    enum product_precision precision;
    double part[PASS_NR]; /* seconds of a step, mean */
    struct bench_part work[PASS_NR];
    double peak_bytes; /* resident, before buffers exist that only the bench needs */
    double planned_bytes;
};

/* The products of one training step, and room to run them. */
struct bench_products;
/* n_tokens: of one step. ERR_OTHER without memory. */
int bench_products_create(const struct model_config *cfg, enum product_precision precision,
                          size_t n_tokens, clockid_t clock, struct bench_products **out,
                          struct err *err) MUST_CHECK;
void bench_products_free(struct bench_products *c);
/* Times every shape once, up to BENCH_ROUNDS_MAX times. */
void bench_products_round(struct bench_products *c);
/* FLOP/s: all operations over the sum of the shapes' median times. */
double bench_products_rate(const struct bench_products *c);
/* Adds one step's products to PASS_BODY and PASS_HEAD: the model's own but for attention's. */
void bench_products_count(const struct bench_products *c, struct bench_part out[PASS_NR]);

/* The limits of the machine, on all threads. ERR_OTHER without memory. */
struct bench_machine;
int bench_machine_create(enum product_precision precision, clockid_t clock,
                         struct bench_machine **out, struct err *err) MUST_CHECK;
void bench_machine_free(struct bench_machine *m);
void bench_machine_round(struct bench_machine *m);
/* Medians of the rounds: FLOP/s of the multiplying kernel, bytes/s of memory. */
double bench_machine_peak(struct bench_machine *m);
double bench_machine_bandwidth(struct bench_machine *m);

/* Adds to each part of a step what is not a product of a linear layer. */
void bench_parts_count(const struct model_config *cfg, size_t n_tokens,
                       struct bench_part out[PASS_NR]);
/* Seconds that a part takes at least by the machine's limits, when all comes from memory. */
double bench_part_bound(const struct bench_part *part, const struct bench_result *r);
bool bench_part_is_memory_bound(const struct bench_part *part, const struct bench_result *r);

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
