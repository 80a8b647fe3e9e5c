/* Names of apparatus checks: NAME as the program declares it, and NAME@end for the same check once
 * more after the last evaluation. No declared name has the ending, since '@' is in none. */
#ifndef PREREG_PROGRAM_APPARATUS_NAME_H
#define PREREG_PROGRAM_APPARATUS_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define APPARATUS_END "@end"

bool apparatus_name_is_end(const char *name);
/* Returns the length of the declared name in `name`. */
size_t apparatus_name_length(const char *name);
/* Whether `declared` is the declared name of `name`. */
bool apparatus_name_is_of(const char *name, const char *declared);

#endif
