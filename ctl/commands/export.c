/* export [PROGRAM|FOLDER]: a receipt of a program (ctl/receipt/export.h), as a folder and a tar
 * in --out (default: here). Only the program's folder is read; the daemon is not asked, and may
 * be running. The argument is a program's folder, executed or imported, or a name in the state
 * folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/local_answers.h"
#include "ctl/receipt/export.h"
#include "ctl/text/out.h"
#include "truthtable/evaluate/verdict_file.h"

/* The folder of a program in the state folder; the caller frees it. */
static int folder_of_program(const struct ctl_options *o, const char *name, char **folder,
                             struct err *err)
{
    struct local_program p;
    int rc = local_program_find(o, name, &p, err);
    *folder = rc == 0 ? xstrdup(p.folder) : NULL;
    local_program_release(&p);
    return rc;
}

/* The argument is a program's folder, or its name in the state folder. */
static int find_folder(const struct ctl_options *o, char **folder, struct err *err)
{
    const char *name = o->n_args > 0 ? o->args[0] : NULL;
    if (name != NULL && local_is_program_folder(name)) {
        *folder = path_absolute(NULL, name);
        return 0;
    }
    return folder_of_program(o, name, folder, err);
}

int cmd_export(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct export_made made = {0};
    char *folder = NULL;
    *code = EXIT_OK;
    int rc = find_folder(o, &folder, err);
    if (rc == 0) {
        rc = local_check_cells(folder, "it cannot be exported again", err);
    }
    if (rc == 0) {
        const struct export_spec spec = {.program_folder = folder,
                                         .out = o->out != NULL ? o->out : ".",
                                         .with_host = o->with_host,
                                         .with_items = o->with_items};
        rc = receipt_export(&spec, &made, err);
        if (rc != 0 && o->n_args == 0) { /* of one that was not named */
            rc = err_wrap(err, "%s", strrchr(folder, '/') + 1);
        }
    }
    if (rc == 0 && o->json) {
        cJSON *answer = json_object();
        json_put_string(answer, "folder", made.folder);
        json_put_string(answer, "tar", made.tar);
        json_put_string(answer, "sums_sha256", made.sums);
        json_put_bool(answer, "verdict_is_early", made.verdict_is_early);
        rc = out_json(answer, err);
        cJSON_Delete(answer);
    } else if (rc == 0) {
        terminal_printf(stdout, "%s\n%s\nSHA-256 of SHA256SUMS: %s\n%s", made.folder, made.tar,
                        made.sums,
                        made.verdict_is_early ? "verdict.json lacks " VERDICT_ADDED
                                                ", as earlier versions wrote it\n"
                                              : "");
    }
    export_made_release(&made);
    free(folder);
    return rc;
}
