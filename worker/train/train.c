/*
 * The loop of one attempt: read and check, load data, resume or start, then step, evaluate when
 * due, checkpoint when due, until the horizon or the target. The order inside the loop matters: a
 * stop is honoured before work begins, an evaluation belongs to the state before the next step, and
 * whether the run is finished is decided after it.
 *
 * Memory is checked twice, from file sizes before the data is read and with the real token counts
 * after it.
 */
#include "worker/train/train.h"

#include <math.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "worker/data/progress.h"
#include "worker/nn/product/product.h"
#include "worker/nn/threads.h"
#include "worker/report/events.h"
#include "worker/report/result.h"
#include "worker/report/stop.h"
#include "worker/train/checkpoint/checkpoint_schedule.h"
#include "worker/train/checkpoint/earlier_run.h"
#include "worker/train/checkpoint/snapshot.h"
#include "worker/train/evaluate.h"
#include "worker/train/initial_model.h"
#include "worker/train/log_line.h"
#include "worker/train/memory.h"
#include "worker/train/train_result.h"

#define CURVE_POINTS 400

/* One attempt at a task. */
struct training_attempt {
    const struct worker_task *task;
    struct train_options opt;
    struct train_data data;
    struct trainer trainer;
    struct events events;
    struct checkpoint_schedule schedule;
    struct progress shown;        /* of a run by hand */
    struct log_line said;         /* of one under the daemon */
    int64_t first_step;           /* that this attempt makes */
    double seconds;               /* of the steps and evaluations of this attempt */
    struct train_evaluation last; /* at last_step */
    int64_t last_step;            /* -1: none */
    bool run_written;             /* for a later run to continue */
    bool loss_curve;              /* of the steps' losses is reported */
};

static int say_faults(struct param_faults *faults, struct err *err)
{
    int rc = param_faults_result(faults, err);

    param_faults_say(faults, "prereg-train");
    param_faults_release(faults);
    return rc;
}

static int read_options(struct training_attempt *a, struct err *err)
{
    struct param_faults faults = {0};
    struct memory_need need;

    int rc = 0;

    train_options_read(a->task, &a->opt, &faults);
    if (faults.n == 0)
        rc = initial_model_check(a->task, &a->opt, &faults, err);
    if (rc == 0 && faults.n == 0)
        rc = earlier_run_check(a->task, &a->opt, &faults, err);
    if (rc < 0)
        return rc;
    if (faults.n == 0) {
        memory_need_of(&a->opt, memory_corpus_of_files(a->task, &a->opt), a->task->threads, &need);
        memory_check(&need, memory_allowed(a->task), &a->opt, &faults);
    }
    return say_faults(&faults, err);
}

/* Checks again with the real number of tokens: whether the run fits, and a copy of its state too.
 */
static int check_memory(const struct training_attempt *a, bool *copies, struct err *err)
{
    struct param_faults faults = {0};
    struct memory_need need;
    double allowed = memory_allowed(a->task);

    memory_need_of(&a->opt, memory_corpus_of_data(&a->data), a->task->threads, &need);
    memory_check(&need, allowed, &a->opt, &faults);
    *copies = allowed <= 0.0 || memory_most(&need) <= allowed;
    return say_faults(&faults, err);
}

/* Begins where the run of init.run ended. */
static int continue_earlier(struct training_attempt *a, struct err *err)
{
    int rc = earlier_run_load(&a->trainer, a->task, &a->schedule.run, err);

    if (rc == 0)
        events_note(&a->events, "continues the run \"%s\" after its step %lld", a->opt.init_run,
                    (long long)a->trainer.step);
    return rc;
}

/* Continues from the newest checkpoint, if any, and starts the schedule's clock. */
static int resume(struct training_attempt *a, struct err *err)
{
    bool found = false;

    a->trainer.made_by = a->opt.products == PRODUCTS_OPENBLAS
                             ? xasprintf("%s, %d thread%s", product_text(), a->task->threads,
                                         a->task->threads == 1 ? "" : "s")
                             : xstrdup(product_text());
    int rc = checkpoint_resume(&a->trainer, a->task, &a->schedule.run, &a->events, &found, err);
    if (rc == 0 && found)
        events_resumed(&a->events, a->trainer.step);
    if (rc == 0 && !found && a->opt.init_run != NULL)
        rc = continue_earlier(a, err);
    checkpoint_schedule_begin(&a->schedule);
    return rc;
}

/* Bits per byte are a multiple of the loss, and the step of a target says where it was reached. */
static bool validation_is_sealed(const struct worker_task *task)
{
    return task_seals(task, "val_loss") || task_seals(task, "val_bits_per_byte") ||
           task_seals(task, "target_step") || task_seals(task, "target_hit") ||
           task_seals(task, "best_val_loss") || task_seals(task, "best_val_step");
}

