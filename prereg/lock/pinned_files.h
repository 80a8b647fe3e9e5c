/* Inside of lock and object: every file that a program pins besides its [data]. */
#ifndef PREREG_LOCK_PINNED_FILES_H
#define PREREG_LOCK_PINNED_FILES_H

#include <stdbool.h>

#include "prereg/program/program.h"

struct pinned {
    const char *name; /* as written; the key in the lock */
    char *path;       /* absolute */
    bool command;     /* of a command: copied to objects and run from there */
    struct place place;
};

struct pinned_list {
    struct pinned *items;
    size_t n;
    size_t cap;
};

/* Files of commands, [pin] files and models of [apparatus], each name once. A file that is missing
 * goes to diag when there is one; else the first is the error. One name for two files is an error.
 * The list is valid to release in any case. */
int pinned_collect(const struct plan_program *p, struct pinned_list *out, struct diag *diag,
                   struct err *err) MUST_CHECK;
void pinned_release(struct pinned_list *list);

#endif
