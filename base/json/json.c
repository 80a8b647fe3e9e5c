/* Files, typed members and builders of base/json/json.h; json_tree.c reads, canonical.c writes. */
#include "base/json/json.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/xalloc.h"

typedef int parse_fn(const char *text, size_t len, cJSON **out, struct err *err);

static int read_with(parse_fn *parse, const char *path, size_t max_bytes, cJSON **out,
                     struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    int rc = file_read(path, max_bytes, &text, err);
    if (rc == 0) {
        rc = parse(text.buf, text.len, out, err);
        if (rc != 0) {
            (void)err_wrap(err, "%s", path);
        }
    }
    strbuf_release(&text);
    return rc;
}

int json_read_file(const char *path, size_t max_bytes, cJSON **out, struct err *err)
{
    return read_with(json_parse, path, max_bytes, out, err);
}

int json_read_file_lax(const char *path, size_t max_bytes, cJSON **out, struct err *err)
{
    return read_with(json_parse_lax, path, max_bytes, out, err);
}

int json_write_file(const char *path, const cJSON *v, mode_t mode, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = json_pretty(v, &text, err);
    if (rc == 0) {
        strbuf_addc(&text, '\n');
        rc = file_write_atomic(path, text.buf, text.len, mode, err);
    }
    strbuf_release(&text);
    return rc;
}

const cJSON *json_member(const cJSON *obj, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(obj, key);
}

static int need(const cJSON *obj, const char *key, const cJSON **out, struct err *err)
{
    *out = json_member(obj, key);
    return *out == NULL ? err_set(err, ERR_SYNTAX, "\"%s\" is missing", key) : 0;
}

static bool is_absent(const cJSON *obj, const char *key)
{
    const cJSON *m = json_member(obj, key);
    return m == NULL || cJSON_IsNull(m);
}

int json_get_string(const cJSON *obj, const char *key, const char **out, struct err *err)
{
    const cJSON *m;
    int rc = need(obj, key, &m, err);
    if (rc != 0) {
        return rc;
    }
    if (!cJSON_IsString(m)) {
        return err_set(err, ERR_SYNTAX, "\"%s\" is not a string", key);
    }
    *out = m->valuestring;
    return 0;
}

int json_get_number(const cJSON *obj, const char *key, double *out, struct err *err)
{
    const cJSON *m;
    int rc = need(obj, key, &m, err);
    if (rc != 0) {
        return rc;
    }
    if (!cJSON_IsNumber(m) || !isfinite(m->valuedouble)) {
        return err_set(err, ERR_SYNTAX, "\"%s\" is not a number", key);
    }
    *out = m->valuedouble;
    return 0;
}

int json_get_int(const cJSON *obj, const char *key, int64_t min, int64_t max, int64_t *out,
                 struct err *err)
{
    double v = 0;
    int rc = json_get_number(obj, key, &v, err);
    if (rc != 0) {
        return rc;
    }
    if (floor(v) != v || fabs(v) > (double)JSON_INT_MAX) {
        return err_set(err, ERR_SYNTAX, "\"%s\" is not a whole number", key);
    }
    if ((int64_t)v < min || (int64_t)v > max) {
        return err_set(err, ERR_RANGE, "\"%s\" is %lld, outside %lld..%lld", key, (long long)v,
                       (long long)min, (long long)max);
    }
    *out = (int64_t)v;
    return 0;
}

int json_get_object(const cJSON *obj, const char *key, const cJSON **out, struct err *err)
{
    int rc = need(obj, key, out, err);
    if (rc == 0 && !cJSON_IsObject(*out)) {
        rc = err_set(err, ERR_SYNTAX, "\"%s\" is not an object", key);
    }
    return rc;
}

int json_get_array(const cJSON *obj, const char *key, const cJSON **out, struct err *err)
{
    int rc = need(obj, key, out, err);
    if (rc == 0 && !cJSON_IsArray(*out)) {
        rc = err_set(err, ERR_SYNTAX, "\"%s\" is not an array", key);
    }
    return rc;
}

int json_opt_string(const cJSON *obj, const char *key, const char **out, struct err *err)
{
    return is_absent(obj, key) ? 0 : json_get_string(obj, key, out, err);
}

int json_opt_number(const cJSON *obj, const char *key, double *out, struct err *err)
{
    return is_absent(obj, key) ? 0 : json_get_number(obj, key, out, err);
}

int json_opt_int(const cJSON *obj, const char *key, int64_t min, int64_t max, int64_t *out,
                 struct err *err)
{
    return is_absent(obj, key) ? 0 : json_get_int(obj, key, min, max, out, err);
}

