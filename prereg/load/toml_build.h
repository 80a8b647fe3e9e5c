/* toml++ behind a C function. */
#ifndef PREREG_LOAD_TOML_BUILD_H
#define PREREG_LOAD_TOML_BUILD_H

#include "prereg/load/toml.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Builds the tree of a text whose size and key lengths were checked already. 0, or a negative ERR_*
 * with the reason in diag. Never throws. */
int toml_build(const char *text, size_t len, struct arena *arena, struct toml_node **root,
               struct diag *diag);

#ifdef __cplusplus
}
#endif

#endif
