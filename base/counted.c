/* The order of counted names: digits compare as numbers. Numbers below 10,000 are padded to four
 * digits, which strverscmp() orders rightly, among each other and before longer ones. */
#include "base/counted.h"

#include <stdlib.h>
#include <string.h>

static int by_count(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

void name_list_sort_counted(struct name_list *list)
{
    if (list->n > 1) {
        qsort(list->names, list->n, sizeof(*list->names), by_count);
    }
}
