/* Executables that a user's commands name: found as a shell would, but without the current folder.
 */
#ifndef BASE_MACHINE_FIND_PROGRAM_H
#define BASE_MACHINE_FIND_PROGRAM_H

#include <stdbool.h>

/* Whether `path` is a regular file that may be executed. */
bool is_program(const char *path);

/* The first such file `name` in the absolute folders of $PATH; NULL when there is none. For
 * free(). */
char *find_program(const char *name);

#endif
