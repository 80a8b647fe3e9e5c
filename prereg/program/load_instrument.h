/* The checks of [instrument.*], one for each kind of prereg/program/instrument.h; inside of
 * load_instruments(). Each reports every fault of its table. */
#ifndef PREREG_PROGRAM_LOAD_INSTRUMENT_H
#define PREREG_PROGRAM_LOAD_INSTRUMENT_H

#include "prereg/program/load.h"

void load_bayes(struct load *l, const struct toml_node *t);
void load_mixed(struct load *l, const struct toml_node *t);
void load_connector(struct load *l, const struct toml_node *t);
void load_items(struct load *l, const struct toml_node *t);
void load_router(struct load *l, const struct toml_node *t);
void load_anchors(struct load *l, const struct toml_node *t);

#endif
