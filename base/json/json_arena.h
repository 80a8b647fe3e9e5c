/*
 * JSON values whose nodes are in an arena: for many small ones, one after another. They are read
 * and written like any other; cJSON_Delete and cJSON's own functions that add or remove must not
 * meet them.
 */
#ifndef BASE_JSON_JSON_ARENA_H
#define BASE_JSON_JSON_ARENA_H

#include "base/arena.h"
#include "base/json/json.h"

cJSON *json_arena_new(struct arena *a, int type); /* cJSON_Object, cJSON_NULL, … */
cJSON *json_arena_bool(struct arena *a, bool v);
/* Null when v is not finite. */
cJSON *json_arena_number(struct arena *a, double v);
/* The text is borrowed. */
cJSON *json_arena_string(struct arena *a, const char *v);
/* Appends; the key, NULL in an array, is borrowed. */
void json_arena_add(cJSON *parent, const char *key, cJSON *value);

/* A list too long to be held: an empty array of a tree marks its place, and its elements are
 * made one by one as they are written. */
struct json_list {
    const cJSON *place;
    size_t n;
    cJSON *(*element)(const void *ctx, size_t i, struct arena *arena);
    const void *ctx;
};
/* json_pretty() with the lists in their places. */
int json_pretty_lists(const cJSON *v, const struct json_list *lists, size_t n_lists,
                      struct strbuf *out, struct err *err) MUST_CHECK;

#endif
