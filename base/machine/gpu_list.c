/* Lists of GPUs: read from JSON with every number and text checked, written back, and bounded by
 * what the environment lets see. The text may be a user's file or a helper's output; neither is
 * trusted. */
#include "base/machine/gpu_list.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"

#define INDEX_MAX   4095
#define PID_MAX     ((int64_t)INT32_MAX)
#define KIND_CHARS  ((size_t)4) /* "GPU-", "MIG-" */
#define SHORT_CHARS 12

const char *gpu_vendor_name(enum gpu_vendor v)
{
    return v == GPU_AMD ? "amd" : "nvidia";
}

void gpu_list_release(struct gpu_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].processes);
    }
    free(list->items);
    *list = (struct gpu_list){0};
}

int gpu_list_add(struct gpu_list *list, struct gpu **out, struct err *err)
{
    if (list->n >= GPU_LIST_MAX) {
        return err_set(err, ERR_RANGE, "more than %d GPUs", GPU_LIST_MAX);
    }
    list->items = xreallocarray(list->items, list->n + 1, sizeof(*list->items));
    *out = &list->items[list->n];
    **out = (struct gpu){.index = (int64_t)list->n, .free_bytes = -1, .ecc = -1};
    list->n++;
    return 0;
}

struct gpu_process *gpu_add_process(struct gpu *g, int64_t pid)
{
    g->processes_known = true;
    if (g->n_processes >= GPU_PROCESS_MAX) {
        return NULL;
    }
    g->processes = xreallocarray(g->processes, g->n_processes + 1, sizeof(*g->processes));
    struct gpu_process *p = &g->processes[g->n_processes++];
    *p = (struct gpu_process){.pid = pid, .memory_bytes = -1};
    return p;
}

bool gpu_uuid_is_valid(const char *uuid)
{
    size_t n = 0;
    while (isalnum((unsigned char)uuid[n]) != 0 || uuid[n] == '-') {
        n++;
    }
    return uuid[n] == '\0' && n > 0 && n < GPU_UUID_SIZE;
}

const struct gpu *gpu_list_find(const struct gpu_list *list, const char *uuid)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->items[i].uuid, uuid) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* ---- reading ---- */

/* A text member as one plain line, cut to fit; absent or null leaves "". */
static int read_line(const cJSON *o, const char *key, char *out, size_t size, struct err *err)
{
    const char *text = NULL;
    if (cJSON_IsNull(json_member(o, key))) {
        return 0;
    }
    int rc = json_opt_string(o, key, &text, err);
    if (rc == 0 && text != NULL) {
        text_copy_line(out, size, text);
    }
    return rc;
}

/* A number that may be absent or null, which leaves *out. */
static int read_number(const cJSON *o, const char *key, const int64_t range[2], int64_t *out,
                       struct err *err)
{
    return cJSON_IsNull(json_member(o, key)) ? 0
                                             : json_opt_int(o, key, range[0], range[1], out, err);
}

static int read_mark(const cJSON *o, uint64_t *out, struct err *err)
{
    const char *text = NULL;
    int rc = json_opt_string(o, "mark", &text, err);
    if (rc != 0 || text == NULL) {
        return rc;
    }
    char *end = NULL;
    *out = strtoull(text, &end, 16);
    return isxdigit((unsigned char)text[0]) != 0 && *end == '\0' && strlen(text) <= 16
               ? 0
               : err_set(err, ERR_SYNTAX, "\"mark\": expected up to 16 hexadecimal digits");
}

static int read_process(const cJSON *o, struct gpu *g, struct err *err)
{
    int64_t pid = 0;
    const char *attempt = NULL;
    int rc = cJSON_IsObject(o) ? json_get_int(o, "pid", 1, PID_MAX, &pid, err)
                               : err_set(err, ERR_SYNTAX, "expected an object");
    if (rc != 0) {
        return rc;
    }
    struct gpu_process *p = gpu_add_process(g, pid);
    if (p == NULL) {
        return err_set(err, ERR_RANGE, "more than %d processes", GPU_PROCESS_MAX);
    }
    const int64_t memory[2] = {0, GPU_MEMORY_MAX};
    if ((rc = read_number(o, "memory_bytes", memory, &p->memory_bytes, err)) != 0 ||
        (rc = read_line(o, "name", p->name, sizeof(p->name), err)) != 0 ||
        (rc = read_line(o, "user", p->user, sizeof(p->user), err)) != 0 ||
        (rc = read_mark(o, &p->mark, err)) != 0 ||
        (rc = json_opt_string(o, "attempt", &attempt, err)) != 0 || attempt == NULL) {
        return rc;
    }
    if (!uuid_is_valid(attempt)) {
        return err_set(err, ERR_SYNTAX, "\"attempt\" is not a UUID");
    }
    (void)snprintf(p->attempt, sizeof(p->attempt), "%s", attempt);
    return 0;
}

