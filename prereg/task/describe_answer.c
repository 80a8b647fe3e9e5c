/*
 * An answer is the first JSON object on stdout; the exit code and the last line of stderr explain
 * its absence. Members of a wrong type are reported and dropped, unknown ones are ignored (a newer
 * worker may add some), and a worker's own errors and notes become diagnostics. What is kept must
 * have canonical JSON, since the lock stores it.
 */
#include "prereg/task/describe_answer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"

#define FAULTS_MAX      ((size_t)64)
#define STDERR_SHOWN    120
#define ANSWER_PROTOCOL 1
#define USAGE_CODE      64 /* "I know no --describe" */
#define GO_WITHOUT      "; mend the worker, or write `describe = false` in its stage"

/* Appends a fault, up to FAULTS_MAX: a worker in a loop must not fill the terminal. */
static void add_fault(struct answer_faults *faults, enum diag_level level, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

static void add_fault(struct answer_faults *faults, enum diag_level level, const char *fmt, ...)
{
    if (faults->n >= FAULTS_MAX) {
        return;
    }
    struct err text;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text.msg, sizeof(text.msg), fmt, ap);
    va_end(ap);
    ARRAY_GROW(faults->items, faults->n, faults->cap);
    faults->items[faults->n++] = (struct answer_fault){.level = level, .text = xstrdup(text.msg)};
}

void answer_faults_release(struct answer_faults *faults)
{
    for (size_t i = 0; i < faults->n; i++) {
        free(faults->items[i].text);
        free(faults->items[i].key);
    }
    free(faults->items);
    *faults = (struct answer_faults){0};
}

/* The last line of stderr: printable, cut short. */
static void last_words(const struct strbuf *err, char out[STDERR_SHOWN + 1])
{
    size_t end = err->len;
    while (end > 0 && strchr("\r\n \t", err->buf[end - 1]) != NULL) {
        end--;
    }
    size_t start = end;
    while (start > 0 && err->buf[start - 1] != '\n') {
        start--;
    }
    size_t n = end - start < STDERR_SHOWN ? end - start : STDERR_SHOWN;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)err->buf[start + i];
        out[i] = c < 0x20 || c >= 0x7F ? '?' : (char)c;
    }
    out[n] = '\0';
}

/* Exit codes 0 and 64 without an object mean that the worker does not know --describe: a warning
 * only. */
static void say_no_answer(const struct proc_result *r, struct answer_faults *faults)
{
    char words[STDERR_SHOWN + 1];
    last_words(&r->err, words);
    const char *colon = words[0] == '\0' ? "" : ": ";
    if (r->signal != 0) {
        add_fault(faults, DIAG_ERROR, "--describe was ended by signal %d%s%s" GO_WITHOUT, r->signal,
                  colon, words);
    } else if (r->code != 0 && r->code != USAGE_CODE) {
        add_fault(faults, DIAG_ERROR, "--describe failed with exit code %d%s%s" GO_WITHOUT, r->code,
                  colon, words);
    } else {
        add_fault(faults, DIAG_WARNING,
                  "the worker does not describe itself (exit code %d%s%s): what it holds fixed and "
                  "which metrics it yields are unknown",
                  r->code, colon, words);
    }
}

/* An array of strings only. */
static bool all_strings(const cJSON *array)
{
    for (const cJSON *m = array->child; m != NULL; m = m->next) {
        if (!cJSON_IsString(m)) {
            return false;
        }
    }
    return cJSON_IsArray(array);
}

/* An object of plain values only. */
static bool are_facts(const cJSON *object)
{
    for (const cJSON *m = object->child; m != NULL; m = m->next) {
        if (!cJSON_IsNumber(m) && !cJSON_IsString(m) && !cJSON_IsBool(m) && !cJSON_IsNull(m)) {
            return false;
        }
    }
    return cJSON_IsObject(object);
}

/* An object of arrays of strings only. */
static bool are_lists(const cJSON *object)
{
    for (const cJSON *m = object->child; m != NULL; m = m->next) {
        if (!all_strings(m)) {
            return false;
        }
    }
    return cJSON_IsObject(object);
}

static bool is_object(const cJSON *v)
{
    return cJSON_IsObject(v);
}

static bool is_span(const cJSON *v)
{
    return cJSON_IsNumber(v) && v->valuedouble >= 0;
}

/* The members that are kept, and the form that each must have. */
static const struct {
    const char *name;
    bool (*is_right)(const cJSON *);
    const char *expected;
} MEMBERS[] = {
    {"metrics", all_strings, "an array of names"},
    {"facts", are_facts, "an object of numbers and texts"},
    {"seconds", is_span, "a number, not negative"},
    {"params", is_object, "an object"},
    {"artifacts", all_strings, "an array of paths"},
    {"reads", are_lists, "an object of arrays of paths"},
    {"resolves", is_object, "an object"},
};

