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
void show_course(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_detectable(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_dispersion(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_items(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_margins(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_mixed(struct doc *d, const struct report_model *m, const cJSON *instrument);
void show_router(struct doc *d, const struct report_model *m, const cJSON *instrument);

/* What the instruments leave open, as items of the list of limitations; what the records leave
 * open. */
void limits_of_instruments(struct doc *d, const struct report_model *m, struct doc_list *list);
void limits_of_records(struct doc *d, const struct report_model *m, struct doc_list *list);

/* The identifier of a table or figure of an instrument: KIND, NAME and what it shows. */
const char *show_id(struct doc *d, const cJSON *instrument, const char *what);

#endif
