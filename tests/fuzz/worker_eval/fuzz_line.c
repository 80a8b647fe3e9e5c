/* Lines of items.jsonl from an earlier attempt: a line that is believed is, byte for byte, the line
 * that would be written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/eval/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct task_def *def, const struct item *it, const char *line, size_t len)
{
    struct outcome o;
    outcome_init(&o);
    if (outcome_read_line(&o, def, it, 0, line, len)) {
        struct strbuf again = STRBUF_INIT;
        outcome_add_line(&o, def, it, 0, &again);
        if (again.len != len + 1 || memcmp(again.buf, line, len) != 0)
            abort();
        strbuf_release(&again);
    }
    outcome_release(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const options[] = {"a", "bb", "c"};
    const struct item choices = {
        .form = FORM_CHOICES, .context = "q", .options = options, .n_options = 3, .line = 1};
    const struct item question = {
        .form = FORM_QUESTION, .context = "q", .continuation = "#### 2", .line = 1};
    check(task_def_find("choices"), &choices, (const char *)data, size);
    check(task_def_find("gsm8k"), &question, (const char *)data, size);
    return 0;
}
