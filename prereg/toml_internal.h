/* What toml.c asks of toml.cc, the one C++ file: the tree of a text whose size and key lengths were
 * checked already. */
#ifndef PREREG_TOML_INTERNAL_H
#define PREREG_TOML_INTERNAL_H

#include <stddef.h>

struct arena;
struct diag;
struct toml_node;

#ifdef __cplusplus
extern "C" {
#endif

/* 0, or a negative ERR_* with the reason in diag. Never throws. */
int toml_build(const char *text, size_t len, struct arena *arena, struct toml_node **root,
               struct diag *diag);

#ifdef __cplusplus
}
#endif

#endif
