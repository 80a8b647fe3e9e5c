/*
 * Threads beside the main one: with every signal blocked, because signals are the main thread's,
 * and with a stack of their own size. The system's default follows `ulimit -s`: 2 MiB where that is
 * unlimited, of which a worker's thread-local variables can take nearly all. Pages of a stack that
 * are never touched cost nothing.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Starts run(arg) in a thread that is to be joined. Returns 0, or the error's number. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
