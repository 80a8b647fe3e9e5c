/* The names of the roles, and their namespaces: one table, so that none is without the other. */
#include "prereg/program/release.h"

#include <stddef.h>
#include <string.h>

const char *const release_roles[ROLE_NR + 1] = {"scientific", "statistical", "adversarial", NULL};

static const char *const namespaces[ROLE_NR + 1] = {"preregd-scientific", "preregd-statistical",
                                                    "preregd-adversarial", "preregd"};

enum release_role release_role_find(const char *name)
{
    enum release_role role = ROLE_SCIENTIFIC;
    while (role < ROLE_NR && strcmp(name, release_roles[role]) != 0) {
        role++;
    }
    return role;
}

const char *release_namespace(enum release_role role)
{
    return namespaces[role];
}
