/* Names of apparatus checks: the declared name, and the ending of the second run. */
#include "prereg/program/apparatus_name.h"

#include <string.h>

static const char ending[] = APPARATUS_END;

bool apparatus_name_is_end(const char *name)
{
    const size_t n = strlen(name);
    return n >= sizeof(ending) && strcmp(name + n - (sizeof(ending) - 1), ending) == 0;
}

size_t apparatus_name_length(const char *name)
{
    return strlen(name) - (apparatus_name_is_end(name) ? sizeof(ending) - 1 : 0);
}

bool apparatus_name_is_of(const char *name, const char *declared)
{
    const size_t n = apparatus_name_length(name);
    return strlen(declared) == n && strncmp(name, declared, n) == 0;
}
