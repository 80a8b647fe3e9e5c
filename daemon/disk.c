/* ACT_WATCH_DISK: while a program is paused for want of room, look every few seconds whether there
 * is some again; twice the reserve, so that it does not flap. */
#include "base/file.h"
#include "base/log.h"
#include "daemon/prepare.h"
#include "daemon/shell.h"

#define DISK_LOOK_MS 3000

static bool is_waiting(const struct hosted *h)
{
    return h != NULL && (h->status.paused & PAUSE_DISK) != 0;
}

static void on_disk(uv_timer_t *timer)
{
    struct shell *sh = timer->data;
    bool any = false;
    for (size_t i = 0; i < sh->cap_programs; i++) {
        struct hosted *h = sh->programs[i];
        if (!is_waiting(h)) {
            continue;
        }
        int64_t room = disk_free_bytes(h->folder);
        if (room < 0 || room >= 2 * DISK_RESERVE_BYTES) {
            struct core_event ev = {
                .kind = CORE_DISK, .program = h->no, .text = "there is room on the disk again"};
            ev.disk_full = false;
            log_info("%s: there is room on the disk again", h->id);
            pump_post(sh->pump, &ev);
        }
        any = true;
    }
    if (!any) {
        (void)uv_timer_stop(timer);
    }
}

void shell_watch_disk(struct shell *sh)
{
    (void)uv_timer_start(&sh->disk, on_disk, DISK_LOOK_MS, DISK_LOOK_MS);
}
