/* Builds the paths of base/layout/layout.h that have more than one variable part. */
#include "base/layout/layout.h"

#include "base/xalloc.h"

char *layout_program(const char *state, const char *id)
{
    return xasprintf("%s/" LAYOUT_PROGRAMS "/%s", state, id);
}

char *layout_task(const char *program, const char *cell, const char *stage)
{
    return xasprintf("%s/" LAYOUT_CELLS "/%s/%s", program, cell, stage);
}

char *layout_check(const char *program, const char *name)
{
    return xasprintf("%s/" LAYOUT_APPARATUS "/%s", program, name);
}