/* The plan seals values that a curve would show while other cells run (docs/decisions.md). */
static void say_sealed(struct training_attempt *a)
{
    const bool validation = a->opt.val_curve && validation_is_sealed(a->task);
    const bool training = task_seals(a->task, "train_loss");

    if (validation || training)
        events_note(&a->events,
                    validation && training ? "the plan seals the losses: no curve is reported"
                    : validation
                        ? "the plan seals val_loss: its curve is not reported"
                        : "the plan seals train_loss: the curve of the loss is not reported");
    a->opt.val_curve = a->opt.val_curve && !validation;
    a->loss_curve = !training;
}

static int set_up(struct training_attempt *a, struct err *err)
{
    bool copies = false;

    int rc = read_options(a, err);
    if (rc == 0 && (rc = train_data_load(a->task, &a->opt, &a->data, err)) == 0 &&
        (rc = check_memory(a, &copies, err)) == 0 &&
        (rc = trainer_init(&a->trainer, &a->opt, &a->data, err)) == 0)
        rc = initial_model_load(a->task, &a->data, &a->trainer, err);
    if (rc == 0)
        rc = earlier_run_verify(a->task, &a->opt, &a->data, err);
    if (rc < 0)
        return rc;
    if (!copies)
        events_note(&a->events, "memory has no room for a copy of the state: steps wait while a "
                                "checkpoint is written");
    say_sealed(a);
    checkpoint_schedule_init(&a->schedule, a->task, &a->trainer, &a->events, copies);
    return resume(a, err);
}

/* Whether this step has to be evaluated: a mark without a value, its turn, or the end. */
static bool evaluation_is_due(const struct training_attempt *a)
{
    const struct trainer *t = &a->trainer;
    const struct train_options *opt = &a->opt;

    for (size_t i = 0; i < opt->n_marks; i++)
        if (t->marks[i].whole.n < 0 && horizon_fraction(opt->steps, opt->marks[i]) == t->step)
            return true;
    if (t->step == train_options_end(opt))
        return true;
    return opt->eval_every > 0 && t->step > 0 && t->step > t->evaluated_step &&
           t->step % opt->eval_every == 0;
}

static void say_validation(struct training_attempt *a)
{
    char name[METRIC_NAME_SIZE];

    events_point(&a->events, a->last_step, "val_loss", a->last.whole.loss);
    const size_t n = train_data_n_validated(&a->data);
    for (size_t i = 0; i < n && n > 1; i++) {
        train_result_source_name("val_loss", train_data_validated(&a->data, i)->name, name);
        events_point(&a->events, a->last_step, name, a->last.source[i].loss);
    }
}

/* Evaluates the present state and records it as marks, target and curve. */
static int evaluate(struct training_attempt *a, struct err *err)
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
            t->marks[i] = a->last;
    t->evaluated_step = t->step;
    if (t->best_step < 0 || a->last.whole.loss < t->best.loss) {
        t->best = a->last.whole;
        t->best_step = t->step;
    }
    if (a->opt.has_target && t->target_step < 0 && a->last.whole.loss <= a->opt.target_loss)
        t->target_step = t->step;
    if (a->opt.val_curve)
        say_validation(a);
    return 0;
}

static bool is_finished(const struct training_attempt *a)
{
    const struct trainer *t = &a->trainer;

    if (t->step == train_options_end(&a->opt))
        return true;
    return a->opt.stop_at_target && t->target_step >= 0 && t->step >= t->target_step;
}

static int timed_step(struct trainer *t, double *loss, struct err *err)
{
    int64_t begin = clock_mono_ns();

    int rc = trainer_step(t, loss, err);
    if (rc == 0)
        t->history[t->step - 1].seconds = (float)((double)(clock_mono_ns() - begin) * 1e-9);
    return rc;
}

/* A step with everything that is reported about it. */
static int one_step(struct training_attempt *a, struct err *err)
{
    struct trainer *t = &a->trainer;
    int64_t every = a->opt.steps / CURVE_POINTS + 1;
    bool sampled = router_log_is_due(&t->router, t->step + 1);
    double loss = 0.0;

    events_section(&a->events, SECTION_STEP);
    if (sampled)
        router_log_before(&t->router, t->run, &t->w);
    int rc = timed_step(t, &loss, err);
    if (rc < 0)
        return rc;
    if (sampled) {
        router_log_after(&t->router, t->run, &t->w, t->health.step, t->step);
        router_log_say(&t->router, t->step, &a->events);
    }
    if (a->loss_curve && (t->step % every == 0 || t->step == train_options_end(&a->opt)))
        events_point(&a->events, t->step, "loss", loss);
    events_progress(&a->events, t->step, train_options_end(&a->opt), "step");
    log_line_step(&a->said, t->step, loss);
    return events_result(&a->events, err);
}

