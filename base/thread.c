/* The new thread inherits the signals that its creator blocks at that moment. */
#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

#define STACK_BYTES ((size_t)8 << 20)

int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0) {
        return rc;
    }
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (rc == 0) {
        rc = pthread_create(thread, &attr, run, arg);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return rc;
}
