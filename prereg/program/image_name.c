/* The characters of names, tags and digests, so that no name is an option or has another transport.
 */
#include "prereg/program/image_name.h"

#include <stddef.h>
#include <string.h>

#define NAME_LEN_MAX ((size_t)512)

bool image_name_ok(const char *name)
{
    static const char inner[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "._/:@-";
    const size_t n = strlen(name);
    return n > 0 && n <= NAME_LEN_MAX && strspn(name, inner) == n && name[0] != '-' &&
           name[0] != '/' && strstr(name, ":/") == NULL;
}
