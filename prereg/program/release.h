/*
 * The roles in which reviewers sign a receipt, and [release] requires: which of them a program
 * needs before it counts as released (docs/receipts.md, "Release").
 *
 * A role is a namespace of ssh-keygen of its own. So a signature in one role holds in no other and
 * without a role, and a line of a file of allowed signers can be limited to one.
 */
#ifndef PREREG_PROGRAM_RELEASE_H
#define PREREG_PROGRAM_RELEASE_H

#include <stdbool.h>

enum release_role {
    ROLE_SCIENTIFIC,
    ROLE_STATISTICAL,
    ROLE_ADVERSARIAL,
    ROLE_NR, /* and in the place of a role: a signature without one */
};

/* Their names, as in a program and on the command line, and NULL. */
extern const char *const release_roles[ROLE_NR + 1];

/* Returns the role of that name; ROLE_NR for another. */
enum release_role release_role_find(const char *name);
/* Returns what ssh-keygen -n gets: "preregd" for ROLE_NR. */
const char *release_namespace(enum release_role role);

/* What a program requires; without [release] nothing. */
struct plan_release {
    bool required[ROLE_NR];
};

static inline bool release_requires_some(const struct plan_release *r)
{
    return r->required[ROLE_SCIENTIFIC] || r->required[ROLE_STATISTICAL] ||
           r->required[ROLE_ADVERSARIAL];
}

#endif
