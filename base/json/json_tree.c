/*
 * Builds cJSON trees from the tokens of base/json/json_pull.h, on the heap or in an arena. The
 * reader has already refused what base/json/json.h refuses, so that this only allocates and links.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json/json_arena.h"
#include "base/json/json_pull.h"
#include "base/xalloc.h"

/* Where a tree lives: in the arena, or on the heap where that is NULL. */
struct builder {
    struct json_pull *p;
    struct arena *arena;
};

static char *copy_string(const struct builder *b)
{
    const struct strbuf *s = &b->p->string;
    return b->arena != NULL ? arena_strndup(b->arena, s->buf, s->len) : xstrndup(s->buf, s->len);
}

static cJSON *make_node(const struct builder *b, enum json_token token)
{
    cJSON *v = b->arena != NULL ? arena_alloc(b->arena, sizeof(*v)) : xcalloc(1, sizeof(*v));
    switch (token) {
    case JSON_OBJECT: v->type = cJSON_Object; break;
    case JSON_ARRAY: v->type = cJSON_Array; break;
    case JSON_STRING:
        v->type = cJSON_String | (b->arena != NULL ? cJSON_IsReference : 0);
        v->valuestring = copy_string(b);
        break;
    case JSON_NUMBER:
        v->type = cJSON_Number;
        (void)cJSON_SetNumberHelper(v, b->p->number); /* as whole number, too */
        break;
    case JSON_TRUE: v->type = cJSON_True; break;
    case JSON_FALSE: v->type = cJSON_False; break;
    case JSON_NULL:
    case JSON_KEY:
    case JSON_OBJECT_END:
    case JSON_ARRAY_END:
    case JSON_END: v->type = cJSON_NULL; break;
    }
    return v;
}

/* Links a new node below `parent`; `key` is its own or NULL. */
static cJSON *add_node(const struct builder *b, cJSON *parent, char *key, enum json_token token)
{
    cJSON *v = make_node(b, token);
    json_arena_add(parent, key, v);
    if (b->arena == NULL) {
        v->type &= ~cJSON_StringIsConst; /* cJSON_Delete() frees it */
    }
    return v;
}

/* Builds what follows `token`, which opened `v`, up to its end. On an error the tree is cut short,
 * but whole. */
static int build_members(const struct builder *b, cJSON *v, struct err *err)
{
    cJSON *open[JSON_DEPTH_MAX + 2] = {v};
    size_t depth = 1;
    char *key = NULL;
    int rc = 0;
    while (depth > 0) {
        enum json_token token = JSON_END;
        rc = json_pull_next(b->p, &token, err);
        if (rc != 0) {
            break;
        }
        if (token == JSON_KEY) {
            key = copy_string(b);
        } else if (token == JSON_OBJECT_END || token == JSON_ARRAY_END) {
            depth--;
        } else {
            v = add_node(b, open[depth - 1], key, token);
            key = NULL;
            if (token == JSON_OBJECT || token == JSON_ARRAY) {
                open[depth++] = v;
            }
        }
    }
    if (b->arena == NULL) {
        free(key); /* of a value that was refused */
    }
    return rc;
}

static int build_value(const struct builder *b, enum json_token token, cJSON **out, struct err *err)
{
    *out = make_node(b, token);
    return token == JSON_OBJECT || token == JSON_ARRAY ? build_members(b, *out, err) : 0;
}

int json_pull_value(struct json_pull *p, enum json_token token, struct arena *arena, cJSON **out,
                    struct err *err)
{
    const struct builder b = {.p = p, .arena = arena};
    return build_value(&b, token, out, err);
}

static int parse(const char *text, size_t len, bool lax, cJSON **out, struct err *err)
{
    struct json_pull p;
    const struct builder b = {.p = &p};
    enum json_token token = JSON_END;
    cJSON *v = NULL;
    *out = NULL;
    json_pull_init(&p, text, len, lax);
    int rc = json_pull_next(&p, &token, err);
    if (rc == 0) {
        rc = build_value(&b, token, &v, err);
    }
    if (rc == 0) {
        rc = json_pull_next(&p, &token, err); /* nothing may follow */
    }
    json_pull_release(&p);
    if (rc != 0) {
        cJSON_Delete(v);
        return rc;
    }
    *out = v;
    return 0;
}

int json_parse(const char *text, size_t len, cJSON **out, struct err *err)
{
    return parse(text, len, false, out, err);
}

int json_parse_lax(const char *text, size_t len, cJSON **out, struct err *err)
{
    return parse(text, len, true, out, err);
}