static int read_processes(const cJSON *o, struct gpu *g, struct err *err)
{
    const cJSON *list = json_member(o, "processes");
    const cJSON *item = NULL;
    size_t i = 0;
    if (list == NULL || cJSON_IsNull(list)) {
        return 0;
    }
    if (!cJSON_IsArray(list)) {
        return err_set(err, ERR_SYNTAX, "\"processes\": expected a list");
    }
    g->processes_known = true;
    cJSON_ArrayForEach(item, list)
    {
        int rc = read_process(item, g, err);
        if (rc != 0) {
            return err_wrap(err, "process %zu", i + 1);
        }
        i++;
    }
    return 0;
}

static int read_vendor(const cJSON *o, struct gpu *g, struct err *err)
{
    const char *word = gpu_vendor_name(GPU_NVIDIA);
    int rc = json_opt_string(o, "vendor", &word, err);
    for (int v = 0; rc == 0 && v < GPU_VENDOR_NR; v++) {
        if (strcmp(word, gpu_vendor_name((enum gpu_vendor)v)) == 0) {
            g->vendor = (enum gpu_vendor)v;
            return 0;
        }
    }
    return rc != 0 ? rc : err_set(err, ERR_SYNTAX, "\"vendor\": expected \"nvidia\" or \"amd\"");
}

static int read_identity(const cJSON *o, struct gpu *g, struct err *err)
{
    const char *uuid = NULL;
    int rc = json_get_string(o, "uuid", &uuid, err);
    if (rc == 0 && !gpu_uuid_is_valid(uuid)) {
        rc = err_set(err, ERR_SYNTAX, "\"uuid\": expected 1 to %d letters, digits and '-'",
                     GPU_UUID_SIZE - 1);
    }
    if (rc != 0) {
        return rc;
    }
    (void)snprintf(g->uuid, sizeof(g->uuid), "%s", uuid);
    const char *model = NULL;
    rc = json_get_string(o, "model", &model, err);
    if (rc == 0) {
        text_copy_line(g->model, sizeof(g->model), model);
        rc = g->model[0] != '\0' ? 0 : err_set(err, ERR_SYNTAX, "\"model\" is empty");
    }
    return rc;
}

static int read_gpu(const cJSON *o, struct gpu *g, struct err *err)
{
    const int64_t memory[2] = {0, GPU_MEMORY_MAX};
    const cJSON *ecc = json_member(o, "ecc");
    bool on = false;
    if (!cJSON_IsObject(o)) {
        return err_set(err, ERR_SYNTAX, "expected an object");
    }
    int rc = 0;
    if ((rc = read_identity(o, g, err)) != 0 || (rc = read_vendor(o, g, err)) != 0 ||
        (rc = read_number(o, "index", (int64_t[]){0, INDEX_MAX}, &g->index, err)) != 0 ||
        (rc = read_number(o, "memory_bytes", memory, &g->memory_bytes, err)) != 0 ||
        (rc = read_number(o, "free_bytes", memory, &g->free_bytes, err)) != 0 ||
        (rc = read_line(o, "driver", g->driver, sizeof(g->driver), err)) != 0) {
        return rc;
    }
    if (ecc != NULL && !cJSON_IsNull(ecc)) {
        if ((rc = json_opt_bool(o, "ecc", &on, err)) != 0) {
            return rc;
        }
        g->ecc = on;
    }
    return read_processes(o, g, err);
}

static int read_all(const cJSON *v, struct gpu_list *out, struct err *err)
{
    const cJSON *item = NULL;
    if (!cJSON_IsArray(v)) {
        return err_set(err, ERR_SYNTAX, "expected a list of GPUs");
    }
    cJSON_ArrayForEach(item, v)
    {
        struct gpu *g = NULL;
        int rc = gpu_list_add(out, &g, err);
        if (rc == 0) {
            rc = read_gpu(item, g, err);
        }
        if (rc == 0 && gpu_list_find(out, g->uuid) != g) {
            rc = err_set(err, ERR_SYNTAX, "\"uuid\": %s is duplicated", g->uuid);
        }
        if (rc != 0) {
            return err_wrap(err, "GPU %zu", out->n);
        }
    }
    return 0;
}

int gpu_list_from_json(const cJSON *v, struct gpu_list *out, struct err *err)
{
    *out = (struct gpu_list){0};
    int rc = read_all(v, out, err);
    if (rc != 0) {
        gpu_list_release(out);
    }
    return rc;
}

int gpu_list_read(const char *text, size_t len, struct gpu_list *out, struct err *err)
{
    cJSON *v = NULL;
    *out = (struct gpu_list){0};
    if (len > GPU_JSON_MAX) {
        return err_set(err, ERR_RANGE, "more than %zu KiB", GPU_JSON_MAX >> 10);
    }
    int rc = json_parse(text, len, &v, err);
    if (rc == 0) {
        rc = gpu_list_from_json(v, out, err);
    }
    cJSON_Delete(v);
    return rc;
}

/* ---- writing ---- */

