/* Pauses of a program, one bit for each reason. request.c lifts them. */
#include "daemon/core/internal.h"

/* One bit for each reason; a second pause for the same reason changes nothing. */
void program_pause(struct core *c, struct core_program *p, unsigned bit, const char *why)
{
    assert(bit != 0 && (bit & (bit - 1)) == 0);
    if ((p->status.paused & bit) != 0) {
        return;
    }
    p->status.paused |= bit;
    (void)emit_program_row(c, p, ROW_PAUSED, why);
    if (bit == PAUSE_DISK) {
        emit_act(c, ACT_WATCH_DISK, p);
    } else if (bit == PAUSE_DATA || bit == PAUSE_HOST) {
        emit_act(c, ACT_WATCH_DATA, p);
    }
}
