/*
 * The accepted results that a task reads: one for every stage that its own comes after, and, of
 * another name of a work ([[same_work]]), that of the task that does the work. A task that reuses a
 * result from an earlier receipt ([reuse]) reads that in the place of a work's.
 *
 * Which attempt left each, and the digest of its result.json, come from the journal's rows in the
 * store, never from the link beside the attempts, which can be changed by hand. They are
 * collected on the loop; files are read off it.
 */
#ifndef DAEMON_PROGRAM_INPUTS_H
#define DAEMON_PROGRAM_INPUTS_H

#include <cjson/cJSON.h>

#include "daemon/program/hosted.h"

struct accepted {
    const char *stage; /* of the program */
    char *task;        /* its name, "CELL/STAGE" */
    char *folder;      /* of the attempt */
    struct digest digest;
};

struct accepted_list {
    const struct hosted *hosted; /* whose they are */
    struct accepted *items;      /* in the order of the stage's `after` */
    size_t n;
    bool has_work; /* the task runs no worker: the result that it accepts is the last item */
};

/* The inputs of a task, none for an apparatus check. ERR_CORRUPT when a stage it needs has no
 * accepted result. */
int inputs_collect(struct store *store, const struct hosted *h, uint32_t task,
                   struct accepted_list *out, struct err *err) MUST_CHECK;
/* The accepted result of the task itself, as a list of one. */
int inputs_of_one(struct store *store, const struct hosted *h, uint32_t task,
                  struct accepted_list *out, struct err *err) MUST_CHECK;
void inputs_release(struct accepted_list *list);
/* NULL when the stage is not among them; what does its work is not an input. */
const struct accepted *input_find(const struct accepted_list *list, const char *stage);

/* The result of the task that does its work; NULL: it does its own. */
const struct accepted *input_work(const struct accepted_list *list);

/* Turns an error of reading an accepted result into one that says what to do: ERR_LOCK when the
 * result is gone or is not what was accepted; ERR_IO and ERR_NO_SPACE stay, since an unreadable
 * result proves nothing. */
int input_refuse(const char *task, struct err *err);
/* Reads its result.json. ERR_LOCK as above. */
int input_read(const struct accepted *in, cJSON **result, struct err *err) MUST_CHECK;
/* Whether result.json and every artifact are what was accepted: ERR_LOCK names what is not;
 * ERR_NOT_FOUND when the program's cells are not there at all (cells.h). */
int inputs_verify(const struct accepted_list *list, struct pin_cache *cache,
                  struct err *err) MUST_CHECK;

/* The same for the first item only, fast enough for the loop: compares result.json's digest, and
 * the artifacts' sizes instead of their bytes. *n_artifacts counts them. */
int inputs_glance(const struct accepted_list *list, size_t *n_artifacts,
                  struct err *err) MUST_CHECK;

/* Reads a result that was accepted before; ERR_CORRUPT when its bytes are not those of `digest`. */
int accepted_read(const char *path, const struct digest *digest, cJSON **out,
                  struct err *err) MUST_CHECK;

#endif
