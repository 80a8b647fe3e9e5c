#include "truthtable/report/sections.h"

void sections_build(struct doc *d, const struct report_model *m)
{
    section_banner(d, m);
    section_table(d, m);
    section_coverage(d, m);
    section_measures(d, m);
    section_contrasts(d, m);
    section_matrix(d, m);
    section_validity(d, m);
    section_contract(d, m);
    section_curves(d, m);
    section_router(d, m);
    section_priors(d, m);
    section_proof(d, m);
    section_attempts(d, m);
    section_limits(d, m);
    section_record(d, m);
}
