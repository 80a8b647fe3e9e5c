/* sign FOLDER: a maker's or reviewer's signature over a receipt that verifies
 * (ctl/receipt/sign.c). Only a folder can be signed; its tar is packed again with the signature
 * in it. Signing again with the same key replaces that key's signature. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/receipt/export.h"
#include "ctl/text/out.h"

/* The role of --role; ROLE_NR without one. */
static int find_role(const struct ctl_options *o, enum release_role *role, struct err *err)
{
    *role = o->role == NULL ? ROLE_NR : release_role_find(o->role);
    if (o->role == NULL || *role != ROLE_NR) {
        return 0;
    }
    const char *near = text_nearest(o->role, release_roles, ROLE_NR);
    return err_set(err, ERR_USAGE,
                   "--role: \"%s\" is not a role; expected scientific, statistical or "
                   "adversarial%s%s%s",
                   o->role, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?" : "");
}

int cmd_sign(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    char *path = NULL;
    enum release_role role = ROLE_NR;
    *code = EXIT_OK;
    int rc = find_role(o, &role, err);
    if (rc != 0) {
        return rc;
    }
    if (o->key == NULL) {
        return err_set(err, ERR_USAGE, "sign needs --key FILE");
    }
    if (file_kind_at(o->args[0]) != FILE_FOLDER) {
        return err_set(err, ERR_USAGE,
                       "%s is not a folder: a receipt is signed in its folder, and the .tar beside "
                       "it is rewritten",
                       o->args[0]);
    }
    char *folder = realpath(o->args[0], NULL); /* "." too: the tar is beside it */
    if (folder == NULL) {
        return err_set_errno(err, errno, "find %s", o->args[0]);
    }
    rc = receipt_sign(folder, o->key, role, &path, err);
    if (rc == 0 && o->json) {
        cJSON *answer = json_object();
        json_put_string(answer, "signature", path);
        json_put_string(answer, "role", o->role);
        rc = out_json(answer, err);
        cJSON_Delete(answer);
    } else if (rc == 0) {
        terminal_printf(stdout, "%s\n", path);
    }
    free(path);
    free(folder);
    return rc;
}
