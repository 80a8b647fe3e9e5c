/*
 * The threads of a worker's arithmetic, and the floating-point mode that all of them run in.
 *
 * Work is cut into items that do not depend on one another: an item's result is the same whichever
 * thread computes it, so the number of threads never shows in a result. Sums run within items;
 * where one runs across items, it is cut into parts of a fixed length and their sums are added in
 * order (worker/nn/vec.h).
 */
#ifndef WORKER_NN_THREADS_H
#define WORKER_NN_THREADS_H

#include <stddef.h>

#include "base/err.h"

#define NN_THREADS_MAX 1024

/* Starts n - 1 threads beside the caller, which stays one of them, and sets the mode of them all:
 * results and operands below the smallest normal number count as zero. Once in a process, before
 * the first product; 1 <= n <= NN_THREADS_MAX. ERR_IO when the system refuses a thread. */
int nn_threads_start(int n, struct err *err) MUST_CHECK;
/* Sets that mode for the calling thread alone: for a worker that computes with one. */
void nn_flush_denormals(void);
/* Ends the other threads. */
void nn_threads_stop(void);
/* 1 unless started with more. */
int nn_threads(void);

/* Calls work(ctx, from, to, thread) for parts of 0 .. n - 1 that cover it once, on all threads at
 * the same time; returns when all are done. thread: 0 .. nn_threads() - 1. Not to be called from
 * within. */
void nn_parallel(size_t n, void (*work)(void *ctx, size_t from, size_t to, int thread), void *ctx);

/* The same for rows that take little time for each of their elements: on the calling thread alone
 * where these are few. */
void nn_parallel_rows(size_t n, size_t elements,
                      void (*work)(void *ctx, size_t from, size_t to, int thread), void *ctx);

#endif
