/* Names that begin with a counted number, as those of attempts do: "attempt-10000-..." comes after
 * "attempt-9999-...", which the order of bytes has the other way round. */
#ifndef BASE_COUNTED_H
#define BASE_COUNTED_H

#include "base/file.h"

void name_list_sort_counted(struct name_list *list);

#endif
