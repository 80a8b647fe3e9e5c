/* Names of entries: samples/ID_epoch_N.json has a whole sample, samples/ID_epoch_N/sample.json one
 * whose messages and events are in files of their own; an ID may have a slash in it. */
#include "truthtable/imported/eval_log.h"

#include <string.h>
#include <unistd.h>

#include "base/json/json.h"
#include "truthtable/imported/zip.h"

#define HEADER  "header.json"
#define JOURNAL "_journal/"
#define SAMPLES "samples/"
#define SHELL   "/sample.json"
#define JSON    ".json"
#define EPOCH   "_epoch_"

#define VALUE_MAX 64 /* bytes of a score that is a word or a number in quotes */

bool eval_log_is(int fd)
{
    char magic[4];
    return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
           memcmp(magic, "PK\3\4", sizeof(magic)) == 0;
}

/* Whether the first n bytes of the name end in `tail`; then *n is what is before it. */
static bool cut_tail(const char *name, size_t *n, const char *tail)
{
    const size_t len = strlen(tail);
    const bool is = *n >= len && strncmp(name + *n - len, tail, len) == 0;
    *n -= is ? len : 0;
    return is;
}

static bool is_sample(const char *name)
{
    size_t n = strlen(name);
    if (strncmp(name, SAMPLES, strlen(SAMPLES)) != 0 ||
        (!cut_tail(name, &n, SHELL) && !cut_tail(name, &n, JSON))) {
        return false;
    }
    const size_t before = n;
    while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9') {
        n--;
    }
    return n < before && cut_tail(name, &n, EPOCH);
}

/* Of a score only its value, where that can be one: the rest is text. */
static cJSON *scores_of(const cJSON *sample)
{
    const cJSON *scores = json_member(sample, "scores");
    const cJSON *score = NULL;
    cJSON *out = json_object();
    for (score = cJSON_IsObject(scores) ? scores->child : NULL; score != NULL;
         score = score->next) {
        const cJSON *value = json_member(score, "value");
        if (value != NULL) {
            cJSON *kept = json_object();
            if (cJSON_IsNumber(value) || cJSON_IsBool(value) ||
                (cJSON_IsString(value) && strlen(value->valuestring) <= VALUE_MAX)) {
                json_put(kept, "value", json_copy(value));
            }
            json_put(out, score->string, kept);
        }
    }
    return out;
}

/* What may still be read of a file: entries that share bytes would have more of them than it. */
struct budget {
    int64_t bytes;
    int64_t packed;
};

static int read_json(const struct zip *z, const struct zip_entry *e, struct budget *left,
                     cJSON **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    left->bytes -= e->bytes;
    left->packed -= e->packed;
    int rc =
        left->packed < 0 ? err_set(err, ERR_SYNTAX, "a zip file whose entries share their bytes")
        : left->bytes < 0
            ? err_set(err, ERR_RANGE, "has more than %lld bytes unpacked", (long long)EVAL_LOG_MAX)
            : zip_read(z, e, EVAL_LOG_ENTRY_MAX, &text, err);
    if (rc == 0 && (rc = json_parse_lax(text.buf, text.len, out, err)) != 0) {
        (void)err_wrap(err, "entry %.100s", e->name);
    }
    strbuf_release(&text);
    return rc;
}

static int read_samples(const struct zip *z, struct budget *left, cJSON *log, struct err *err)
{
    cJSON *list = json_array();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < z->n; i++) {
        cJSON *sample = NULL;
        if (is_sample(z->entries[i].name) &&
            (rc = read_json(z, &z->entries[i], left, &sample, err)) == 0) {
            cJSON *kept = json_object();
            json_put(kept, "scores", scores_of(sample));
            json_push(list, kept);
        }
        cJSON_Delete(sample);
    }
    cJSON_DeleteItemFromObjectCaseSensitive(log, "samples");
    json_put(log, "samples", list);
    return rc;
}

/* What Inspect writes while the evaluation runs. */
static bool has_journal(const struct zip *z)
{
    bool has = false;
    for (size_t i = 0; i < z->n; i++) {
        has = has || strncmp(z->entries[i].name, JOURNAL, strlen(JOURNAL)) == 0;
    }
    return has;
}

int eval_log_read(int fd, cJSON **log, struct err *err)
{
    struct zip z;
    struct budget left = {.bytes = EVAL_LOG_MAX};
    *log = NULL;
    int rc = zip_open(&z, fd, err);
    const struct zip_entry *header = rc == 0 ? zip_find(&z, HEADER) : NULL;
    left.packed = z.size;
    if (rc == 0 && header == NULL) {
        rc = has_journal(&z)
                 ? err_set(err, ERR_REFUSED, "a log of Inspect whose run has not ended")
                 : err_set(err, ERR_SYNTAX, "a zip file without " HEADER ": not a log of Inspect");
    }
    if (rc == 0 && (rc = read_json(&z, header, &left, log, err)) == 0 && !cJSON_IsObject(*log)) {
        rc = err_set(err, ERR_SYNTAX, HEADER " is not an object");
    }
    rc = rc == 0 ? read_samples(&z, &left, *log, err) : rc;
    zip_release(&z);
    return rc;
}