static void put_known(cJSON *o, const char *key, int64_t v)
{
    if (v >= 0) {
        json_put_int(o, key, v);
    }
}

static cJSON *process_json(const struct gpu_process *p)
{
    char mark[24];
    cJSON *o = json_object();
    json_put_int(o, "pid", p->pid);
    json_put_string(o, "name", p->name);
    json_put_string(o, "user", p->user);
    put_known(o, "memory_bytes", p->memory_bytes);
    if (p->mark != 0) {
        (void)snprintf(mark, sizeof(mark), "%llx", (unsigned long long)p->mark);
        json_put_string(o, "mark", mark);
    }
    if (p->attempt[0] != '\0') {
        json_put_string(o, "attempt", p->attempt);
    }
    return o;
}

static cJSON *gpu_json(const struct gpu *g)
{
    cJSON *o = json_object();
    json_put_string(o, "uuid", g->uuid);
    json_put_int(o, "index", g->index);
    json_put_string(o, "vendor", gpu_vendor_name(g->vendor));
    json_put_string(o, "model", g->model);
    json_put_string(o, "driver", g->driver);
    json_put_int(o, "memory_bytes", g->memory_bytes);
    put_known(o, "free_bytes", g->free_bytes);
    if (g->ecc >= 0) {
        json_put_bool(o, "ecc", g->ecc == 1);
    }
    if (g->processes_known) {
        cJSON *list = json_array();
        for (size_t i = 0; i < g->n_processes; i++) {
            json_push(list, process_json(&g->processes[i]));
        }
        json_put(o, "processes", list);
    }
    return o;
}

cJSON *gpu_list_json(const struct gpu_list *list)
{
    cJSON *v = json_array();
    for (size_t i = 0; i < list->n; i++) {
        json_push(v, gpu_json(&list->items[i]));
    }
    return v;
}

int gpu_list_write(const struct gpu_list *list, struct strbuf *out, struct err *err)
{
    cJSON *v = gpu_list_json(list);
    int rc = json_line(v, out, err);
    cJSON_Delete(v);
    return rc;
}

/* ---- names ---- */

bool gpu_is_named(const char *uuid, int64_t index, const char *word)
{
    const size_t n = strlen(word);
    int64_t number = 0;
    struct err ignored;
    if (text_to_int(word, 0, INDEX_MAX, &number, &ignored) == 0) {
        return number == index;
    }
    return strcmp(uuid, word) == 0 || (n > KIND_CHARS && strncmp(uuid, word, n) == 0);
}

bool gpu_model_is(const char *model, const char *pin)
{
    const size_t n = strlen(pin);
    return strncmp(model, pin, n) == 0 && (model[n] == '\0' || model[n] == ' ');
}

/* The word at *at without blanks around it; moves *at behind its comma, to NULL at the end. */
static void next_word(const char **at, char *word, size_t size)
{
    const char *start = *at + strspn(*at, " \t");
    size_t n = strcspn(start, ",");
    *at = start[n] == ',' ? start + n + 1 : NULL;
    while (n > 0 && isspace((unsigned char)start[n - 1]) != 0) {
        n--;
    }
    (void)snprintf(word, size, "%.*s", (int)(n < size ? n : size - 1), start);
}

void gpu_list_bound(struct gpu_list *list, enum gpu_vendor vendor, const char *visible,
                    struct strbuf *ignored)
{
    bool keep[GPU_LIST_MAX] = {false};
    const char *at = visible;
    for (size_t i = 0; i < list->n; i++) {
        keep[i] = visible == NULL || list->items[i].vendor != vendor;
    }
    while (at != NULL && *at != '\0') {
        char word[128];
        bool found = false;
        const char *from = at;
        next_word(&at, word, sizeof(word));
        for (size_t i = 0; i < list->n && !found; i++) {
            const struct gpu *g = &list->items[i];
            found = g->vendor == vendor && gpu_is_named(g->uuid, g->index, word);
            keep[i] = keep[i] || found;
        }
        if (!found && ignored != NULL) {
            strbuf_adds(ignored, from);
        }
        at = found ? at : NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (keep[i]) {
            list->items[n++] = list->items[i];
        } else {
            free(list->items[i].processes);
        }
    }
    list->n = n;
}

void gpu_short_name(const char *uuid, char out[GPU_SHORT_SIZE])
{
    const bool cut = strlen(uuid) > SHORT_CHARS + 1;
    (void)snprintf(out, GPU_SHORT_SIZE, "%.*s%s", cut ? SHORT_CHARS : GPU_SHORT_SIZE - 1, uuid,
                   cut ? "\xe2\x80\xa6" : "");
}

void gpu_add_memory(struct strbuf *out, int64_t bytes)
{
    const bool whole = bytes % (INT64_C(1) << 30) == 0;
    strbuf_addf(out, "%lld %s", (long long)(bytes >> (whole ? 30 : 20)), whole ? "GiB" : "MiB");
}
