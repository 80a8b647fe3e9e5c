/* The list of programs whose rows wait for their own journal. The pump adds a program when a commit
 * fails by its journal alone, tries it again when it is due, and removes it when its rows are
 * committed or rejected. */
#include "daemon/shell/withheld.h"

#include <assert.h>

#include "base/xalloc.h"

#define WAIT_FIRST_MS ((int64_t)1000)
#define WAIT_MAX_MS   ((int64_t)5 * 60 * 1000)

struct withheld *withheld_find(const struct withheld_list *list, uint32_t program)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].program == program) {
            return &list->items[i];
        }
    }
    return NULL;
}

struct withheld *withheld_add(struct withheld_list *list, uint32_t program, int64_t now_ms)
{
    ARRAY_GROW(list->items, list->n, list->cap);
    struct withheld *w = &list->items[list->n++];
    *w = (struct withheld){
        .program = program, .wait_ms = WAIT_FIRST_MS, .due_ms = now_ms + WAIT_FIRST_MS};
    core_out_init(&w->out);
    return w;
}

void withheld_postpone(struct withheld *w, int64_t now_ms)
{
    w->wait_ms = 2 * w->wait_ms < WAIT_MAX_MS ? 2 * w->wait_ms : WAIT_MAX_MS;
    w->due_ms = now_ms + w->wait_ms;
}

void withheld_remove(struct withheld_list *list, uint32_t program)
{
    struct withheld *w = withheld_find(list, program);
    assert(w != NULL);
    *w = list->items[--list->n];
}

int64_t withheld_due_ms(const struct withheld_list *list)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < list->n; i++) {
        due = list->items[i].due_ms < due ? list->items[i].due_ms : due;
    }
    return due;
}

void withheld_release(struct withheld_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        core_out_release(&list->items[i].out);
    }
    free(list->items);
    *list = (struct withheld_list){0};
}