int json_opt_bool(const cJSON *obj, const char *key, bool *out, struct err *err)
{
    if (is_absent(obj, key)) {
        return 0;
    }
    const cJSON *m = json_member(obj, key);
    if (!cJSON_IsBool(m)) {
        return err_set(err, ERR_SYNTAX, "\"%s\" is not true or false", key);
    }
    *out = cJSON_IsTrue(m);
    return 0;
}

static cJSON *checked(cJSON *v)
{
    if (v == NULL) {
        abort();
    }
    return v;
}

static bool equal_arrays(const cJSON *a, const cJSON *b)
{
    const cJSON *x = a->child;
    const cJSON *y = b->child;
    while (x != NULL && json_equal(x, y)) {
        x = x->next;
        y = y->next;
    }
    return x == NULL && y == NULL;
}

/* Equal objects mostly have their members in one order. */
static bool equal_objects(const cJSON *a, const cJSON *b)
{
    const cJSON *y = b->child;
    for (const cJSON *x = a->child; x != NULL; x = x->next) {
        const bool in_order = y != NULL && strcmp(x->string, y->string) == 0;
        if (y == NULL || !json_equal(x, in_order ? y : json_member(b, x->string)) ||
            (!in_order && json_member(a, y->string) == NULL)) {
            return false;
        }
        y = y->next;
    }
    return y == NULL;
}

bool json_equal(const cJSON *a, const cJSON *b)
{
    if (a == NULL || b == NULL || (a->type & 0xFF) != (b->type & 0xFF)) {
        return false;
    }
    switch (a->type & 0xFF) {
    case cJSON_Number: return a->valuedouble == b->valuedouble;
    case cJSON_String: return strcmp(a->valuestring, b->valuestring) == 0;
    case cJSON_Array: return equal_arrays(a, b);
    case cJSON_Object: return equal_objects(a, b);
    default: return true; /* null, true, false: one value each */
    }
}

cJSON *json_object(void)
{
    return checked(cJSON_CreateObject());
}

cJSON *json_array(void)
{
    return checked(cJSON_CreateArray());
}

void json_put(cJSON *obj, const char *key, cJSON *value)
{
    assert(cJSON_IsObject(obj));
    if (!cJSON_AddItemToObject(obj, key, checked(value))) {
        abort();
    }
}

static cJSON *string_or_null(const char *value)
{
    return value == NULL ? cJSON_CreateNull() : cJSON_CreateString(value);
}

static cJSON *number_or_null(double value)
{
    return isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull();
}

void json_put_string(cJSON *obj, const char *key, const char *value)
{
    json_put(obj, key, string_or_null(value));
}

void json_put_number(cJSON *obj, const char *key, double value)
{
    json_put(obj, key, number_or_null(value));
}

void json_put_int(cJSON *obj, const char *key, int64_t value)
{
    int64_t v = value > JSON_INT_MAX ? JSON_INT_MAX : value < -JSON_INT_MAX ? -JSON_INT_MAX : value;
    json_put(obj, key, cJSON_CreateNumber((double)v));
}

void json_put_bool(cJSON *obj, const char *key, bool value)
{
    json_put(obj, key, cJSON_CreateBool(value));
}

void json_put_null(cJSON *obj, const char *key)
{
    json_put(obj, key, cJSON_CreateNull());
}

void json_push(cJSON *array, cJSON *value)
{
    assert(cJSON_IsArray(array));
    if (!cJSON_AddItemToArray(array, checked(value))) {
        abort();
    }
}

void json_push_string(cJSON *array, const char *value)
{
    json_push(array, string_or_null(value));
}

void json_push_number(cJSON *array, double value)
{
    json_push(array, number_or_null(value));
}

/* cJSON_Duplicate() lends keys that are constant, as those of an arena are marked. */
static void own_keys(cJSON *v)
{
    cJSON *m;
    cJSON_ArrayForEach(m, v)
    {
        if ((m->type & cJSON_StringIsConst) != 0) {
            m->string = xstrdup(m->string);
            m->type &= ~cJSON_StringIsConst;
        }
        own_keys(m);
    }
}

cJSON *json_copy(const cJSON *v)
{
    cJSON *copy = checked(cJSON_Duplicate(v, true));
    if ((copy->type & cJSON_StringIsConst) == 0) {
        cJSON_free(copy->string);
    }
    copy->string = NULL;
    copy->type &= ~cJSON_StringIsConst;
    own_keys(copy);
    return copy;
}
