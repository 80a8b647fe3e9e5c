/*
 * A fault that would cost attempts is found before anything runs: a folder that cannot be made, or
 * what a cluster would refuse. Slurm is asked by daemon/slurm_check, which is also behind
 * `preregctl check --slurm`; a submission has a person waiting for it, so its probe waits less.
 */
#include "daemon/submit_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/terminal.h"
#include "base/text.h"
#include "daemon/slurm_check/check.h"
#include "prereg/load/program_load.h"
#include "prereg/program/work_folder.h"

/* Whether this state folder has the program with this [run]: it was asked about when it was
 * submitted. */
static bool is_known(const char *state, const struct plan_program *p, const struct lock *lock)
{
    struct plan_program *before = NULL;
    struct diag diag;
    struct err ignored;
    char *id = lock_program_id(lock);
    char *folder = layout_program(state, id);
    char *path = path_join(folder, LAYOUT_GRID);
    diag_init(&diag, NULL);
    const bool known = program_load_from(path, p->folder, &before, &diag, &ignored) == 0 &&
                       program_same_run(before, p);
    diag_release(&diag);
    program_free(before);
    free(path);
    free(folder);
    free(id);
    return known;
}

static int ask_slurm(const struct submit_options *o, const char *state,
                     const struct plan_program *p, struct diag *diag, struct err *err)
{
    cJSON *answer = NULL;
    const struct slurm_check check = {.program = p, .state = state, .wait_ms = o->slurm_wait_ms};
    if (isatty(STDERR_FILENO) == 1) {
        terminal_printf(stderr, "asking Slurm, with a probe job of seconds (--no-slurm-check does "
                                "not) ...\n");
    }
    int rc = slurm_check(&check, diag, &answer, err);
    cJSON_Delete(answer);
    return rc;
}

int submit_check(const struct submit_options *o, const char *state, const struct plan_program *p,
                 const struct lock *lock, struct err *err)
{
    struct diag diag;
    if (is_known(state, p, lock)) {
        return 0;
    }
    diag_init(&diag, o->path);
    work_folder_check(p, DIAG_ERROR, &diag);
    int rc = diag_result(&diag, err);
    const bool asks = rc == 0 && slurm_check_stages(p) > 0 && !o->no_slurm_check;
    if (asks) {
        rc = ask_slurm(o, state, p, &diag, err);
    }
    diag_print(&diag, stderr);
    if (rc == ERR_INVALID && diag.n_errors > 0) {
        rc = err_set(err, ERR_INVALID, "%s was not submitted: %zu %s%s", o->path, diag.n_errors,
                     text_plural((int64_t)diag.n_errors, "error", "errors"),
                     asks ? " (--no-slurm-check submits it without asking Slurm)" : "");
    } else if (asks && (rc == ERR_OTHER || rc == ERR_TIMEOUT)) { /* no answer */
        terminal_printf(stderr, "preregd: --no-slurm-check submits it without asking Slurm\n");
    }
    diag_release(&diag);
    return rc;
}
