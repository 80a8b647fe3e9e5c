/*
 * A program of the state folder as its store and files have it, read only: for commands that ask no
 * daemon, or that have found none. What is sealed stays so: verdict and report are written only
 * after the end.
 */
#ifndef CTL_LOCAL_ANSWERS_H
#define CTL_LOCAL_ANSWERS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "ctl/ctl.h"
#include "state/rows.h"

/* A program as its store has it; the texts are owned. */
struct local_program {
    char *id;
    char *folder; /* STATE/programs/<id>, absolute */
    struct program_row status;
    bool unverified; /* its history */
    char *state;     /* absolute */
    uint32_t no;     /* in its store */
};

/* The named state folder, or the user's own, absolute. The caller frees *state. */
int local_state_folder(const struct ctl_options *o, char **state, struct err *err) MUST_CHECK;

/* Finds a program by id, root, name or a unique prefix of the id; NULL: the newest that is not
 * finished, else the newest. ERR_NOT_FOUND also without a state folder. Always valid to
 * release. */
int local_program_find(const struct ctl_options *o, const char *name, struct local_program *out,
                       struct err *err) MUST_CHECK;
void local_program_release(struct local_program *p);

/* Whether the path is the folder of a program that was executed or imported; such an argument
 * wins over a name. A folder where one was only written or locked is not. */
bool local_is_program_folder(const char *path);

/* ERR_REFUSED with the time and the receipt, when the cells of the program in this folder were
 * given up (`remove`): the end of its journal says so. `what` is what cannot be done without them.
 */
int local_check_cells(const char *folder, const char *what, struct err *err) MUST_CHECK;

/* The answer of the daemon's method `verdict` (docs/rpc.md). ERR_LOCK: verdict.json is not the one
 * that the journal ends with. */
int local_verdict(const struct local_program *p, cJSON **answer, struct err *err) MUST_CHECK;

/* How many programs the state folder has, and how many of them have their verdict; 0 without a
 * folder. */
void local_count(const struct ctl_options *o, size_t *n, size_t *n_finished);

#endif
