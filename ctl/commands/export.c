/* export [PROGRAM|FOLDER]: a receipt of a program (ctl/receipt/export.h), as a folder and a tar
 * in --out (default: here). Only the program's folder is read; the daemon is not asked, and may
 * be running. The argument is a program's folder, executed or imported, or a name in the state
 * folder. With --format (ctl/formats/format.h) it may be a receipt, too: of a program one is made
 * under $TMPDIR first, so that what is refused as a receipt is refused in every format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/temp_folder.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/formats/format.h"
#include "ctl/local_answers.h"
#include "ctl/receipt/export.h"
#include "ctl/receipt/layout.h"
#include "ctl/receipt/tar.h"
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

/* What --items asked for may not be there. */
static void tell_no_items(const struct ctl_options *o, const char *receipt)
{
    char *items = path_join(receipt, RECEIPT_ITEMS);
    if (o->with_items && file_kind_at(items) == FILE_ABSENT) {
        terminal_printf(
            stderr, "preregctl: --items: no result has items; the scores rest on the records\n");
    }
    free(items);
}

/* ---- --format ---- */

/* Where the receipt is that is to be written in another format. */
struct format_from {
    struct temp_folder temp; /* its path is NULL while there is none */
    struct export_made made;
    char *program; /* the folder that the receipt was made of; NULL: a receipt was given */
};

/* Whether the path is a receipt: its folder, or a file, which is taken to be a tar. */
static bool is_receipt(const char *path)
{
    char *statement = path_join(path, RECEIPT_STATEMENT);
    const bool folder = file_kind_at(statement) == FILE_REGULAR;
    free(statement);
    return folder || file_kind_at(path) == FILE_REGULAR;
}

/* Makes a receipt of the program, or extracts the tar that was given; *receipt is its folder. */
static int find_receipt(const struct ctl_options *o, struct format_from *from, const char **receipt,
                        struct err *err)
{
    const char *given = o->n_args > 0 && is_receipt(o->args[0]) ? o->args[0] : NULL;
    struct err fault = {0};
    *receipt = given;
    if (given != NULL && (o->with_items || o->with_host)) {
        return err_set(err, ERR_USAGE,
                       "%s is a receipt already: --items and --with-host are for making one",
                       given);
    }
    if (given != NULL && file_kind_at(given) == FILE_FOLDER) {
        return 0;
    }
    int rc = given == NULL ? find_folder(o, &from->program, err) : 0;
    if (rc == 0 && given == NULL) {
        rc = local_check_cells(from->program, "it cannot be exported again", err);
    }
    if (rc != 0 || (rc = temp_folder_make("export", &from->temp, err)) != 0) {
        return rc;
    }
    if (given != NULL) {
        *receipt = from->temp.path;
        return tar_read(given, from->temp.path, &fault) == 0 ? 0 : err_join(&fault, err);
    }
    const struct export_spec spec = {.program_folder = from->program,
                                     .out = from->temp.path,
                                     .with_host = o->with_host,
                                     .with_items = o->with_items};
    rc = receipt_export(&spec, &from->made, err);
    *receipt = from->made.folder;
    if (rc == 0) {
        tell_no_items(o, *receipt);
    }
    return rc;
}

/* The folder on standard output; omissions, for a person, on the other one. */
static int tell_format(const struct ctl_options *o, const struct format_made *made, struct err *err)
{
    const cJSON *note = NULL;
    int rc = 0;
    if (o->json) {
        cJSON *answer = json_object();
        json_put_string(answer, "folder", made->folder);
        json_put_string(answer, "format", o->format);
        json_put(answer, "left_out", json_copy(made->notes));
        rc = out_json(answer, err);
        cJSON_Delete(answer);
        return rc;
    }
    terminal_printf(stdout, "%s\n", made->folder);
    (void)fflush(stdout);
    cJSON_ArrayForEach(note, made->notes)
    {
        terminal_printf(stderr, "preregctl: %s: %s\n", o->format, note->valuestring);
    }
    return rc;
}

static int write_format(const struct ctl_options *o, struct err *err)
{
    struct format_from from = {.temp = {.fd = -1}};
    struct format_made made = {0};
    struct err left;
    const char *receipt = NULL;
    int rc = format_check_name(o->format, err);
    if (rc == 0) {
        rc = find_receipt(o, &from, &receipt, err);
    }
    if (rc == 0) {
        const struct format_spec spec = {.format = o->format,
                                         .receipt = receipt,
                                         .program_folder = from.program,
                                         .out = o->out != NULL ? o->out : "."};
        rc = format_export(&spec, &made, err);
    }
    rc = rc == 0 ? tell_format(o, &made, err) : rc;
    if (from.temp.path != NULL && temp_folder_remove(&from.temp, &left) != 0) {
        terminal_printf(stderr, "preregctl: %s\n", left.msg);
    }
    format_made_release(&made);
    export_made_release(&from.made);
    free(from.program);
    return rc;
}

int cmd_export(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct export_made made = {0};
    char *folder = NULL;
    *code = EXIT_OK;
    if (o->format != NULL) {
        return write_format(o, err);
    }
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
    if (rc == 0) {
        tell_no_items(o, made.folder);
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
