/* The sections of the report, in reading order: each adds its blocks to the document, from the
 * model alone. A section that has nothing to say says so in one line or, where absence means
 * nothing, adds nothing. */
#ifndef TRUTHTABLE_REPORT_SECTIONS_SECTIONS_H
#define TRUTHTABLE_REPORT_SECTIONS_SECTIONS_H

#include "truthtable/report/document/doc.h"
#include "truthtable/report/report_model.h"

/* The head of the report and its notices; the table with what each input read. */
void section_banner(struct doc *d, const struct report_model *m);
/* How far the verdict reaches, and whether the instruments agree with it. */
void section_scope(struct doc *d, const struct report_model *m);
void section_table(struct doc *d, const struct report_model *m);
/* Proofs of the plan from the lock; priors with the outcome that binds. */
void section_proof(struct doc *d, const struct report_model *m);
void section_priors(struct doc *d, const struct report_model *m);
/* Planned against done, the measures with their gates, differences, and validity. */
void section_coverage(struct doc *d, const struct report_model *m);
void section_measures(struct doc *d, const struct report_model *m);
void tables_environments(struct doc *d, const struct report_model *m); /* of the apparatus */
void tables_means(struct doc *d, const struct report_model *m);        /* part of the measures */
void section_contrasts(struct doc *d, const struct report_model *m);
void section_matrix(struct doc *d, const struct report_model *m);
void section_validity(struct doc *d, const struct report_model *m);
/* What is held fixed, curves, and router facts: they inform and gate nothing. */
void section_contract(struct doc *d, const struct report_model *m);
void section_curves(struct doc *d, const struct report_model *m);
void section_router(struct doc *d, const struct report_model *m);
/* How the run went: attempts, acts of persons, changes of [run], or imported files. */
void section_attempts(struct doc *d, const struct report_model *m);
void blocks_campaign(struct doc *d, const struct report_model *m);  /* in the section of attempts */
void section_imported(struct doc *d, const struct report_model *m); /* in place of attempts */
/* What may be trusted and why: the chain, the lock, the apparatus. */
void section_amendments(struct doc *d, const struct report_model *m);
void section_lock(struct doc *d, const struct report_model *m);
void section_apparatus(struct doc *d, const struct report_model *m);
/* Statistics beside the verdict, open questions, and the record of digests. */
void section_instruments(struct doc *d, const struct report_model *m);
void section_limits(struct doc *d, const struct report_model *m);
void section_record(struct doc *d, const struct report_model *m);

/* All of the above. */
void sections_build(struct doc *d, const struct report_model *m);

#endif
