/* Writes a program folder's report with prereg-report, the executable beside this one: nothing
 * in it can change a verdict. */
#ifndef CTL_RUN_REPORT_H
#define CTL_RUN_REPORT_H

#include "base/err.h"

/* Waits for it; ERR_OTHER has its last words. */
int run_report(const char *folder, struct err *err) MUST_CHECK;

#endif
