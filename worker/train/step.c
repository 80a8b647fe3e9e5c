/*
 * One optimiser step: gradients of the whole batch in passes of micro_batch sequences, the norm
 * over all of them, clipping, the optimiser's update. Each pass scales its gradient by its share of
 * the batch, so the sum is the mean over tokens whatever the pass size.
 *
 * Nothing is updated when the loss or the norm is not finite; the error names the first tensor that
 * is bad.
 */
#include <math.h>

#include "worker/nn/vec.h"
#include "worker/train/trainer.h"

/* The first tensor with a number that is not finite, in an array with the layout of the
 * parameters. */
static const struct tensor *first_bad(const struct trainer *t, const real *all)
{
    for (size_t i = 0; i < t->w.table.n; i++) {
        const struct tensor *tensor = &t->w.table.items[i];
        for (size_t j = 0; j < tensor_size(tensor); j++)
            if (!isfinite(all[tensor->offset + j]))
                return tensor;
    }
    return NULL;
}

/* Weights that are bad already explain everything that follows, so they are reported first. */
static int check_weights(const struct trainer *t, int64_t step, const char *what, struct err *err)
{
    const struct tensor *bad = first_bad(t, t->w.params);

    if (bad != NULL)
        return err_set(err, ERR_REFUSED, "step %lld: %s; weights of %s are not finite",
                       (long long)step, what, bad->name);
    return 0;
}

int trainer_check_finite(const struct trainer *t, const char *what, struct err *err)
{
    return check_weights(t, t->step, what, err);
}

/* Of the step under way, counted from 1 as in the events. */
static int diverged(const struct trainer *t, const char *what, struct err *err)
{
    int rc = check_weights(t, t->step + 1, what, err);
    if (rc < 0)
        return rc;
    const struct tensor *bad = first_bad(t, t->grad);
    return err_set(err, ERR_REFUSED, "step %lld: %s; first bad gradient: %s",
                   (long long)t->step + 1, what, bad == NULL ? "none" : bad->name);
}

/* Gradients of the whole batch, pass by pass, added to zeros (a single pass makes its own); returns
 * the mean cross-entropy. */
static double accumulate(struct trainer *t)
{
    const struct train_options *opt = t->opt;
    size_t context = (size_t)opt->model.context;
    int64_t n_seqs = opt->batch_tokens / opt->model.context;
    double loss = 0.0;

    for (int64_t at = 0; at < n_seqs; at += opt->micro_batch) {
        int64_t n = n_seqs - at < opt->micro_batch ? n_seqs - at : opt->micro_batch;
        struct run_batch batch = {
            .tokens = t->tokens, .targets = t->targets, .batch = (size_t)n, .length = context};
        struct run_objective objective = {
            .balance =
                opt->balance_loss * schedule_anneal(opt->balance_anneal, t->step, opt->steps),
            .z = opt->router_z_loss,
            .share = (double)n / (double)n_seqs,
            .noise = {.sigma = opt->router_noise,
                      .seed = opt->seed,
                      .first_token = (uint64_t)(t->step * n_seqs + at) * context},
            .capacity_factor = opt->capacity_factor};
        struct run_loss part;
        for (int64_t i = 0; i < n; i++)
            train_data_sequence(t->data, (uint64_t)(t->step * n_seqs + at + i),
                                t->tokens + (size_t)i * context, t->targets + (size_t)i * context);
        pass_clock_mark(t->clock, PASS_REST);
        run_gradient(t->run, &t->w, &batch, &objective,
                     opt->model.experts > 0 ? t->health.step : NULL, t->grad, &part);
        loss += objective.share * part.cross_entropy;
    }
    return loss;
}

/* Clipping is a factor on the gradients, passed to the optimiser, which leaves zeros; the rate is
 * the schedule's at this step. */
static void update(struct trainer *t, double norm)
{
    const struct train_options *opt = t->opt;
    const struct optimiser_step step = {
        .rate = schedule_factor(&opt->schedule, t->step, opt->steps),
        .clip = opt->clip > 0.0 && norm > opt->clip ? opt->clip / norm : 1.0,
        .t = t->step + 1};

    optimiser_update(&t->optimiser, &t->w, t->grad, opt, &step);
}

int trainer_step(struct trainer *t, double *loss, struct err *err)
{
    pass_clock_start(t->clock);
    health_begin_step(&t->health);
    *loss = accumulate(t);
    if (!isfinite(*loss))
        return diverged(t, "the loss is not finite", err);
    double norm = sqrt(vec_sum_squares_long(t->grad, t->w.table.n_params));
    if (!isfinite(norm))
        return diverged(t, "the gradient is not finite", err);
    update(t, norm);
    pass_clock_mark(t->clock, PASS_OPTIMISER);
    health_end_step(&t->health, &t->w, &t->optimiser, t->opt, t->step);
    t->history[t->step].loss = (float)*loss;
    t->step++;
    return 0;
}
