/*
 * Allocates and releases the state of a run. Large arrays come from real_alloc() (large pages,
 * error without memory); small ones from the x-functions, which abort. trainer_release() works on a
 * partly built trainer, which is why trainer_init() returns early without cleaning up.
 */
#include "worker/train/trainer.h"

#include "base/xalloc.h"

/* A step that is one pass lends it the gradient. */
static enum run_mode mode_of(const struct train_options *opt)
{
    return opt->batch_tokens / opt->model.context <= opt->micro_batch ? RUN_TRAIN_WHOLE : RUN_TRAIN;
}

int trainer_init(struct trainer *t, const struct train_options *opt, const struct train_data *data,
                 struct err *err)
{
    size_t n_micro = (size_t)(opt->micro_batch * opt->model.context);

    *t = (struct trainer){
        .opt = opt, .data = data, .target_step = -1, .evaluated_step = -1, .best_step = -1};
    for (size_t i = 0; i < MARKS_MAX; i++) {
        t->marks[i].whole.n = -1;
        for (size_t k = 0; k < MIX_MAX; k++)
            t->marks[i].source[k].n = -1;
    }
    int rc = weights_init(&t->w, &opt->model, err);
    if (rc < 0)
        return rc;
    t->grad = real_alloc(t->w.table.n_params);
    t->history = calloc((size_t)opt->steps, sizeof(*t->history));
    if (t->grad == NULL || t->history == NULL)
        return err_set(err, ERR_OTHER, "no memory for gradients of %zu parameters",
                       t->w.table.n_params);
    rc = optimiser_init(&t->optimiser, opt, err);
    if (rc < 0)
        return rc;
    t->tokens = xcalloc(n_micro, sizeof(*t->tokens));
    t->targets = xcalloc(n_micro, sizeof(*t->targets));
    health_init(&t->health, &opt->model);
    router_log_init(&t->router, opt, data);
    rc = run_create(&opt->model, mode_of(opt), n_micro, &t->run, err);
    if (rc < 0)
        return rc;
    if (mode_of(opt) == RUN_TRAIN_WHOLE)
        run_lend(t->run, t->grad);
    run_set_precision(t->run, opt->precision);
    if (opt->is_timed)
        weights_repeat(&t->w, opt->init_std);
    else
        weights_randomise(&t->w, opt->seed, opt->init_std);
    return 0;
}

void trainer_release(struct trainer *t)
{
    run_free(t->run);
    health_release(&t->health);
    router_log_release(&t->router);
    weights_release(&t->w);
    free(t->grad);
    optimiser_release(&t->optimiser);
    free(t->history);
    free(t->made_by);
    free(t->tokens);
    free(t->targets);
    *t = (struct trainer){0};
}

double trainer_bytes(const struct train_options *opt)
{
    size_t n_micro = (size_t)(opt->micro_batch * opt->model.context);

    const struct optimiser_size more = optimiser_size(opt);

    return sizeof(real) * (3.0 * (double)model_config_total(&opt->model) + (double)more.second +
                           (double)more.scratch) +
           run_bytes(&opt->model, mode_of(opt), n_micro);
}
