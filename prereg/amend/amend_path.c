/* What an amendment changes: the differences of two trees of JSON, and how the place of one is
 * written. */
#include "prereg/amend/amendment.h"

#include <string.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/amend/amend_known.h"
#include "prereg/amend/amend_rules.h"
#include "prereg/lock/signature.h"

void amendment_path_text(const cJSON *change, struct strbuf *out)
{
    const cJSON *path = json_member(change, "path");
    const cJSON *key;
    cJSON_ArrayForEach(key, path)
    {
        strbuf_addf(out, "%s%s", key == path->child ? "" : ".",
                    cJSON_IsString(key) ? key->valuestring : "?");
    }
}

/* Equality of canonical text, not of trees: the order of members does not matter, 1 and 1.0 are
 * equal. */
bool amendment_same_value(const cJSON *a, const cJSON *b)
{
    struct strbuf x = STRBUF_INIT;
    struct strbuf y = STRBUF_INIT;
    struct err err;
    if (a == NULL || b == NULL) {
        return a == b;
    }
    bool same = json_canonical(a, &x, &err) == 0 && json_canonical(b, &y, &err) == 0 &&
                x.len == y.len && memcmp(x.buf, y.buf, x.len) == 0;
    strbuf_release(&x);
    strbuf_release(&y);
    return same;
}

/* `from` and `to` are copied; NULL is left out. */
static void add_change(cJSON *list, const cJSON *path, const cJSON *from, const cJSON *to)
{
    cJSON *change = json_object();
    json_put(change, "path", json_copy(path));
    if (from != NULL) {
        json_put(change, "from", json_copy(from));
    }
    if (to != NULL) {
        json_put(change, "to", json_copy(to));
    }
    json_push(list, change);
}

static void compare(const cJSON *from, const cJSON *to, cJSON *path, cJSON *list);

/* Compares one member, whose key is on the path meanwhile. */
static void compare_member(const cJSON *from, const cJSON *to, cJSON *path, cJSON *list)
{
    json_push_string(path, from != NULL ? from->string : to->string);
    compare(from, to, path, list);
    cJSON_DeleteItemFromArray(path, cJSON_GetArraySize(path) - 1);
}

/* Recurses through objects; anything else is compared and replaced as a whole. The depth is
 * bounded: both trees were parsed, or built from parsed ones, within JSON_DEPTH_MAX. `path` is
 * shared by all levels and is back to its length when a call returns. */
static void compare(const cJSON *from, const cJSON *to, cJSON *path, cJSON *list)
{
    if (!cJSON_IsObject(from) || !cJSON_IsObject(to)) {
        if (!amendment_same_value(from, to)) {
            add_change(list, path, from, to);
        }
        return;
    }
    for (const cJSON *m = from->child; m != NULL; m = m->next) {
        compare_member(m, json_member(to, m->string), path, list);
    }
    for (const cJSON *m = to->child; m != NULL; m = m->next) {
        if (json_member(from, m->string) == NULL) {
            compare_member(NULL, m, path, list);
        }
    }
}

cJSON *amendment_changes(const cJSON *from, const cJSON *to)
{
    cJSON *list = json_array();
    cJSON *path = json_array();
    compare(from, to, path, list);
    cJSON_Delete(path);
    return list;
}
