/* Lines of items.jsonl from an earlier attempt: a line that is believed is, byte for byte, the line
 * that would be written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/eval/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct task_spec *spec, const struct item *it, const char *line, size_t len)
{
    struct outcome o;
    outcome_init(&o);
    if (outcome_read_line(&o, spec, it, 0, line, len)) {
        struct strbuf again = STRBUF_INIT;
        outcome_add_line(&o, spec, it, 0, &again);
        if (again.len != len + 1 || memcmp(again.buf, line, len) != 0)
            abort();
        strbuf_release(&again);
    }
    outcome_release(&o);
}

static const struct task_spec *find_spec(const char *task)
{
    struct err err = {0};
    struct task_spec *spec = NULL;
    if (task_builtin_read(task, &spec, &err) != 0)
        abort();
    return spec;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct task_spec *specs[2];
    static const char *const options[] = {"a", "bb", "c"};
    const struct item choices = {
        .kind = TASK_CHOICE, .context = "q", .options = options, .n_options = 3, .line = 1};
    const struct item question = {
        .kind = TASK_GENERATE, .context = "q", .continuation = "#### 2", .line = 1};
    if (specs[0] == NULL) {
        specs[0] = find_spec("choices");
        specs[1] = find_spec("gsm8k");
    }
    check(specs[0], &choices, (const char *)data, size);
    check(specs[1], &question, (const char *)data, size);
    return 0;
}
