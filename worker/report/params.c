/*
 * Every getter goes through params_value(), which records the key. params_finish() can therefore
 * tell a misspelled key from a known one without a list of keys anywhere else, and the recorded
 * keys are also the candidates for "did you mean". Faults own their strings; everything else points
 * into the JSON or at the caller's literals.
 */
#include "worker/report/params.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>

#include "base/json/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"

static const char required[] = "is required";

void params_init(struct params *p, const cJSON *obj, struct param_faults *faults)
{
    *p = (struct params){.obj = obj, .faults = faults};
}

void params_init_table(struct params *p, struct params *parent, const char *key)
{
    const cJSON *v = params_value(parent, key);

    assert(parent->table == NULL); /* one level of nesting */
    params_init(p, NULL, parent->faults);
    p->table = key;
    if (v != NULL && !cJSON_IsObject(v))
        params_fault(parent, key, "expected a table");
    else
        p->obj = v;
}

void param_faults_release(struct param_faults *faults)
{
    for (size_t i = 0; i < faults->n; i++) {
        free(faults->items[i].key);
        free(faults->items[i].why);
    }
    free(faults->items);
    *faults = (struct param_faults){0};
}

/* The key is not copied: callers pass string literals. */
static void make_known(struct params *p, const char *key)
{
    for (size_t i = 0; i < p->n_known; i++)
        if (strcmp(p->known[i], key) == 0)
            return;
    assert(p->n_known < PARAMS_KEYS_MAX);
    p->known[p->n_known++] = key;
}

const cJSON *params_value(struct params *p, const char *key)
{
    make_known(p, key);
    const cJSON *v = p->obj == NULL ? NULL : json_member(p->obj, key);
    return v != NULL && cJSON_IsNull(v) ? NULL : v;
}

bool params_has(struct params *p, const char *key)
{
    return params_value(p, key) != NULL;
}

/* Formats the reason and prefixes the key with its table's name. */
void params_fault(struct params *p, const char *key, const char *fmt, ...)
{
    struct param_faults *f = p->faults;
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ARRAY_GROW(f->items, f->n, f->cap);
    f->items[f->n].key = p->table == NULL ? xstrdup(key) : xasprintf("%s.%s", p->table, key);
    f->items[f->n].why = xstrdup(text);
    f->n++;
}

int64_t params_int(struct params *p, const char *key, int64_t min, int64_t max, int64_t fallback)
{
    const cJSON *v = params_value(p, key);
    if (v == NULL)
        return fallback;
    if (!cJSON_IsNumber(v) || v->valuedouble != floor(v->valuedouble) ||
        fabs(v->valuedouble) > (double)JSON_INT_MAX) {
        params_fault(p, key, "expected a whole number");
        return fallback;
    }
    int64_t n = (int64_t)v->valuedouble;
    if (n < min || n > max) {
        params_fault(p, key, "%lld is not in %lld .. %lld", (long long)n, (long long)min,
                     (long long)max);
        return fallback;
    }
    return n;
}

double params_number(struct params *p, const char *key, double min, double max, double fallback)
{
    const cJSON *v = params_value(p, key);
    if (v == NULL)
        return fallback;
    if (!cJSON_IsNumber(v)) {
        params_fault(p, key, "expected a number");
        return fallback;
    }
    if (!(v->valuedouble >= min && v->valuedouble <= max)) {
        params_fault(p, key, "%g is not in %g .. %g", v->valuedouble, min, max);
        return fallback;
    }
    return v->valuedouble;
}

bool params_bool(struct params *p, const char *key, bool fallback)
{
    const cJSON *v = params_value(p, key);
    if (v == NULL)
        return fallback;
    if (!cJSON_IsBool(v)) {
        params_fault(p, key, "expected true or false");
        return fallback;
    }
    return cJSON_IsTrue(v);
}

const char *params_string(struct params *p, const char *key, const char *fallback)
{
    const cJSON *v = params_value(p, key);
    if (v == NULL)
        return fallback;
    if (!cJSON_IsString(v)) {
        params_fault(p, key, "expected a string");
        return fallback;
    }
    return v->valuestring;
}

size_t params_choice(struct params *p, const char *key, const char *const *names, size_t n,
                     size_t fallback)
{
    const char *s = params_string(p, key, NULL);
    if (s == NULL)
        return fallback;
    for (size_t i = 0; i < n; i++)
        if (strcmp(s, names[i]) == 0)
            return i;
    struct strbuf list = STRBUF_INIT;
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&list, "%s%s", i == 0 ? "" : ", ", names[i]);
    params_fault(p, key, "\"%.40s\" is not one of %s", s, list.buf);
    strbuf_release(&list);
    return fallback;
}

void params_require(struct params *p, const char *key)
{
    if (!params_has(p, key))
        params_fault(p, key, "%s", required);
}

/* Drops the fault that `key` is required: a misspelled key was found that is probably it. */
static void drop_required(struct params *p, const char *key)
{
    struct param_faults *f = p->faults;
    char *name = p->table == NULL ? xstrdup(key) : xasprintf("%s.%s", p->table, key);

    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->items[i].key, name) == 0 && strcmp(f->items[i].why, required) == 0) {
            free(f->items[i].key);
            free(f->items[i].why);
            f->n--;
            memmove(&f->items[i], &f->items[i + 1], (f->n - i) * sizeof(*f->items));
            break;
        }
    }
    free(name);
}

void params_finish(struct params *p)
{
    const cJSON *v;

    if (p->obj == NULL)
        return;
    cJSON_ArrayForEach(v, p->obj)
    {
        bool known = false;
        for (size_t i = 0; i < p->n_known && !known; i++)
            known = strcmp(p->known[i], v->string) == 0;
        if (known)
            continue;
        const char *near = text_nearest(v->string, p->known, p->n_known);
        if (near != NULL) {
            drop_required(p, near);
            params_fault(p, v->string, "unknown parameter; did you mean \"%s\"?", near);
        } else {
            params_fault(p, v->string, "unknown parameter");
        }
    }
}

int param_faults_result(const struct param_faults *faults, struct err *err)
{
    if (faults->n == 0)
        return 0;
    if (faults->n == 1)
        return err_set(err, ERR_USAGE, "params.%s: %s", faults->items[0].key, faults->items[0].why);
    return err_set(err, ERR_USAGE, "params.%s: %s (and %zu more)", faults->items[0].key,
                   faults->items[0].why, faults->n - 1);
}

void param_faults_say(const struct param_faults *faults, const char *program)
{
    for (size_t i = 0; faults->n > 1 && i < faults->n; i++)
        terminal_printf(stderr, "%s: params.%s: %s\n", program, faults->items[i].key,
                        faults->items[i].why);
}
