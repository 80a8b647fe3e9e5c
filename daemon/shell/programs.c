/* Finds the programs of a shell by number. */
#include "daemon/shell/shell.h"

struct hosted *shell_program(const struct shell *sh, uint32_t no)
{
    return no < sh->cap_programs ? sh->programs[no] : NULL;
}

bool shell_is_damaged(const struct shell *sh, const struct hosted *h)
{
    return pump_damage(sh->pump, h->no) != NULL;
}

struct hosted *shell_served(const struct shell *sh, size_t no)
{
    struct hosted *h = no < sh->cap_programs ? sh->programs[no] : NULL;
    return h != NULL && !shell_is_damaged(sh, h) ? h : NULL;
}
