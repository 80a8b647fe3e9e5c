#include "worker/train/train.h"

#include <math.h>

#include "base/clock.h"
#include "worker/nn/gemm.h"
#include "worker/report/events.h"
#include "worker/report/result.h"
#include "worker/report/stop.h"
#include "worker/train/checkpoint.h"
#include "worker/train/evaluate.h"
#include "worker/train/outcome.h"

#define CURVE_POINTS   400
#define WRITE_RATE     2e8 /* bytes a second assumed of the first checkpoint */
#define FIRST_OVERHEAD 0.02

/* One attempt at a task. */
struct attempt {
    const struct task *task;
    struct train_options opt;
    struct train_data data;
    struct trainer trainer;
    struct events events;
    struct evaluation last; /* at last_step */
    int64_t last_step;      /* -1: none */
    struct digest key;
    double checkpoint_cost;  /* seconds */
    int64_t checkpoint_ns;   /* when the last one ended, or the steps began */
    int64_t checkpoint_step; /* of the last one this attempt wrote; -1: none */
    int64_t begin_ns;
};

static int set_up(struct attempt *a, struct err *err)
{
    struct param_faults faults = {0};
    bool found = false;

    train_options_read(a->task, &a->opt, &faults);
    if (faults.n == 0)
        trainer_check_memory(&a->opt, a->task, &faults);
    int rc = param_faults_result(&faults, err);
    for (size_t i = 0; rc < 0 && i < faults.n; i++)
        (void)fprintf(stderr, "prereg-train: params.%s: %s\n", faults.items[i].key,
                      faults.items[i].why);
    param_faults_release(&faults);
    if (rc == 0)
        rc = train_data_load(a->task, &a->opt, &a->data, err);
    if (rc == 0)
        rc = trainer_init(&a->trainer, &a->opt, &a->data, err);
    if (rc < 0)
        return rc;
    a->key = checkpoint_key(a->task, &a->data);
    rc = checkpoint_resume(&a->trainer, a->task, &a->key, &a->events, &found, err);
    if (rc == 0 && found)
        events_resumed(&a->events, a->trainer.step);
    a->checkpoint_cost =
        3.0 * sizeof(real) * (double)a->trainer.w.table.n_params / WRITE_RATE + FIRST_OVERHEAD;
    return rc;
}

static int write_checkpoint(struct attempt *a, struct err *err)
{
    char path[64];
    int64_t begin = clock_mono_ns();

    events_section(&a->events, SECTION_CHECKPOINT);
    int rc = checkpoint_write(&a->trainer, &a->key, a->task->threads, err);
    if (rc < 0)
        return rc;
    a->checkpoint_ns = clock_mono_ns();
    a->checkpoint_step = a->trainer.step;
    a->checkpoint_cost = (double)(a->checkpoint_ns - begin) * 1e-9;
    checkpoint_path(a->trainer.step, path, sizeof(path));
    events_checkpoint(&a->events, a->trainer.step, path, a->checkpoint_cost);
    return 0;
}

static bool checkpoint_is_due(const struct attempt *a)
{
    int64_t now = clock_mono_ns();
    double since = (double)(now - a->checkpoint_ns) * 1e-9;
    double worked = (double)(now - a->begin_ns) * 1e-9;

    if (a->task->checkpoint_seconds >= 0.0)
        return since >= a->task->checkpoint_seconds;
    return since >= checkpoint_interval(a->checkpoint_cost, worked, a->task->attempt_no - 1);
}

/* Whether this step has to be evaluated: a mark without a value, the target's turn, or the end. */
static bool evaluation_is_due(const struct attempt *a)
{
    const struct trainer *t = &a->trainer;
    const struct train_options *opt = &a->opt;

    for (size_t i = 0; i < opt->n_marks; i++)
        if (t->marks[i].n < 0 && horizon_fraction(opt->steps, opt->marks[i]) == t->step)
            return true;
    if (t->step == opt->steps)
        return true;
    return opt->has_target && t->target_step < 0 && t->step > t->evaluated_step &&
           t->step % opt->eval_every == 0;
}

