/*
 * remove PROGRAM [RECEIPT]: gives up the cells of a program that has its verdict. What cannot be
 * repeated must exist elsewhere first: a receipt of this very program, which is verified here,
 * and whose verdict is the program's; or the user says that nothing is wanted. The daemon journals
 * and removes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/files/temp_folder.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/receipt/tar.h"
#include "ctl/receipt/verify/verify.h"
#include "ctl/text/out.h"

/* The program as the daemon has it. */
static int find_program(const struct ctl_options *o, cJSON **answer, const cJSON **program,
                        struct err *err)
{
    cJSON *params = ask_params(o, true);
    int rc = ask(o, "status", params, answer, err);
    const cJSON *list = rc == 0 ? json_member(*answer, "programs") : NULL;
    *program = list == NULL ? NULL : list->child;
    if (rc == 0 && *program == NULL) {
        rc = err_set(err, ERR_NOT_FOUND, "no program is called \"%.80s\"", o->args[0]);
    }
    if (rc == 0 && strcmp(answer_text(*program, "state", ""), "finished") != 0) {
        rc = err_set(err, ERR_REFUSED,
                     "%.80s has no verdict and report yet: nothing of it is removed",
                     answer_text(*program, "id", "?"));
    }
    return rc;
}

/* ERR_LOCK: the receipt is of something else. */
static int compare(const cJSON *program, const char *folder, const struct verify_answer *a,
                   struct err *err)
{
    struct digest there;
    struct digest here;
    if (strcmp(answer_text(a->json, "root", ""), answer_text(program, "root", "?")) != 0 ||
        strcmp(answer_text(a->json, "head", ""), answer_text(program, "head", "?")) != 0) {
        return err_set(err, ERR_LOCK,
                       "the receipt is of another program, or older than an amendment: "
                       "`preregctl export` makes one of this");
    }
    char *path = path_join(folder, LAYOUT_VERDICT);
    int rc = digest_file(path, &there, NULL, err);
    free(path);
    if (rc != 0) {
        return rc;
    }
    rc = digest_file(answer_text(json_member(program, "verdict"), "path", ""), &here, NULL, err);
    if (rc != 0) {
        return rc;
    }
    return digest_equal(&there, &here)
               ? 0
               : err_set(err, ERR_LOCK, "the receipt has another verdict than the program");
}

/* Verifies the folder, compares it, and takes the digest of its sums. */
static int check_folder(const cJSON *program, const char *folder, char sums[DIGEST_HEX_SIZE],
                        struct err *err)
{
    const struct verify_spec spec = {.folder = folder};
    struct verify_answer a;
    struct digest digest;
    char *path = path_join(folder, LAYOUT_SUMS);
    int rc = receipt_verify(&spec, &a);
    if (rc != 0) {
        (void)err_join(&a.fault, err);
        rc = err_wrap(err, "the receipt does not verify (`preregctl verify` says more)");
        goto out;
    }
    rc = compare(program, folder, &a, err);
    if (rc != 0) {
        goto out;
    }
    rc = digest_file(path, &digest, NULL, err);
    if (rc == 0) {
        digest_hex(&digest, sums);
    }
out:
    verify_answer_release(&a);
    free(path);
    return rc;
}

/* A file is taken to be a receipt's tar. */
static int check_receipt(const cJSON *program, const char *path, char sums[DIGEST_HEX_SIZE],
                         struct err *err)
{
    struct temp_folder folder = {.fd = -1};
    const enum file_kind kind = file_kind_at(path);
    if (kind == FILE_ABSENT) {
        return err_set(
            err, ERR_NOT_FOUND,
            "there is no receipt %.140s: `preregctl export` makes one; or give its path, or "
            "--yes-lose-it",
            path);
    }
    if (kind == FILE_FOLDER) {
        return check_folder(program, path, sums, err);
    }
    int rc = temp_folder_make("remove", &folder, err);
    if (rc != 0) {
        return rc;
    }
    rc = tar_read(path, folder.path, err);
    if (rc == 0) {
        rc = check_folder(program, folder.path, sums, err);
    }
    struct err left;
    if (temp_folder_remove(&folder, &left) != 0) {
        terminal_printf(stderr, "preregctl: %s\n", left.msg);
    }
    return rc;
}

/* The receipt that is named, else the one that `export` wrote here. */
static char *find_receipt(const struct ctl_options *o, const cJSON *program)
{
    char *name = o->n_args > 1 ? xstrdup(o->args[1])
                               : xasprintf("%s-receipt", answer_text(program, "id", "?"));
    char *path = path_absolute(NULL, name);
    free(name);
    return path;
}

static void say(const cJSON *answer)
{
    terminal_printf(
        stdout, "%s: its cells are %s; plan, journal, verdict, provenance and report are kept\n",
        answer_text(answer, "program", "?"),
        answer_bool(answer, "already") ? "given up already" : "given up");
}

int cmd_remove(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    cJSON *answer = NULL;
    const cJSON *program = NULL;
    char sums[DIGEST_HEX_SIZE];
    *code = EXIT_OK;
    int rc = find_program(o, &answer, &program, err);
    if (rc == 0) {
        cJSON *params = json_object();
        char *receipt = o->lose ? NULL : find_receipt(o, program);
        json_put_string(params, "program", answer_text(program, "id", "?"));
        ask_put_reason(o, params);
        if (o->lose || answer_bool(program, "removed")) {
            json_put_bool(params, "lose", true);
        } else {
            rc = check_receipt(program, receipt, sums, err);
            json_put_string(params, "receipt", receipt);
            json_put_string(params, "sums", rc == 0 ? sums : NULL);
        }
        if (rc == 0) {
            rc = ask_and_say(o, "remove", params, say, err);
        } else {
            cJSON_Delete(params);
        }
        free(receipt);
    }
    cJSON_Delete(answer);
    return rc;
}
