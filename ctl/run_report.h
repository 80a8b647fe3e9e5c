/* Writing a program folder's report by the executable beside this one: nothing in it can change a
 * verdict. */
#ifndef CTL_RUN_REPORT_H
#define CTL_RUN_REPORT_H

#include "base/err.h"

int run_report(const char *folder, struct err *err) MUST_CHECK;

#endif
