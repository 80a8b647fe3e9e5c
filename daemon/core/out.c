/* What a step hands to the shell: the memory of rows, acts and texts, and the names of acts for
 * traces and logs. Clearing keeps both arrays, since the next step fills them again, and drops the
 * texts. */
#include "base/xalloc.h"

#include "daemon/core/core.h"
#include <assert.h>

static const char *const ACT_NAMES[CORE_ACT_NR] = {
    [ACT_START] = "start",     [ACT_TERMINATE] = "terminate",   [ACT_KILL] = "kill",
    [ACT_PROBE] = "probe",     [ACT_VERIFY] = "verify",         [ACT_LINK] = "link",
    [ACT_ARM] = "arm",         [ACT_WATCH_DISK] = "watch_disk", [ACT_WATCH_DATA] = "watch_data",
    [ACT_VERDICT] = "verdict", [ACT_REPORT] = "report",         [ACT_REMOVE] = "remove",
};

const char *core_act_name(enum core_act_kind kind)
{
    return kind < CORE_ACT_NR ? ACT_NAMES[kind] : "?";
}

void core_out_init(struct core_out *out)
{
    assert(out != NULL);
    *out = (struct core_out){0};
    arena_init(&out->texts);
}

void core_out_clear(struct core_out *out)
{
    assert(out != NULL);
    arena_release(&out->texts);
    arena_init(&out->texts);
    out->n_rows = 0;
    out->n_acts = 0;
    out->refusal = NULL;
}

void core_out_release(struct core_out *out)
{
    assert(out != NULL);
    arena_release(&out->texts);
    free(out->rows);
    free(out->acts);
    *out = (struct core_out){0};
}
