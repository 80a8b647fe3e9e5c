/*
 * The thread owns the copy from start to join; the trainer's thread touches it only when no writing
 * is in flight. `ended` is the only field both sides read meanwhile. Signals are blocked in the
 * thread, so that SIGTERM is delivered to the thread that polls the flag.
 */
#include "worker/train/checkpoint/checkpoint_writer.h"

#include <assert.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

void checkpoint_writer_init(struct checkpoint_writer *w)
{
    *w = (struct checkpoint_writer){0};
    checkpoint_image_init(&w->image);
}

void checkpoint_writer_release(struct checkpoint_writer *w)
{
    struct err ignored;

    if (w->started)
        (void)!checkpoint_writer_take(w, &ignored);
    checkpoint_image_release(&w->image);
}

static double thread_cpu_seconds(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *write_image(void *arg)
{
    struct checkpoint_writer *w = arg;
    int64_t begin = clock_mono_ns();

    w->rc = checkpoint_write(&w->image, &w->run, &w->err);
    w->seconds = (double)(clock_mono_ns() - begin) * 1e-9;
    w->cpu_seconds = thread_cpu_seconds();
    atomic_store(&w->ended, true);
    return NULL;
}

bool checkpoint_writer_is_busy(const struct checkpoint_writer *w)
{
    return w->started;
}

int checkpoint_writer_start(struct checkpoint_writer *w, const struct trainer *t,
                            const struct checkpoint_run *run, struct err *err)
{
    int64_t begin = clock_mono_ns();

    assert(!w->started);
    int rc = checkpoint_image_copy(&w->image, t, err);
    if (rc < 0)
        return rc;
    w->stall_seconds = (double)(clock_mono_ns() - begin) * 1e-9;
    w->run = *run;
    atomic_store(&w->ended, false);
    int failed = thread_start(&w->thread, write_image, w);
    if (failed != 0)
        return err_set(err, ERR_OTHER, "no thread: %s", strerror(failed));
    w->started = true;
    return 0;
}

bool checkpoint_writer_has_ended(const struct checkpoint_writer *w)
{
    return w->started && atomic_load(&w->ended);
}

int checkpoint_writer_take(struct checkpoint_writer *w, struct err *err)
{
    assert(w->started);
    (void)pthread_join(w->thread, NULL);
    w->started = false;
    if (w->rc < 0)
        *err = w->err;
    return w->rc;
}
