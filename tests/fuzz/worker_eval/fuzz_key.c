/* Lines of a second answer key: whatever they say, no item has an option that it has not. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/eval/items/second_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char records[] = "{\"query\":\"q\",\"choices\":[\"a\",\"bb\",\"c\"],\"gold\":0}\n"
                              "{\"query\":\"r\",\"choices\":[\"a\",\"b\"],\"gold\":1}\n";

static struct item_set set;

static void make_set(void)
{
    struct err err = {0};
    struct task_spec *spec = NULL;
    item_set_init(&set);
    if (task_builtin_read("choices", &spec, &err) != 0 ||
        item_set_parse_jsonl(&set, spec, records, strlen(records), &err) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct second_key key;
    struct err err = {0};
    if (set.n == 0)
        make_set();
    if (second_key_parse(&key, "redux", &set, (const char *)data, size, &err) == 0) {
        for (size_t i = 0; i < set.n; i++)
            if (key.golds[i] >> set.items[i].n_options != 0)
                abort();
    } else if (err.code != ERR_SYNTAX) {
        abort();
    }
    second_key_release(&key);
    return 0;
}
