/*
 * With an interval of "auto" the next checkpoint is due by Daly's formula over the measured cost of
 * the last one. The cost is what writing took from the steps: the copy and the writer's processor
 * time, or the whole write where the steps wait. Before the first write it is guessed from the
 * number of bytes.
 *
 * The interval restarts after the copy and not after the write, so a slow disk does not stretch it.
 */
#include "worker/train/checkpoint/checkpoint_schedule.h"

#include "base/clock.h"
#include "worker/nn/product/product.h"
#include "worker/train/checkpoint/earlier_run.h"

#define WRITE_RATE     2e8 /* bytes a second assumed of the first checkpoint */
#define FIRST_OVERHEAD 0.02

void checkpoint_schedule_init(struct checkpoint_schedule *k, const struct worker_task *task,
                              const struct trainer *t, struct events *events, bool copies)
{
    *k = (struct checkpoint_schedule){
        .task = task, .trainer = t, .events = events, .copies = copies, .last_step = -1};
    k->run = (struct checkpoint_run){
        .key = checkpoint_key(task, t->data),
        .threads = t->opt->products == PRODUCTS_OPENBLAS ? task->threads : 0,
        .products = product_text(),
        .identity = earlier_run_identity(task, t->opt, t->data),
    };
    k->cost = checkpoint_image_bytes(t->opt) / WRITE_RATE + FIRST_OVERHEAD;
    checkpoint_writer_init(&k->writer);
}

void checkpoint_schedule_begin(struct checkpoint_schedule *k)
{
    const struct trainer *t = k->trainer;

    k->earlier = 0.0;
    for (int64_t i = 0; i < t->step; i++)
        k->earlier += (double)t->history[i].seconds;
    k->begin_ns = k->due_ns = clock_mono_ns();
}

void checkpoint_schedule_release(struct checkpoint_schedule *k)
{
    if (k->task == NULL)
        return;
    checkpoint_schedule_finish(k);
    checkpoint_writer_release(&k->writer);
    cJSON_Delete(k->run.identity);
    *k = (struct checkpoint_schedule){0};
}

static bool is_due(const struct checkpoint_schedule *k)
{
    int64_t now = clock_mono_ns();
    double since = (double)(now - k->due_ns) * 1e-9;
    double worked = k->earlier + (double)(now - k->begin_ns) * 1e-9;

    if (k->task->try_steps > 0) /* one, so that its memory and its file are measured, too */
        return k->begin_ns == k->due_ns;
    if (k->task->checkpoint_seconds >= 0.0)
        return since >= k->task->checkpoint_seconds;
    return since >= checkpoint_interval(k->cost, worked, k->task->attempt_no - 1);
}

static void say_written(struct checkpoint_schedule *k, int64_t step, double seconds, double stall)
{
    char path[64];

    k->last_step = step;
    checkpoint_path(step, path, sizeof(path));
    events_checkpoint(k->events, step, path, seconds, stall);
}

static void say_given_up(struct checkpoint_schedule *k, const struct err *why)
{
    if (k->last_step >= 0)
        events_note(k->events, "%s: given up; step %lld stays the last one kept", why->msg,
                    (long long)k->last_step);
    else
        events_note(k->events, "%s: given up; none of this attempt is kept yet", why->msg);
}

/* Collects the thread's outcome and reports it. */
static void take(struct checkpoint_schedule *k)
{
    struct err why = {0};

    int rc = checkpoint_writer_take(&k->writer, &why);
    k->cost = k->writer.stall_seconds + k->writer.cpu_seconds;
    if (rc == 0)
        say_written(k, k->writer.image.step, k->writer.stall_seconds + k->writer.seconds,
                    k->writer.stall_seconds);
    else
        say_given_up(k, &why);
}

/* Writes a view of the trainer, without a copy; the caller's steps wait. */
static int write_now(struct checkpoint_schedule *k, struct err *err)
{
    struct checkpoint_image view;
    int64_t begin = clock_mono_ns();

    events_section(k->events, SECTION_CHECKPOINT);
    checkpoint_image_init(&view);
    int rc = checkpoint_image_view(&view, k->trainer, err);
    if (rc == 0)
        rc = checkpoint_write(&view, &k->run, err);
    checkpoint_image_release(&view);
    k->cost = (double)(clock_mono_ns() - begin) * 1e-9;
    if (rc == 0)
        say_written(k, k->trainer->step, k->cost, k->cost);
    return rc;
}

/* Starts the writer, or writes here when the state cannot be copied. */
static void start(struct checkpoint_schedule *k)
{
    struct err why = {0};

    if (k->copies && checkpoint_writer_start(&k->writer, k->trainer, &k->run, &why) < 0) {
        k->copies = false;
        events_note(k->events, "checkpoints stop the steps from here on: %s", why.msg);
    }
    if (!k->copies && write_now(k, &why) < 0)
        say_given_up(k, &why);
}

void checkpoint_schedule_look(struct checkpoint_schedule *k)
{
    if (checkpoint_writer_has_ended(&k->writer))
        take(k);
    if (checkpoint_writer_is_busy(&k->writer) || !is_due(k))
        return;
    start(k);
    /* From here, not from the end of the write. */
    k->due_ns = clock_mono_ns();
}

void checkpoint_schedule_finish(struct checkpoint_schedule *k)
{
    if (!checkpoint_writer_is_busy(&k->writer))
        return;
    events_section(k->events, SECTION_CHECKPOINT);
    take(k);
}

int checkpoint_schedule_stop(struct checkpoint_schedule *k, struct err *err)
{
    int64_t step = k->trainer->step;

    checkpoint_schedule_finish(k);
    return step == 0 || step == k->last_step ? 0 : write_now(k, err);
}
