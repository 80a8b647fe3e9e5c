/*
 * JSON values whose nodes lie in an arena: for many small ones, one after another. They are read
 * and written like any other; cJSON_Delete and cJSON's own functions that add or remove must not
 * meet them.
 */
#ifndef BASE_JSON_ARENA_H
#define BASE_JSON_ARENA_H

#include "base/arena.h"
#include "base/json.h"

cJSON *json_arena_new(struct arena *a, int type); /* cJSON_Object, cJSON_NULL, … */
cJSON *json_arena_bool(struct arena *a, bool v);
/* Null when v is not finite. */
cJSON *json_arena_number(struct arena *a, double v);
/* The text is borrowed. */
cJSON *json_arena_string(struct arena *a, const char *v);
/* Appends; the key, NULL in an array, is borrowed. */
void json_arena_add(cJSON *parent, const char *key, cJSON *value);

#endif
