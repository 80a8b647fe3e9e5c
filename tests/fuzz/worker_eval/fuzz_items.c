/* JSON lines of items, of every task: whatever is taken must be askable. The first byte chooses the
 * task. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/eval/items/item.h"
#include "worker/eval/score/outcome.h"

#define FUZZ_TASKS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_askable(const struct item *it, const struct task_spec *spec)
{
    const bool has_options = it->kind == TASK_CHOICE || it->kind == TASK_CONTEXT;
    const bool has_context = it->kind != TASK_CONTEXT && it->kind != TASK_ROLLING;
    if (has_options && (it->n_options < 2 || it->gold >= it->n_options))
        abort();
    if (has_context != (it->context != NULL) || it->doc == NULL)
        abort();
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    item_add_example(it, spec, &text);
    if (item_add_doc_layout(it, &text, &err) != 0)
        abort();
    strbuf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct task_spec *specs[FUZZ_TASKS_MAX];
    struct err err = {0};
    struct item_set set;
    if (size == 0)
        return 0;
    item_set_init(&set);
    const size_t which = data[0] % task_builtin_count();
    if (which >= FUZZ_TASKS_MAX)
        return 0;
    if (specs[which] == NULL &&
        task_builtin_read(task_builtin_name(which), &specs[which], &err) != 0)
        abort();
    const struct task_spec *spec = specs[which];
    if (spec->n_members > 0) { /* a suite has no records of its own */
        item_set_release(&set);
        return 0;
    }
    int rc = item_set_parse_jsonl(&set, spec, (const char *)data + 1, size - 1, &err);
    if ((rc == 0) != (err.code == 0))
        abort();
    for (size_t i = 0; rc == 0 && i < set.n; i++)
        must_be_askable(&set.items[i], spec);
    item_set_release(&set);
    return 0;
}
