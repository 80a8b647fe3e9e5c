/* SIGTERM means: checkpoint now and exit 75. The handler only sets a flag; work loops check it
 * between units of work. */
#ifndef WORKER_REPORT_STOP_H
#define WORKER_REPORT_STOP_H

#include <stdbool.h>

#include "base/err.h"

int stop_install(struct err *err) MUST_CHECK; /* SIGTERM and SIGINT */
bool stop_asked(void);

#endif
