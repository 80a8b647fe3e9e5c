/*
 * report [PROGRAM|FOLDER]: runs prereg-report over a program's folder and prints the path of the
 * HTML. The report is written again each time, from verdict.json and the records; it cannot change
 * a verdict. With --csv its tables are written elsewhere instead. A program without a verdict is
 * refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/local_answers.h"
#include "ctl/text/out.h"

/* What `prereg-report --csv` writes (truthtable/report/report_csv.h, which ctl/ may not use). */
#define MEANS_CSV   "means.csv"
#define RECORDS_CSV "records.csv"

/* Finds the program without a daemon. When there is none, the error stays that no daemon runs. */
static int find_local(const struct ctl_options *o, char **folder, struct err *err)
{
    struct local_program p;
    struct err why;
    int rc = local_program_find(o, o->n_args > 0 ? o->args[0] : NULL, &p, &why);
    if (rc == 0) {
        *folder = xstrdup(p.folder);
    } else {
        rc = rc == ERR_NOT_FOUND ? ERR_NO_DAEMON : err_set(err, rc, "%s", why.msg);
    }
    local_program_release(&p);
    return rc;
}

/* Finds the program's folder: the argument itself when it is one, else the daemon's answer, else
 * the state folder's. *ready: the daemon says that it has its report. */
static int find_folder(const struct ctl_options *o, char **folder, bool *ready, struct err *err)
{
    *ready = false;
    if (o->n_args > 0 && local_is_program_folder(o->args[0])) {
        *folder = path_absolute(NULL, o->args[0]);
        return 0;
    }
    cJSON *answer = NULL;
    int rc = ask(o, "report", ask_params(o, true), &answer, err);
    if (rc == ERR_NO_DAEMON) {
        return find_local(o, folder, err);
    }
    const char *text = NULL;
    if (rc == 0) {
        rc = json_get_string(answer, "program_folder", &text, err);
    }
    if (rc == 0) {
        *folder = path_absolute(NULL, text);
        *ready = answer_bool(answer, "ready");
    }
    cJSON_Delete(answer);
    return rc;
}

/* Prints the paths, or an object with them under their names; the HTML's has no name of its own. */
static int print_paths(const struct ctl_options *o, const char *const (*paths)[2], size_t n,
                       struct err *err)
{
    cJSON *answer = json_object();
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        json_put_string(answer, paths[i][0], paths[i][1]);
    }
    if (o->json) {
        rc = out_json(answer, err);
    } else {
        /* the folder comes first, and only the files in it are printed */
        for (size_t i = 1; i < n; i++) {
            terminal_printf(stdout, "%s\n", paths[i][1]);
        }
    }
    cJSON_Delete(answer);
    return rc;
}

/* The tables in a folder of the user's choice. */
static int write_csv(const struct ctl_options *o, const char *folder, struct err *err)
{
    char *to = path_absolute(NULL, o->csv);
    char *means = path_join(to, MEANS_CSV);
    char *records = path_join(to, RECORDS_CSV);
    const char *const paths[][2] = {{"folder", to}, {"means", means}, {"records", records}};
    int rc = local_check_cells(folder, "there are no records for tables", err);
    if (rc == 0 && (rc = run_report(folder, to, err)) == 0) {
        rc = print_paths(o, paths, ARRAY_LEN(paths), err);
    }
    free(records);
    free(means);
    free(to);
    return rc;
}

int cmd_report(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    char *folder = NULL;
    bool ready = false;
    int rc = find_folder(o, &folder, &ready, err);
    if (rc != 0) {
        return rc;
    }
    char *report = path_join(folder, LAYOUT_REPORT);
    char *verdict = path_join(report, LAYOUT_VERDICT);
    char *html = path_join(report, LAYOUT_REPORT_HTML);
    /* a reader (docs/many-programs.md) is only shown where it is */
    const bool closed = access(folder, X_OK) != 0 && errno == EACCES;
    if (closed ? !ready : file_kind_at(verdict) != FILE_REGULAR) {
        rc = err_set(err, ERR_REFUSED, "%.150s: no report before there is a verdict",
                     strrchr(folder, '/') + 1); /* an absolute path */
        goto out;
    }
    if (o->csv != NULL) {
        rc = closed ? err_set(err, ERR_REFUSED, "--csv reads the records, which are the owner's")
                    : write_csv(o, folder, err);
        goto out;
    }
    struct err removed = {0};
    const bool is_kept = !closed && local_check_cells(folder, "", &removed) != 0;
    if (is_kept) {
        terminal_printf(stderr,
                        "its cells were removed: the report is the one that was written before\n");
    }
    if (!closed && !is_kept && (rc = run_report(folder, NULL, err)) != 0) {
        goto out;
    }
    const char *const paths[][2] = {{"folder", report}, {"html", html}};
    rc = print_paths(o, paths, ARRAY_LEN(paths), err);
out:
    free(html);
    free(verdict);
    free(report);
    free(folder);
    return rc;
}
