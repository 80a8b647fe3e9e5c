/* Random UUIDs (version 4) as 36-character lower-case text. */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include <stdbool.h>

#define UUID_TEXT_SIZE 37

void uuid_make(char text[UUID_TEXT_SIZE]);
bool uuid_is_valid(const char *text);

#endif
