/*
 * Runs prereg-report as a child with a time limit, in the environment of this process. The report
 * is a separate executable so that nothing it reads or draws can reach the process that holds a
 * verdict. Its last words are shown when it fails.
 */
#include "ctl/ctl.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/machine/proc.h"

#define REPORT_TIMEOUT_MS ((int64_t)10 * 60 * 1000)

/* A signal, an exit code and silence each give a message of their own. */
int run_report(const char *folder, const char *csv, struct err *err)
{
    struct strbuf self = STRBUF_INIT;
    int rc = path_of_self(&self, err);
    if (rc != 0) {
        strbuf_release(&self);
        return rc;
    }
    char *program = path_join(self.buf, "prereg-report");
    const char *argv[] = {program, folder, csv == NULL ? NULL : "--csv", csv, NULL};
    struct proc_spec spec = {
        .argv = argv, .timeout_ms = REPORT_TIMEOUT_MS, .max_out_bytes = (size_t)1 << 20};
    struct proc_result result;
    rc = proc_run(&spec, &result, err);
    while (rc == 0 && result.err.len > 0 && result.err.buf[result.err.len - 1] == '\n') {
        result.err.buf[--result.err.len] = '\0';
    }
    const char *words = rc == 0 && result.err.len > 0 ? result.err.buf : "it says nothing";
    if (rc == 0 && result.signal != 0) {
        rc = err_set(err, ERR_OTHER, "prereg-report was ended by signal %d: %.180s", result.signal,
                     words);
    } else if (rc == 0 && result.code != 0) {
        rc =
            err_set(err, ERR_OTHER, "prereg-report ended with code %d: %.180s", result.code, words);
    }
    proc_result_release(&result);
    free(program);
    strbuf_release(&self);
    return rc;
}
