/* What is known of the apparatus checks, including those that an amendment removed: from
 * provenance.json and the amendments. Owns nothing. */
#ifndef TRUTHTABLE_REPORT_REPORT_APPARATUS_H
#define TRUTHTABLE_REPORT_REPORT_APPARATUS_H

#include "truthtable/report/report_model.h"

/* Gives every attempt of a check in `provenance` a member "came": what it scored, from its result;
 * null without one. */
void report_apparatus_read(struct report_model *m, const char *folder);
/* A check in provenance.json, declared or removed; NULL if it has none. */
const cJSON *report_check(const struct report_model *m, const char *name);
/* What was demanded of an attempt and came of it (docs/apparatus.md, "results"); NULL. */
const cJSON *report_check_result(const cJSON *check, const cJSON *attempt);
/* Whether check `i` of the program is one to show: a second run is, unless nothing is on record of
 * it, as of records from elsewhere and of versions that made none. */
bool report_check_is_shown(const struct report_model *m, size_t i);
/* Whether an amendment changed anything of a check. */
bool report_check_is_amended(const struct report_model *m, const char *name);
/* What amendments changed of a check when attempts of it had ended, in sentences; NULL: nothing. */
const char *report_apparatus_amended(struct arena *a, const struct report_model *m);

/* A check that the program had and an amendment took away. */
struct check_gone {
    const char *name;
    double amendment;     /* that took it away; NAN: not known */
    const cJSON *results; /* in order; NULL: none on record */
    size_t n_results;
    size_t n_failed;
};

/* *out: as many as are returned, in the arena. */
size_t report_apparatus_gone(struct arena *a, const struct report_model *m,
                             struct check_gone **out);
/* A sentence for each; NULL: none was taken away. *failed, unless NULL: one had not held. */
const char *report_apparatus_gone_words(struct arena *a, const struct report_model *m,
                                        bool *failed);

#endif
