/*
 * A pool whose threads wait for the next piece of work, and a caller who waits for their ends:
 * first by looking again for some microseconds, because pieces follow closely within a pass, then
 * asleep. The parts are cut by the number of threads alone, part i for thread i.
 *
 * `round` counts the pieces; a thread works when it changes and reports by `left`, the number of
 * threads that are not done yet. Both are atomic; the lock is for sleeping alone. `shares` catches
 * work that shares out work: its parts would replace those that are being computed.
 */
#include "worker/nn/threads.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/thread.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define LOOKS 4096  /* before a thread sleeps; some 50 us */
#define FEW   16384 /* elements: fewer take less time than sharing them out */

static struct {
    int n; /* with the caller; 0: not started */
    pthread_t others[NN_THREADS_MAX];
    void (*work)(void *ctx, size_t from, size_t to, int thread);
    void *ctx;
    size_t n_items;
    _Atomic unsigned round;
    _Atomic int left;
    _Atomic bool stops;
    _Atomic bool shares; /* within nn_parallel() */
    pthread_mutex_t lock;
    pthread_cond_t begins;
    pthread_cond_t ends;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .begins = PTHREAD_COND_INITIALIZER,
          .ends = PTHREAD_COND_INITIALIZER};

/* Per thread: the mode is part of its registers. On other processors gradual underflow stays. */
void nn_flush_denormals(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040u); /* FTZ, DAZ */
#elif defined(__aarch64__)
    __UINT64_TYPE__ fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr |= (__UINT64_TYPE__)1 << 24; /* FZ */
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

static void look_again(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` takes no time on most processors */
#endif
}

static void do_part(int thread)
{
    size_t n = (size_t)pool.n, i = (size_t)thread;

    pool.work(pool.ctx, pool.n_items / n * i + pool.n_items % n * i / n,
              pool.n_items / n * (i + 1) + pool.n_items % n * (i + 1) / n, thread);
}

/* Returns when `round` is no longer `seen`, or the pool stops. */
static void wait_for_work(unsigned seen)
{
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load(&pool.round) != seen || atomic_load(&pool.stops))
            return;
        look_again();
    }
    pthread_mutex_lock(&pool.lock);
    while (atomic_load(&pool.round) == seen && !atomic_load(&pool.stops))
        pthread_cond_wait(&pool.begins, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

static void wait_for_others(void)
{
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load(&pool.left) == 0)
            return;
        look_again();
    }
    pthread_mutex_lock(&pool.lock);
    while (atomic_load(&pool.left) > 0)
        pthread_cond_wait(&pool.ends, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

static void *thread_main(void *arg)
{
    int thread = *(const int *)arg;
    unsigned seen = 0;

    nn_flush_denormals();
    for (;;) {
        wait_for_work(seen);
        if (atomic_load(&pool.stops))
            return NULL;
        seen++;
        do_part(thread);
        if (atomic_fetch_sub(&pool.left, 1) == 1) {
            pthread_mutex_lock(&pool.lock);
            pthread_cond_signal(&pool.ends);
            pthread_mutex_unlock(&pool.lock);
        }
    }
}

int nn_threads_start(int n, struct err *err)
{
    static int numbers[NN_THREADS_MAX];
    int started = 1, rc = 0;

    assert(pool.n == 0 && n >= 1 && n <= NN_THREADS_MAX);
    nn_flush_denormals();
    atomic_store(&pool.stops, false);
    atomic_store(&pool.round, 0);
    while (rc == 0 && started < n) {
        numbers[started] = started;
        rc = thread_start(&pool.others[started], thread_main, &numbers[started]);
        started += rc == 0;
    }
    pool.n = started;
    if (rc == 0)
        return 0;
    nn_threads_stop();
    return err_set(err, ERR_IO, "cannot start thread %d of %d: %s", started + 1, n, strerror(rc));
}

void nn_threads_stop(void)
{
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.stops, true);
    pthread_cond_broadcast(&pool.begins);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 1; i < pool.n; i++)
        pthread_join(pool.others[i], NULL);
    pool.n = 0;
}

int nn_threads(void)
{
    return pool.n > 1 ? pool.n : 1;
}

void nn_parallel(size_t n, void (*work)(void *ctx, size_t from, size_t to, int thread), void *ctx)
{
    if (pool.n <= 1 || n <= 1) {
        work(ctx, 0, n, 0);
        return;
    }
    bool within = atomic_exchange(&pool.shares, true);
    assert(!within);
    pool.work = work;
    pool.ctx = ctx;
    pool.n_items = n;
    atomic_store(&pool.left, pool.n - 1);
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.round, 1);
    pthread_cond_broadcast(&pool.begins);
    pthread_mutex_unlock(&pool.lock);
    do_part(0);
    wait_for_others();
    atomic_store(&pool.shares, false);
}

void nn_parallel_rows(size_t n, size_t elements,
                      void (*work)(void *ctx, size_t from, size_t to, int thread), void *ctx)
{
    if (pool.n <= 1 || n * elements < FEW)
        work(ctx, 0, n, 0);
    else
        nn_parallel(n, work, ctx);
}
