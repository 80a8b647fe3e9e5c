#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/out.h"

#define REPORT_TIMEOUT_MS ((int64_t)10 * 60 * 1000)

/* The program's folder: the argument itself when it is one, else the daemon's word. */
static int find_folder(const struct ctl_options *o, char **folder, struct err *err)
{
    if (o->n_args > 0) {
        char *path = path_join(o->args[0], "grid.toml");
        bool is_folder = file_kind_at(path) == FILE_REGULAR;
        free(path);
        if (is_folder) {
            *folder = path_absolute(NULL, o->args[0]);
            return 0;
        }
    }
    cJSON *answer = NULL;
    int rc = ask(o, "report", ask_params(o, true), &answer, err);
    const char *text = NULL;
    rc = rc == 0 ? json_get_string(answer, "program_folder", &text, err) : rc;
    if (rc == 0) {
        *folder = path_absolute(NULL, text);
    }
    cJSON_Delete(answer);
    return rc;
}

static int run_report(const char *folder, struct err *err)
{
    struct strbuf self = STRBUF_INIT;
    int rc = path_of_self(&self, err);
    if (rc != 0) {
        strbuf_release(&self);
        return rc;
    }
    char *program = path_join(self.buf, "prereg-report");
    const char *argv[] = {program, folder, NULL};
    struct proc_spec spec = {
        .argv = argv, .timeout_ms = REPORT_TIMEOUT_MS, .max_out_bytes = (size_t)1 << 20};
    struct proc_result result;
    rc = proc_run(&spec, &result, err);
    if (rc == 0 && result.code != 0) {
        rc = err_set(err, ERR_OTHER, "prereg-report ended with code %d: %.180s", result.code,
                     result.err.len > 0 ? result.err.buf : "it says nothing");
    }
    proc_result_release(&result);
    free(program);
    strbuf_release(&self);
    return rc;
}

int cmd_report(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    char *folder = NULL;
    int rc = find_folder(o, &folder, err);
    if (rc != 0) {
        return rc;
    }
    char *report = path_join(folder, "report");
    char *verdict = path_join(report, "verdict.json");
    char *html = path_join(report, "report.html");
    if (file_kind_at(verdict) != FILE_REGULAR) {
        rc = err_set(err, ERR_REFUSED, "there is no verdict yet, and so no report");
    }
    rc = rc == 0 ? run_report(folder, err) : rc;
    if (rc == 0 && o->json) {
        cJSON *answer = json_object();
        json_put_string(answer, "folder", report);
        json_put_string(answer, "html", html);
        rc = out_json(answer, err);
        cJSON_Delete(answer);
    } else if (rc == 0) {
        printf("%s\n", html);
    }
    free(html);
    free(verdict);
    free(report);
    free(folder);
    return rc;
}
