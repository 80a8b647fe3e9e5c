/* JSON lines of items, of every task: whatever is taken must be askable. The first byte chooses the
 * task. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/eval/item.h"
#include "worker/eval/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_askable(const struct item *it)
{
    if (it->form != FORM_QUESTION && (it->n_options < 2 || it->gold >= it->n_options))
        abort();
    if (item_is_schema(it) != (it->context == NULL))
        abort();
    struct strbuf example = STRBUF_INIT;
    item_add_example(it, &example);
    strbuf_release(&example);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const tasks[] = {"choices", "schema",   "hellaswag", "winogrande",
                                        "gsm8k",   "arc_easy", "copa",      "openbookqa"};
    struct err err = {0};
    struct item_set set;
    if (size == 0)
        return 0;
    item_set_init(&set);
    const struct task_def *def = task_def_find(tasks[data[0] % 8]);
    int rc = item_set_parse_jsonl(&set, def, (const char *)data + 1, size - 1, &err);
    if ((rc == 0) != (err.code == 0))
        abort();
    for (size_t i = 0; rc == 0 && i < set.n; i++)
        must_be_askable(&set.items[i]);
    item_set_release(&set);
    return 0;
}
