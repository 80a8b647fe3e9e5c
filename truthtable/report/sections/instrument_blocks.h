/*
 * How each kind of instrument (docs/instruments.md) is shown: an object of instruments.json as
 * blocks of the document, under the heading that section_instruments.c gives it. Nothing is
 * computed here but texts and pictures; a member that is missing or of another type shows as an em
 * dash, so a file of another hand makes a poor page and never a broken one.
 */
#ifndef TRUTHTABLE_REPORT_SECTIONS_INSTRUMENT_BLOCKS_H
#define TRUTHTABLE_REPORT_SECTIONS_INSTRUMENT_BLOCKS_H

#include "truthtable/report/document/doc.h"
#include "truthtable/report/report_model.h"

void show_anchors(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_bayes(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_connector(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_detectable(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_dispersion(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_items(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_margins(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_mixed(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_router(struct doc *d, const struct report_model *m, const cJSON *instrument);

/* What the instruments leave open, as items of the list of limitations; what the records leave
 * open, and the apparatus. */
void limits_of_instruments(struct doc *d, const struct report_model *m, struct doc_list *list);
void limits_of_records(struct doc *d, const struct report_model *m, struct doc_list *list);
void limits_of_apparatus(struct doc *d, const struct report_model *m, struct doc_list *list);
/* The instrument of that kind, the first of them; NULL. */
const cJSON *show_find(const struct report_model *m, const char *kind);

/* A cell that is one member: up to `digits` significant digits. */
void show_short(struct doc *d, struct doc_cell *cell, const cJSON *obj, const char *key,
                int digits);
/* "+0.0123 +- 0.0045", with both as data. */
void show_estimate(struct doc *d, struct doc_cell *cell, double value, double se);
/* "[-0.01, +0.03]" of members ci_low and ci_high. */
void show_interval(struct doc *d, struct doc_cell *cell, const cJSON *obj);
/* yes, no, or unknown of a member, with the words given. */
struct show_words {
    const char *yes;
    const char *no;
    const char *unknown;
};
void show_flag(struct doc *d, struct doc_cell *cell, const cJSON *obj, const char *key,
               const struct show_words *words);
/* "why" of an object, or "". */
const char *show_why(const cJSON *obj);
/* The identifier of a table or figure of an instrument: KIND, NAME and what it shows. */
const char *show_id(struct doc *d, const cJSON *instrument, const char *what);

#endif
