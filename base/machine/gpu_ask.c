/* Runs the helper and reads what it prints. The helper has a limit of its own, by which it gives up
 * on a driver that hangs without waiting for it (daemon/gpus); the limit here is for the
 * helper itself. */
#include "base/machine/gpu_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/machine/proc.h"

#define HELPER       "prereg-gpus"
#define SPARE_MS     2000
#define HELPER_STUCK 3 /* its exit code when a driver did not answer in time */

/* The helper's own words, without the line's end. */
static int failed(struct proc_result *r, struct err *err)
{
    while (r->err.len > 0 && r->err.buf[r->err.len - 1] == '\n') {
        r->err.buf[--r->err.len] = '\0';
    }
    const char *line = strrchr(r->err.buf, '\n');
    line = line == NULL ? r->err.buf : line + 1;
    return r->signal != 0 ? err_set(err, ERR_OTHER, "%s was ended by signal %d", HELPER, r->signal)
                          : err_set(err, r->code == HELPER_STUCK ? ERR_TIMEOUT : ERR_OTHER, "%s",
                                    line[0] == '\0' ? HELPER " failed" : line);
}

int gpu_ask(int64_t limit_ms, struct gpu_list *out, struct strbuf *notes, struct err *err)
{
    char limit[24];
    struct strbuf own = STRBUF_INIT;
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    *out = (struct gpu_list){0};
    (void)snprintf(limit, sizeof(limit), "%lld", (long long)limit_ms);
    int rc = path_of_self(&own, err);
    if (rc == 0) {
        char *path = path_join(own.buf, HELPER);
        const char *argv[] = {path, limit, NULL};
        const struct proc_spec spec = {.argv = argv,
                                       .timeout_ms = limit_ms + SPARE_MS,
                                       .max_out_bytes = GPU_JSON_MAX,
                                       .place = PROC_NO_TERMINAL};
        rc = proc_run(&spec, &r, err);
        free(path);
    }
    if (rc == 0 && (r.code != 0 || r.signal != 0)) {
        rc = failed(&r, err);
    } else if (rc == 0) {
        rc = gpu_list_read(r.out.buf, r.out.len, out, err);
        if (rc != 0) {
            rc = err_wrap(err, "what " HELPER " prints");
        }
    }
    if (rc == 0 && notes != NULL) {
        strbuf_add(notes, r.err.buf, r.err.len);
    }
    proc_result_release(&r);
    strbuf_release(&own);
    return rc;
}
