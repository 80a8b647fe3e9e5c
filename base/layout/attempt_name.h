/*
 * The folder of an attempt: its name, and the task in it. The name is attempt-NN-UUID, with at
 * least two digits. Earlier versions wrote at least four (attempt-0003-UUID); those folders keep
 * their names and are read alike.
 */
#ifndef BASE_LAYOUT_ATTEMPT_NAME_H
#define BASE_LAYOUT_ATTEMPT_NAME_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/files/file.h"
#include "base/uuid.h"

struct attempt_name {
    uint32_t no; /* from 1 */
    char id[UUID_TEXT_SIZE];
};

/* Returns the name that new folders get. The caller frees it. */
char *attempt_name_format(uint32_t no, const char *id);
/* Reads a folder's name in either form; false, with *out unspecified, if it is not one. */
bool attempt_name_parse(const char *name, struct attempt_name *out);

/* Returns the attempt's folder in `task_folder`: the older form if only that exists. The caller
 * frees it. */
char *attempt_path(const char *task_folder, uint32_t no, const char *id)
    __attribute__((returns_nonnull));
/* Lists the names of all attempts' folders in the order of their numbers; none if `task_folder`
 * does not exist. The caller releases *out, also after an error. */
int attempt_list(const char *task_folder, struct name_list *out, struct err *err) MUST_CHECK;

#define ATTEMPT_TASK_MEMBER "task" /* of exit.json */

/* Reads the task that was given to the attempt in `folder`: task.json, or, once it has ended well,
 * exit.json's member "task", where its shim put it. The caller deletes *out. */
int attempt_task_read(const char *folder, cJSON **out, struct err *err) MUST_CHECK;

#endif
