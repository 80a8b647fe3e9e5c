/*
 * The GPUs of this machine as the daemon last saw them. A job asks for them
 * (base/machine/gpu_ask.h) at the start, then every ten seconds while a task wants GPUs or has
 * them, and rarely otherwise; the core gets every answer (CORE_GPUS), and forgets it when nothing
 * wants GPUs or one fails: so no GPU is given by an answer that is older than ten seconds.
 *
 * A GPU that a process uses which belongs to no attempt of this daemon is not given to anyone.
 * Attempts are recognized by their marks and control groups (shim/mark.h, shim/group.h); one that
 * was alive when the asking began, or is when the answer comes, counts.
 */
#ifndef DAEMON_SHELL_GPU_WATCH_H
#define DAEMON_SHELL_GPU_WATCH_H

#include "base/machine/gpu_list.h"
#include "daemon/shell/shell.h"

/* Initialises the handles of sh->gpus. */
void gpu_watch_open(struct shell *sh);
/* Asks for the first time. */
void gpu_watch_start(struct shell *sh);
/* After rows were committed: a task may have begun to want GPUs. */
void gpu_watch_note(struct shell *sh);
void gpu_watch_close(struct shell *sh);
void gpu_watch_free(struct shell *sh); /* once the loop has run dry */

/* The last list; NULL before there was one. Lives until the next turn of the loop. */
const struct gpu_list *gpu_watch_list(const struct shell *sh);
/* Why the last asking failed; NULL when it did not. */
const char *gpu_watch_fault(const struct shell *sh);
/* Appends who uses the GPU besides our attempts, of these marks: "pid 4711 (python) of user x". */
struct gpu_owners { /* of the attempts that are alive */
    char (*ids)[UUID_TEXT_SIZE];
    uint64_t *marks;
    size_t n;
    bool other_pids; /* this process sees other numbers of processes than the driver */
};
void gpu_users_text(const struct gpu *g, const struct gpu_owners *ours, bool held,
                    struct strbuf *out);
/* Returns how much of its memory is in use and not by our attempts; 0 where that is not known. */
int64_t gpu_others_bytes(const struct gpu *g, const struct gpu_owners *ours, bool held);

#endif
