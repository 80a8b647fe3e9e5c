/*
 * SA_RESTART: system calls under way are continued, so code that reads and writes files need not
 * know about signals. The flag is never cleared: a worker that was asked to stop stops.
 */
#include "worker/report/stop.h"

#include <errno.h>
#include <signal.h>

static volatile sig_atomic_t stop_flag;

static void on_signal(int signo)
{
    (void)signo;
    stop_flag = 1;
}

int stop_install(struct err *err)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    (void)sigemptyset(&sa.sa_mask);
    if (sigaction(SIGTERM, &sa, NULL) != 0 || sigaction(SIGINT, &sa, NULL) != 0)
        return err_set_errno(err, errno, "sigaction");
    /* The parent may block both until a handler is installed; a blocked mask survives exec. */
    sigset_t taken;
    (void)sigemptyset(&taken);
    (void)sigaddset(&taken, SIGTERM);
    (void)sigaddset(&taken, SIGINT);
    if (sigprocmask(SIG_UNBLOCK, &taken, NULL) != 0)
        return err_set_errno(err, errno, "sigprocmask");
    return 0;
}

bool stop_asked(void)
{
    return stop_flag != 0;
}
