/*
 * Room on the disk, looked at every few seconds. Below half the reserve a program that has work is
 * paused while that can still be written down; a paused one goes on when there is twice the reserve
 * again, so that it does not flap. ACT_WATCH_DISK and ACT_WATCH_DATA need nothing more than that.
 */
#include "base/file.h"
#include "base/log.h"
#include "daemon/prepare.h"
#include "daemon/shell.h"

#define DISK_LOOK_MS 3000

static void look(struct shell *sh, struct hosted *h)
{
    bool paused = (h->status.paused & PAUSE_DISK) != 0;
    int64_t room = disk_free_bytes(h->folder);
    struct core_event ev = {.kind = CORE_DISK, .program = h->no};
    if (paused && (room < 0 || room >= 2 * DISK_RESERVE_BYTES)) {
        ev.disk_full = false;
        ev.text = "there is room on the disk again";
    } else if (!paused && room >= 0 && room < DISK_RESERVE_BYTES / 2) {
        ev.disk_full = true;
        ev.text = "the disk is nearly full";
    } else {
        return;
    }
    log_info("%s: %s", h->id, ev.text);
    pump_post(sh->pump, &ev);
}

static void on_disk(uv_timer_t *timer)
{
    struct shell *sh = timer->data;
    struct err err;
    if (!pump_is_well(sh->pump, &err)) {
        return; /* the commit that fails is tried again by itself */
    }
    for (size_t i = 0; i < sh->cap_programs; i++) {
        struct hosted *h = sh->programs[i];
        if (h != NULL && !h->status.verdict) {
            look(sh, h);
            shell_look_for_mend(sh, h);
        }
    }
}

void shell_watch_disk(struct shell *sh)
{
    if (uv_is_active((uv_handle_t *)&sh->disk) == 0) {
        (void)uv_timer_start(&sh->disk, on_disk, DISK_LOOK_MS, DISK_LOOK_MS);
    }
}
