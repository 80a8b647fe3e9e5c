/* Pictures of what routers did over the steps of a stage: loads of experts, and how many of them
 * are in use. */
#ifndef TRUTHTABLE_REPORT_SECTIONS_FIGURES_ROUTER_H
#define TRUTHTABLE_REPORT_SECTIONS_FIGURES_ROUTER_H

#include <stddef.h>

#include "truthtable/report/document/doc.h"
#include "truthtable/report/report_model.h"

/* Nothing where no task of the stage left a course. */
void figures_router(struct doc *d, const struct report_model *m, size_t stage);

#endif
