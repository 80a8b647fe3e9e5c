/* GPUs that a file describes (PREREG_GPUS), for tests and for trying a program without the machine
 * that it is meant for. The file is read at every call. */
#include <string.h>

#include "base/files/file.h"
#include "daemon/gpus/gpus.h"

/* One without known processes has none: the file says all that there is. */
int pretend_list(const char *path, struct gpu_list *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_read(path, GPU_JSON_MAX, &text, err);
    if (rc == 0) {
        rc = gpu_list_read(text.buf, text.len, out, err);
        if (rc != 0) {
            rc = err_wrap(err, "%s", path);
        }
    }
    for (size_t i = 0; rc == 0 && i < out->n; i++) {
        struct gpu *g = &out->items[i];
        g->processes_known = true;
        for (size_t k = 0; k < g->n_processes; k++) {
            gpu_process_fill(&g->processes[k]);
        }
    }
    strbuf_release(&text);
    return rc == 0 ? 0 : err_wrap(err, GPU_PRETEND);
}
