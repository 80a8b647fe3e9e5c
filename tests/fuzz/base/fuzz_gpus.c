/* A list of GPUs that is read keeps its invariants, and is the same when it is written and read
 * again; so are its parts that any list of visible devices leaves. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine/gpu_list.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void must_be_sound(const struct gpu_list *list)
{
    must(list->n <= GPU_LIST_MAX);
    for (size_t i = 0; i < list->n; i++) {
        const struct gpu *g = &list->items[i];
        must(gpu_uuid_is_valid(g->uuid) && gpu_list_find(list, g->uuid) == g);
        must(text_is_plain(g->model) && text_is_plain(g->driver) && g->model[0] != '\0');
        must(g->memory_bytes >= 0 && g->memory_bytes <= GPU_MEMORY_MAX);
        must(g->free_bytes >= -1 && g->free_bytes <= GPU_MEMORY_MAX);
        must(g->n_processes <= GPU_PROCESS_MAX);
        for (size_t k = 0; k < g->n_processes; k++) {
            must(g->processes[k].pid > 0 && text_is_plain(g->processes[k].name));
        }
    }
}

static void must_come_back(const struct gpu_list *list)
{
    struct err err;
    struct gpu_list back;
    struct strbuf first = STRBUF_INIT;
    struct strbuf second = STRBUF_INIT;
    must(gpu_list_write(list, &first, &err) == 0);
    must(gpu_list_read(first.buf, first.len, &back, &err) == 0);
    must(gpu_list_write(&back, &second, &err) == 0);
    must(strcmp(first.buf, second.buf) == 0);
    gpu_list_release(&back);
    strbuf_release(&first);
    strbuf_release(&second);
}

/* JSON, and behind the last NUL the visible devices. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    struct gpu_list list;
    char *text = strndup((const char *)data, size);
    const size_t len = strlen(text);
    if (gpu_list_read(text, len, &list, &err) != 0) {
        must(list.n == 0 && err.code != 0);
    } else {
        must_be_sound(&list);
        must_come_back(&list);
        char *visible =
            len + 1 < size ? strndup((const char *)data + len + 1, size - len - 1) : NULL;
        gpu_list_bound(&list, GPU_NVIDIA, visible, NULL);
        must_be_sound(&list);
        free(visible);
    }
    gpu_list_release(&list);
    free(text);
    return 0;
}