/* The worker's own errors: {"key","why"}; the key names the parameter at fault. */
static void read_errors(const cJSON *answer, struct answer_faults *faults)
{
    const cJSON *errors = json_member(answer, "errors");
    if (errors != NULL && !cJSON_IsArray(errors) && !cJSON_IsNull(errors)) {
        add_fault(faults, DIAG_ERROR, "--describe: \"errors\" is not an array");
        return;
    }
    for (const cJSON *e = errors == NULL ? NULL : errors->child; e != NULL; e = e->next) {
        const char *key = "";
        const char *why = "";
        struct err err;
        if (!cJSON_IsObject(e) || json_opt_string(e, "key", &key, &err) != 0 ||
            json_get_string(e, "why", &why, &err) != 0) {
            add_fault(faults, DIAG_ERROR, "--describe: an error without \"why\"");
        } else {
            add_fault(faults, DIAG_ERROR, "%s%s%s", key, key[0] == '\0' ? "" : ": ", why);
            if (faults->n > 0 && faults->items[faults->n - 1].key == NULL && key[0] != '\0') {
                faults->items[faults->n - 1].key = xstrdup(key);
            }
        }
    }
}

/* Notes of the worker: printed as warnings, not kept. */
static void read_notes(const cJSON *answer, struct answer_faults *faults)
{
    const cJSON *notes = json_member(answer, "notes");
    if (notes != NULL && !all_strings(notes) && !cJSON_IsNull(notes)) {
        add_fault(faults, DIAG_ERROR, "--describe: \"notes\" is not an array of texts");
        return;
    }
    for (const cJSON *n = notes == NULL ? NULL : notes->child; n != NULL; n = n->next) {
        add_fault(faults, DIAG_WARNING, "%s", n->valuestring);
    }
}

/* Copies the known members that are right. A wrong protocol is reported, and the rest is read
 * all the same: one run should show every fault. */
static cJSON *take_members(const cJSON *answer, struct answer_faults *faults)
{
    cJSON *out = json_object();
    struct err err;
    int64_t protocol = ANSWER_PROTOCOL;
    if (json_opt_int(answer, "protocol", 0, INT32_MAX, &protocol, &err) != 0 ||
        protocol != ANSWER_PROTOCOL) {
        add_fault(faults, DIAG_ERROR, "--describe speaks protocol %lld, not %d",
                  (long long)protocol, ANSWER_PROTOCOL);
    }
    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
        const cJSON *v = json_member(answer, MEMBERS[i].name);
        if (v == NULL || cJSON_IsNull(v)) {
            continue;
        }
        if (!MEMBERS[i].is_right(v)) {
            add_fault(faults, DIAG_ERROR, "--describe: \"%s\" is not %s", MEMBERS[i].name,
                      MEMBERS[i].expected);
        } else {
            json_put(out, MEMBERS[i].name, json_copy(v));
        }
    }
    read_errors(answer, faults);
    read_notes(answer, faults);
    /* A worker that finds errors in its parameters may be unable to list its metrics. Without
     * this, every measure that reads one would be reported as well. */
    const cJSON *errors = json_member(answer, "errors");
    if (cJSON_GetArraySize(errors) > 0 && cJSON_GetArraySize(json_member(out, "metrics")) == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(out, "metrics");
    }
    return out;
}

/* An answer counts even with a failing exit code, so that its errors are shown; the code is a
 * fault, too. */
cJSON *answer_read(const struct proc_result *r, struct answer_faults *faults)
{
    size_t start = strspn(r->out.buf, " \t\r\n");
    if (r->signal != 0 || start >= r->out.len || r->out.buf[start] != '{') {
        say_no_answer(r, faults);
        return NULL;
    }
    cJSON *answer = NULL;
    struct err err;
    if (json_parse(r->out.buf, r->out.len, &answer, &err) != 0) {
        add_fault(faults, DIAG_ERROR, "--describe prints no JSON: %s", err.msg);
        return NULL;
    }
    cJSON *out = take_members(answer, faults);
    cJSON_Delete(answer);
    if (r->code != 0 && r->code != USAGE_CODE) {
        char words[STDERR_SHOWN + 1];
        last_words(&r->err, words);
        add_fault(faults, DIAG_ERROR,
                  "--describe printed an answer, and failed with exit code %d%s%s", r->code,
                  words[0] == '\0' ? "" : ": ", words);
    }
    struct strbuf text = STRBUF_INIT;
    if (json_canonical(out, &text, &err) != 0) {
        add_fault(faults, DIAG_ERROR, "--describe: %s", err.msg);
        cJSON_Delete(out);
        out = NULL;
    }
    strbuf_release(&text);
    return out;
}
