/*
 * Every parameter of a training stage (docs/models.md lists them), read once and checked. Unknown
 * keys are faults.
 */
#ifndef WORKER_TRAIN_OPTIONS_H
#define WORKER_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/model/config.h"
#include "worker/nn/product/product.h"
#include "worker/report/params.h"
#include "worker/report/task.h"
#include "worker/train/schedule.h"

#define MIX_MAX   32
#define MARKS_MAX 64

/* Tokens of one pass: no size of a buffer overflows. */
#define MICRO_TOKENS_MAX ((int64_t)1 << 20)

enum optimiser_kind { OPTIMISER_ADAMW, OPTIMISER_MUON, OPTIMISER_SGD, OPTIMISER_NR };

struct mix_part {
    const char *name; /* of the task's data */
    double weight;    /* they sum to 1 */
};

struct train_options {
    struct model_config model;
    struct horizon horizon;
    struct schedule schedule;
    int64_t batch_tokens;
    int64_t micro_batch;   /* sequences of one forward and backward pass */
    int64_t steps;         /* of the whole horizon, >= 1; of a try: as many as it makes */
    int64_t left_out;      /* of these, those after horizon.stop: another run's */
    int64_t first_step;    /* done by the earlier run that this one continues; else 0 */
    double tried_work;     /* of a try, in tokens trained on: what it does, */
    double whole_work;     /* and what the whole would be; 0: not a try */
    const char *tokenizer; /* "bytes", or a name of the task's data */
    const char *init; /* the name of the task's data that holds the starting weights; NULL: drawn */
    const char *init_run; /* the name of the task's data that holds the run to continue, or NULL */
    struct mix_part mix[MIX_MAX];
    size_t n_mix;
    uint64_t seed;
    enum optimiser_kind optimiser;
    double lr;
    double weight_decay;
    double clip;     /* 0: off */
    double beta1;    /* AdamW's, also of the part of Muon that it updates */
    double beta2;    /* likewise */
    double eps;      /* likewise */
    double momentum; /* of Muon and of gradient descent */
    bool nesterov;   /* likewise */
    double adamw_lr; /* peak rate of what Muon leaves to AdamW */
    double init_std;
    double balance_loss;
    double router_z_loss;
    double router_noise;    /* sigma of the normal noise on the logits, in training */
    double capacity_factor; /* of an expert in training, in even shares; 0: no limit */
    double bias_update_rate;
    double balance_anneal;      /* balance weight at the end / at the start */
    int64_t reset_dead_experts; /* steps between checks; 0: off */
    double marks[MARKS_MAX];    /* rising; marks and snapshots */
    bool is_snapshot[MARKS_MAX];
    size_t n_marks;
    bool has_target;
    double target_loss;
    bool stop_at_target;
    const char *validation; /* the name of the task's data that losses are measured on; NULL: on
                               what is held out of each source */
    double val_fraction;    /* of documents, by hash; 0 with a validation text */
    int64_t val_tokens;     /* at most this many per source */
    int64_t eval_every;     /* steps; 0: at marks and the end only */
    bool val_curve;         /* eval_every was given: the evaluations are reported as a curve */
    enum product_kind products;
    enum product_precision precision;
    bool resume_any_core;
    bool is_timed; /* nothing but its speed matters: weights are not all drawn */
    bool solved;   /* match was solved here; solved_ffn is the answer */
    int64_t solved_ffn;
    double match_ratio; /* achieved / wanted */
};

/* Strings point into the task. Returns with faults filled; only without faults are all fields
 * meaningful. */
void train_options_read(const struct worker_task *task, struct train_options *opt,
                        struct param_faults *faults);

/* The parameter `products` alone, before the rest is checked: what is not a known name counts as
 * the default. */
enum product_kind train_options_products(const struct worker_task *task);

/* What a validation measures, part by part: the sources of the mix, or one text of its own. */
static inline size_t train_options_n_validated(const struct train_options *opt)
{
    return opt->validation != NULL ? 1 : opt->n_mix;
}

static inline const char *train_options_validated(const struct train_options *opt, size_t i)
{
    return opt->validation != NULL ? opt->validation : opt->mix[i].name;
}

/* How many of the marks are snapshots. */
size_t train_options_snapshots(const struct train_options *opt);

/* The steps after which the run ends. */
static inline int64_t train_options_end(const struct train_options *opt)
{
    return opt->steps - opt->left_out;
}

/* What the run costs, in tokens trained on: steps, and evaluations at a third of that. */
double train_options_work(const struct train_options *opt);

/* The table `horizon` alone, which is required; faults go to p. */
void train_options_read_horizon(struct params *p, struct train_options *opt);

/* Solves match = { to, on } for the width of the feed-forward part from the task's peers; faults go
 * to p. */
void match_read(struct params *p, const struct worker_task *task, struct train_options *opt);

#endif
