/*
 * Nodes are cJSON's own structs, marked as references and with constant keys, so that no function
 * of cJSON that only reads can tell them from those of the heap.
 */
#include "base/json/json_arena.h"

#include <math.h>

cJSON *json_arena_new(struct arena *a, int type)
{
    cJSON *v = arena_alloc(a, sizeof(*v));
    v->type = type;
    return v;
}

cJSON *json_arena_bool(struct arena *a, bool v)
{
    return json_arena_new(a, v ? cJSON_True : cJSON_False);
}

cJSON *json_arena_number(struct arena *a, double v)
{
    cJSON *out = json_arena_new(a, isfinite(v) ? cJSON_Number : cJSON_NULL);
    if (isfinite(v)) {
        (void)cJSON_SetNumberHelper(out, v); /* as whole number, too */
    }
    return out;
}

/* cJSON has no const: what is borrowed is never written to. */
static char *borrowed(const char *s)
{
    union {
        const char *in;
        char *out;
    } both = {.in = s};
    return both.out;
}

cJSON *json_arena_string(struct arena *a, const char *v)
{
    cJSON *out = json_arena_new(a, cJSON_String | cJSON_IsReference);
    out->valuestring = borrowed(v);
    return out;
}

/* As cJSON links them: the first child's prev is the last child. */
void json_arena_add(cJSON *parent, const char *key, cJSON *value)
{
    cJSON *first = parent->child;
    if (key != NULL) {
        value->string = borrowed(key);
        value->type |= cJSON_StringIsConst;
    }
    if (first == NULL) {
        parent->child = value;
        value->prev = value;
        return;
    }
    value->prev = first->prev;
    first->prev->next = value;
    first->prev = value;
}