static int evaluate(struct attempt *a, struct err *err)
{
    struct trainer *t = &a->trainer;

    events_section(&a->events, SECTION_EVAL);
    int rc = evaluate_run(t, &a->last, err);
    if (rc < 0)
        return rc;
    if (!isfinite(a->last.whole.loss)) {
        rc = trainer_check_finite(t, "the validation loss is not finite", err);
        return rc < 0 ? rc
                      : err_set(err, ERR_REFUSED, "step %lld: the validation loss is not finite",
                                (long long)t->step);
    }
    a->last_step = t->step;
    for (size_t i = 0; i < a->opt.n_marks; i++)
        if (horizon_fraction(a->opt.steps, a->opt.marks[i]) == t->step)
            t->marks[i] = a->last.whole;
    if (a->opt.has_target && t->target_step < 0) {
        t->evaluated_step = t->step;
        if (a->last.whole.loss <= a->opt.target_loss)
            t->target_step = t->step;
    }
    return 0;
}

static bool is_finished(const struct attempt *a)
{
    const struct trainer *t = &a->trainer;

    if (t->step == a->opt.steps)
        return true;
    return a->opt.stop_at_target && t->target_step >= 0 && t->step >= t->target_step;
}

static int one_step(struct attempt *a, struct err *err)
{
    struct trainer *t = &a->trainer;
    int64_t begin = clock_mono_ns(), every = a->opt.steps / CURVE_POINTS + 1;
    double loss = 0.0;

    events_section(&a->events, SECTION_STEP);
    int rc = trainer_step(t, &loss, err);
    if (rc < 0)
        return rc;
    t->history[t->step - 1].seconds = (float)((double)(clock_mono_ns() - begin) * 1e-9);
    if (t->step % every == 0 || t->step == a->opt.steps)
        events_point(&a->events, t->step, "loss", loss);
    events_progress(&a->events, t->step, a->opt.steps, "step");
    return events_result(&a->events, err);
}

/* Asked to stop: what is done so far is kept, if there is anything. A checkpoint of this very step
 * is never written again: until the second one is whole there would be none. */
static int stop(struct attempt *a, struct err *err)
{
    bool kept = a->trainer.step == 0 || a->trainer.step == a->checkpoint_step;
    int rc = kept ? 0 : write_checkpoint(a, err);

    return rc < 0 ? rc : err_set(err, ERR_BUSY, "stopped at step %lld", (long long)a->trainer.step);
}

static int run_steps(struct attempt *a, struct err *err)
{
    a->begin_ns = clock_mono_ns();
    a->checkpoint_ns = a->begin_ns;
    for (;;) {
        if (stop_asked())
            return stop(a, err);
        if (evaluation_is_due(a) && a->last_step != a->trainer.step) {
            int rc = evaluate(a, err);
            if (rc == ERR_BUSY)
                return stop(a, err);
            if (rc < 0)
                return rc;
        }
        if (is_finished(a))
            return 0;
        int rc = one_step(a, err);
        if (rc == 0 && a->trainer.step < a->opt.steps && checkpoint_is_due(a))
            rc = write_checkpoint(a, err);
        if (rc < 0)
            return rc;
    }
}

int train_run(const struct task *task, struct err *err)
{
    struct attempt a = {.task = task, .last_step = -1, .checkpoint_step = -1};

    int rc = events_open(&a.events, err);
    if (rc < 0)
        return rc;
    gemm_set_threads(task->threads);
    events_section(&a.events, SECTION_SETUP);
    rc = set_up(&a, err);
    if (rc == 0)
        rc = run_steps(&a, err);
    /* A run that was resumed after its target was reached has nothing evaluated yet. */
    if (rc == 0 && a.last_step != a.trainer.step)
        rc = evaluate(&a, err);
    if (rc == 0)
        rc = outcome_write(&a.trainer, &a.last, task, err);
    if (rc == 0)
        rc = events_result(&a.events, err);
    trainer_release(&a.trainer);
    train_data_release(&a.data);
    events_close(&a.events);
    return rc;
}
