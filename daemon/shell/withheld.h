/*
 * The programs whose rows wait, because their own journal cannot be written while those of others
 * can: their rows and acts, in order, and when the next try is due. The pump owns the list and
 * decides; nothing here commits.
 */
#ifndef DAEMON_SHELL_WITHHELD_H
#define DAEMON_SHELL_WITHHELD_H

#include "daemon/core/core.h"

struct withheld {
    uint32_t program;
    struct core_out out; /* stepped, not committed; its acts are not done */
    struct err why;      /* of the first try, as the listener words it */
    int64_t wait_ms;     /* between the last try and the next */
    int64_t due_ms;      /* mono */
};

struct withheld_list { /* {0} is empty */
    struct withheld *items;
    size_t n;
    size_t cap;
};

/* NULL: none. The pointer holds until the list changes. */
struct withheld *withheld_find(const struct withheld_list *list, uint32_t program);
/* A new entry without rows; the first try is due in a second. */
struct withheld *withheld_add(struct withheld_list *list, uint32_t program, int64_t now_ms)
    __attribute__((returns_nonnull));
/* After a try that failed: the next is due in twice the time, up to five minutes. */
void withheld_postpone(struct withheld *w, int64_t now_ms);
/* Removes the entry, whose `out` now belongs to the caller. */
void withheld_remove(struct withheld_list *list, uint32_t program);
/* When the earliest try is due; INT64_MAX: the list is empty. */
int64_t withheld_due_ms(const struct withheld_list *list);
void withheld_release(struct withheld_list *list);

#endif
