/* Compares two lists of an environment, and names the first package that differs as a user knows
 * it: by its name and versions. Locks are a stranger's, so what a list lacks counts as absent. */
#include "prereg/lock/environment.h"

#include <string.h>

#include "base/json/json.h"
#include "prereg/lock/image.h"

static const char *text_in(const cJSON *o, const char *key)
{
    const cJSON *m = json_member(o, key);
    return cJSON_IsString(m) ? m->valuestring : "?";
}

/* One package; either side may be NULL. */
static int compare_package(const char *name, const cJSON *locked, const cJSON *now, struct err *err)
{
    const char *then = text_in(locked, "version");
    const char *here = text_in(now, "version");
    if (now == NULL) {
        return err_set(err, ERR_LOCK, "%.80s %.40s was locked, and is not installed", name, then);
    }
    if (locked == NULL) {
        return err_set(err, ERR_LOCK, "%.80s %.40s is installed, and was not locked", name, here);
    }
    if (strcmp(then, here) != 0) {
        return err_set(err, ERR_LOCK, "%.80s %.40s was locked, %.40s is installed", name, then,
                       here);
    }
    if (!json_equal(locked, now)) {
        return err_set(err, ERR_LOCK,
                       "%.80s %.40s is installed with other files than those that were locked",
                       name, here);
    }
    return 0;
}

/* Of loose files and of conda's list: a name and its digest. */
static int compare_file(const char *name, const cJSON *locked, const cJSON *now, struct err *err)
{
    if (locked != NULL && now != NULL && json_equal(locked, now)) {
        return 0;
    }
    return err_set(err, ERR_LOCK, "%.120s %s", name,
                   now == NULL      ? "was locked, and is gone"
                   : locked == NULL ? "was not there when it was locked"
                                    : "is not what was locked");
}

typedef int compare_fn(const char *name, const cJSON *locked, const cJSON *now, struct err *err);

/* Each name of both sides. */
static int compare_names(const cJSON *locked, const cJSON *now, compare_fn *fn, struct err *err)
{
    const cJSON *m = NULL;
    cJSON_ArrayForEach(m, locked)
    {
        int rc = fn(m->string, m, json_member(now, m->string), err);
        if (rc != 0) {
            return rc;
        }
    }
    cJSON_ArrayForEach(m, now)
    {
        if (json_member(locked, m->string) == NULL) {
            return fn(m->string, NULL, m, err);
        }
    }
    return 0;
}

int environment_compare(const cJSON *locked, const cJSON *now, struct err *err)
{
    const struct {
        const char *part;
        compare_fn *fn;
    } rows[] = {{"packages", compare_package}, {"loose", compare_file}, {"conda", compare_file}};
    if (!cJSON_IsObject(locked)) {
        return err_set(err, ERR_LOCK, "not in the lock");
    }
    if (environment_image(now) != NULL || environment_image(locked) != NULL) {
        return json_equal(locked, now)
                   ? 0
                   : err_set(err, ERR_LOCK, "image %.12s was locked, %.12s has its name now",
                             text_in(locked, "image"), text_in(now, "image"));
    }
    int rc =
        compare_package("Python", json_member(locked, "python"), json_member(now, "python"), err);
    for (size_t i = 0; rc == 0 && i < sizeof(rows) / sizeof(rows[0]); i++) {
        const cJSON *then = json_member(locked, rows[i].part);
        rc = cJSON_IsObject(then)
                 ? compare_names(then, json_member(now, rows[i].part), rows[i].fn, err)
                 : err_set(err, ERR_LOCK, "its list has no \"%s\"", rows[i].part);
    }
    return rc;
}

const char *environment_image(const cJSON *list)
{
    const cJSON *image = json_member(list, "image");
    return cJSON_IsString(image) ? image->valuestring : NULL;
}

void environment_digest(const cJSON *list, char hex[DIGEST_HEX_SIZE])
{
    struct strbuf text = STRBUF_INIT;
    struct digest sum;
    struct err ignored;
    const char *image = environment_image(list);
    if (image == NULL || digest_from_hex(image, &sum, &ignored) != 0) {
        sum = json_canonical(list, &text, &ignored) == 0 ? digest_bytes(text.buf, text.len)
                                                         : (struct digest){0};
    }
    digest_hex(&sum, hex);
    strbuf_release(&text);
}

int environment_of_stage(struct pin_cache *cache, const struct plan_stage *s, cJSON **out,
                         struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    *out = NULL;
    if (s->image == NULL) {
        return environment_list(cache, s->environment_path, out, err);
    }
    int rc = image_find(s->image, hex, err);
    if (rc == 0) {
        *out = json_object();
        json_put_string(*out, "image", hex);
    }
    return rc;
}

int environment_verify(struct pin_cache *cache, const cJSON *locked, const struct plan_stage *s,
                       struct err *err)
{
    cJSON *now = NULL;
    int rc = environment_of_stage(cache, s, &now, err);
    if (rc == 0) {
        rc = environment_compare(locked, now, err);
    } else if (rc == ERR_INVALID) {
        err->code = ERR_LOCK; /* it could be listed once */
        rc = ERR_LOCK;
    }
    cJSON_Delete(now);
    return rc;
}
