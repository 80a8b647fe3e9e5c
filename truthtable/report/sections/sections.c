/*
 * The order of the report. A reader who stops early has read what binds; instruments and curves
 * follow, and the record comes last. Each section reads the model alone, so they can be reordered
 * here.
 */
#include "truthtable/report/sections/sections.h"

void sections_build(struct doc *d, const struct report_model *m)
{
    /* What binds ... */
    section_banner(d, m);
    section_scope(d, m);
    section_table(d, m);
    section_coverage(d, m);
    section_measures(d, m);
    section_contrasts(d, m);
    section_matrix(d, m);
    section_validity(d, m);
    /* ... what does not ... */
    section_instruments(d, m);
    section_priors(d, m);
    section_contract(d, m);
    section_curves(d, m);
    section_router(d, m);
    /* ... how it came about, and what to make of it. */
    section_apparatus(d, m);
    section_attempts(d, m);
    section_lock(d, m);
    section_proof(d, m);
    section_amendments(d, m);
    section_limits(d, m);
    section_record(d, m);
}
