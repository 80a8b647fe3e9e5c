/*
 * Room on the disks, checked every few seconds, off the loop: that of the program's folder and that
 * of its cells/, which [run] work may put elsewhere. Below half the reserve a program that has work
 * is paused, while there is still room to write that down. It resumes when twice the reserve is
 * free again, so that it does not flap, and when a file can be written there: a quota shows in no
 * other way. ACT_WATCH_DISK and ACT_WATCH_DATA need nothing more than that.
 */
#include <sys/statvfs.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "daemon/program/prepare.h"
#include "daemon/rpc/server.h"
#include "daemon/shell/shell.h"

#define DISK_LOOK_MS   3000
#define PAUSE_TENTHS   5
#define RESUME_TENTHS  20
#define DISK_TRY_BYTES ((int64_t)4 * 1024 * 1024)

struct room_job {
    struct job job;
    struct shell *shell;
    struct hosted *hosted;
    char *folder;
    bool paused; /* when it began */
    int rc;
    struct err err;
};

/* Only ERR_NO_SPACE counts: a folder that is missing, or cannot be written for another reason,
 * proves nothing about room. */
static int try_one(const char *folder, bool of_cells, struct err *err)
{
    struct err why;
    char *path = of_cells ? path_join(folder, LAYOUT_CELLS) : xstrdup(folder);
    int rc = disk_try(path, DISK_TRY_BYTES, &why);
    if (rc == ERR_NO_SPACE) {
        char *disk = prepare_disk_name(folder, of_cells);
        rc = err_set(err, ERR_NO_SPACE,
                     "%.150s: no file of %lld KiB can be written there; is it full, or a quota "
                     "used up?",
                     disk, (long long)(DISK_TRY_BYTES >> 10));
        free(disk);
    }
    free(path);
    return rc == ERR_NO_SPACE ? rc : 0;
}

static int try_both(const char *folder, struct err *err)
{
    int rc = try_one(folder, false, err);
    return rc != 0 ? rc : try_one(folder, true, err);
}

static void on_room_work(struct job *job)
{
    struct room_job *j = (struct room_job *)job;
    j->rc = prepare_check_room(j->folder, j->paused ? RESUME_TENTHS : PAUSE_TENTHS, &j->err);
    if (j->rc == 0 && j->paused) {
        j->rc = try_both(j->folder, &j->err);
    }
}

/* The program may have been paused or resumed while the job ran; then its finding is dropped. */
static void on_room(struct job *job)
{
    struct room_job *j = (struct room_job *)job;
    struct hosted *h = j->hosted;
    struct core_event ev = {.kind = CORE_DISK, .program = h->no};
    bool paused = (h->status.paused & PAUSE_DISK) != 0;
    h->room_asked = false;
    if (!j->shell->stopping && paused == j->paused && paused == (j->rc == 0)) {
        ev.disk_full = !paused;
        ev.text = paused ? "there is room on the disk again" : j->err.msg;
        log_info("%s: %s", h->id, ev.text);
        pump_post(j->shell->pump, &ev);
    } else if (paused && j->paused) {
        hosted_set_paused_why(h, PAUSE_DISK, j->err.msg);
    }
    free(j->folder);
    free(j);
}

/* At most one job for each program. */
static void look(struct shell *sh, struct hosted *h)
{
    if (h->room_asked) {
        return; /* a file system that does not answer holds up this job alone */
    }
    struct room_job *j = xcalloc(1, sizeof(*j));
    j->job.work = on_room_work;
    j->job.done = on_room;
    j->shell = sh;
    j->hosted = h;
    j->folder = xstrdup(h->folder);
    j->paused = (h->status.paused & PAUSE_DISK) != 0;
    h->room_asked = true;
    job_start(&sh->loop, &j->job);
}

/* ---- the state folder: for who looks ---- */

struct space_job {
    struct job job;
    struct shell *shell;
    const char *folder;
    int64_t free_bytes;
    int64_t total_bytes;
};

static void on_space_work(struct job *job)
{
    struct space_job *j = (struct space_job *)job;
    struct statvfs st;
    j->free_bytes = disk_free_bytes(j->folder);
    j->total_bytes =
        statvfs(j->folder, &st) == 0 ? (int64_t)st.f_blocks * (int64_t)st.f_frsize : -1;
}

static void on_space(struct job *job)
{
    struct space_job *j = (struct space_job *)job;
    j->shell->space = (struct state_space){j->free_bytes, j->total_bytes, false};
    free(j);
}

static void look_at_state(struct shell *sh)
{
    if (!sh->space.asked) {
        struct space_job *j = xcalloc(1, sizeof(*j));
        j->job = (struct job){.work = on_space_work, .done = on_space};
        j->shell = sh;
        j->folder = sh->state; /* the shell outlives its jobs */
        sh->space.asked = true;
        job_start(&sh->loop, &j->job);
    }
}

/* Also checks the socket file, and whether anything else that a program waits for has come back. */
static void on_disk(uv_timer_t *timer)
{
    struct shell *sh = timer->data;
    struct err err;
    server_check_socket(sh->server);
    if (sh->http != NULL) {
        look_at_state(sh);
    }
    if (!pump_is_well(sh->pump, &err)) {
        return; /* the pump retries its failed commit by itself */
    }
    for (size_t i = 0; i < sh->cap_programs; i++) {
        struct hosted *h = shell_served(sh, i);
        if (h != NULL && !h->status.verdict) {
            look(sh, h);
            shell_look_for_mend(sh, h);
        }
    }
}

void shell_watch_disk(struct shell *sh)
{
    if (uv_is_active((uv_handle_t *)&sh->disk) == 0) {
        sh->space = (struct state_space){-1, -1, sh->space.asked};
        look_at_state(sh);
        (void)uv_timer_start(&sh->disk, on_disk, DISK_LOOK_MS, DISK_LOOK_MS);
    }
}
