/* Lines of samples files, one after the other as a file has them: each is judged or refused, and
 * what was taken can be compared and described. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "truthtable/imported/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char results_text[] =
    "{\"results\":{\"t\":{\"acc,none\":0.5,\"acc_norm,none\":0.5,\"acc_stderr,none\":0.1,"
    "\"exact_match,strict-match\":1,\"exact_match,flexible-extract\":1,\"perplexity,none\":2,"
    "\"word_perplexity,none\":2,\"bits_per_byte,none\":2,\"f1,none\":1}},"
    "\"configs\":{\"t\":{\"target_delimiter\":\" \",\"metric_list\":[{\"metric\":\"exact_match\","
    "\"ignore_case\":true,\"regexes_to_ignore\":[\",\",\"\\\\$\",\"(?s).*#### \",\"\\\\.$\"]}]}},"
    "\"task_hashes\":{\"t\":\"00\"}}";

static void take(struct samples *s, const char *line, size_t len)
{
    cJSON *v = NULL;
    struct err err = {0};
    if (json_parse_lax(line, len, &v, &err) == 0) {
        int rc = samples_line(s, v, line, len, &err);
        if (rc != 0 && (err.code != rc || err.msg[0] == '\0')) {
            abort();
        }
    }
    cJSON_Delete(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct imported_results r;
    struct samples s;
    struct err err = {0};
    struct strbuf said = STRBUF_INIT;
    if (results_parse(&r, results_text, strlen(results_text), "r.json", &err) != 0 ||
        samples_init(&s, &r, results_find(&r, "t"), &err) != 0) {
        abort();
    }
    const char *at = (const char *)data;
    size_t left = size;
    while (left > 0) {
        const char *end = memchr(at, '\n', left);
        const size_t len = end == NULL ? left : (size_t)(end - at);
        take(&s, at, len);
        at += len + (end == NULL ? 0 : 1);
        left -= len + (end == NULL ? 0 : 1);
    }
    samples_describe(&s, &said);
    int rc = samples_compare(&s, &err);
    if (rc != 0 && err.code != rc) {
        abort();
    }
    strbuf_release(&said);
    samples_release(&s);
    results_release(&r);
    return 0;
}
