/* A task description and, behind a NUL, JSON lines for it: what is taken can be asked, what is
 * refused says why. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "worker/eval/prompt/prompt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_askable(const struct item_set *set)
{
    const struct prompt_rules rules = {.shots = 1};
    struct prompts prompts;
    struct request_text text;
    struct err err = {0};
    request_text_init(&text);
    if (prompts_init(&prompts, set, set, &rules, &err) == 0) {
        for (size_t i = 0; i < set->n; i++) {
            const struct item *it = &set->items[i];
            if (it->n_options > 0 && it->gold >= it->n_options)
                abort();
            for (size_t k = 0; k < prompt_requests(it); k++) {
                prompt_request(&prompts, i, k, &text);
                if (!text_is_utf8(text.context.buf, text.context.len))
                    abort();
            }
        }
    }
    prompts_release(&prompts);
    request_text_release(&text);
}

static void take_lines(const struct task_spec *spec, const char *lines, size_t len)
{
    struct item_set set;
    struct err err = {0};
    item_set_init(&set);
    int rc = item_set_parse_jsonl(&set, spec, lines, len, &err);
    if ((rc == 0) != (err.code == 0) || (rc != 0 && err.msg[0] == '\0'))
        abort();
    if (rc == 0)
        must_be_askable(&set);
    item_set_release(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = size == 0 ? NULL : memchr(text, '\0', size);
    const size_t len = end == NULL ? size : (size_t)(end - text);
    struct task_spec *spec = NULL;
    struct err err = {0};
    int rc = task_spec_parse(text, len, "f", &spec, &err);
    if ((rc == 0) != (spec != NULL) || (rc != 0 && strncmp(err.msg, "f: ", 3) != 0))
        abort();
    if (rc == 0 && end != NULL && spec->n_members == 0)
        take_lines(spec, end + 1, size - len - 1);
    task_spec_free(spec);
    return 0;
}