/* The present state goes to the disk; the exit code asks the daemon to run the task again. */
static int stop(struct training_attempt *a, struct err *err)
{
    int rc = checkpoint_schedule_stop(&a->schedule, err);

    return rc < 0 ? rc : err_set(err, ERR_BUSY, "stopped at step %lld", (long long)a->trainer.step);
}

/* Without an events file the run is by hand, and shows its progress itself. */
static void show_progress(struct training_attempt *a)
{
    if (a->events.fd < 0)
        progress_set(&a->shown, (double)((a->trainer.step - a->first_step) * a->opt.batch_tokens));
}

/* The run ends before its horizon does. Its state is kept before the evaluation at its end, which
 * an uninterrupted run need not make. */
static bool run_is_due(const struct training_attempt *a)
{
    return a->opt.left_out > 0 && !a->run_written && a->trainer.step == train_options_end(&a->opt);
}

static int write_run(struct training_attempt *a, struct err *err)
{
    events_section(&a->events, SECTION_CHECKPOINT);
    int rc = earlier_run_write(&a->trainer, &a->schedule.run, err);
    a->run_written = rc == 0;
    return rc;
}

/* Leaves what belongs to this very step, before it is evaluated. */
static int keep_state(struct training_attempt *a, struct err *err)
{
    int rc = 0;

    if (snapshot_is_due(&a->trainer)) {
        events_section(&a->events, SECTION_CHECKPOINT);
        checkpoint_schedule_finish(&a->schedule); /* one thing at a time goes to the disk */
        rc = snapshot_write(&a->trainer, err);
    }
    return rc == 0 && run_is_due(a) ? write_run(a, err) : rc;
}

static int make_steps(struct training_attempt *a, struct err *err)
{
    const int64_t end = train_options_end(&a->opt);

    a->first_step = a->trainer.step;
    progress_start(&a->shown, "tokens", PROGRESS_THINGS,
                   (double)((end - a->trainer.step) * a->opt.batch_tokens));
    a->said = (struct log_line){.silent = a->events.fd < 0,
                                .sealed = a->task->sealed,
                                .steps = end,
                                .batch_tokens = a->opt.batch_tokens};
    log_line_start(&a->said, a->trainer.step);
    for (;;) {
        if (stop_asked())
            return stop(a, err);
        int rc = keep_state(a, err);
        if (rc < 0)
            return rc;
        if (evaluation_is_due(a) && a->last_step != a->trainer.step) {
            rc = evaluate(a, err);
            if (rc == ERR_BUSY)
                return stop(a, err);
            if (rc < 0)
                return rc;
        }
        if (is_finished(a))
            return 0;
        rc = one_step(a, err);
        if (rc < 0)
            return rc;
        show_progress(a);
        if (a->trainer.step < end)
            checkpoint_schedule_look(&a->schedule);
    }
}

static int run_steps(struct training_attempt *a, struct err *err)
{
    int64_t begin = clock_mono_ns();

    int rc = make_steps(a, err);
    a->seconds = (double)(clock_mono_ns() - begin) * 1e-9;
    return rc;
}

/* From the last step to result.json. */
static int finish(struct training_attempt *a, struct err *err)
{
    int rc = 0;

    /* A run that was resumed after its target was reached has nothing evaluated yet. */
    if (a->last_step != a->trainer.step)
        rc = evaluate(a, err);
    /* Its copy makes room for what writing the model takes. */
    checkpoint_schedule_release(&a->schedule);
    if (rc == 0)
        rc = train_result_write(&a->trainer, &a->last, a->task, a->seconds, err);
    return rc == 0 ? events_result(&a->events, err) : rc;
}

int train_run(const struct worker_task *task, struct err *err)
{
    struct training_attempt a = {.task = task, .last_step = -1};

    int rc = events_open(&a.events, err);
    if (rc < 0)
        return rc;
    product_choose(train_options_products(task), task->threads);
    const struct worker_environment env = train_environment(task->threads);
    events_environment(&a.events, &env);
    events_section(&a.events, SECTION_SETUP);
    rc = nn_threads_start(task->threads, err);
    if (rc == 0)
        rc = set_up(&a, err);
    if (rc == 0)
        rc = run_steps(&a, err);
    progress_end(&a.shown);
    if (rc == 0)
        rc = finish(&a, err);
    /* On an error too, what is in flight is finished. */
    checkpoint_schedule_release(&a.schedule);
    trainer_release(&a.trainer);
    train_data_release(&a.data);
    events_close(&a.events);
    nn_threads_stop();
    return rc;
}
