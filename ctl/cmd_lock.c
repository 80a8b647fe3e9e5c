#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "ctl/ctl.h"
#include "ctl/out.h"
#include "ctl/proof.h"
#include "prereg/lock.h"

static int say(const struct ctl_options *o, const struct lock *lock, const char *path,
               struct err *err)
{
    char *id = lock_program_id(lock);
    int rc = 0;
    if (o->json) {
        cJSON *answer = json_object();
        json_put_string(answer, "root", lock->root);
        json_put_string(answer, "program", id);
        json_put_string(answer, "path", path);
        rc = out_json(answer, err);
        cJSON_Delete(answer);
    } else {
        printf("%s\nroot %s\n%d data digests, %d files; `preregd submit` will run it as %s\n", path,
               lock->root, cJSON_GetArraySize(lock->data), cJSON_GetArraySize(lock->files), id);
    }
    free(id);
    return rc;
}

static int write_lock(const struct ctl_options *o, const struct proof *proof, struct err *err)
{
    struct lock *lock = NULL;
    cJSON *summary = check_json(&proof->report);
    int rc = lock_build(proof->program, proof->describe.json, summary, &lock, err);
    cJSON_Delete(summary);
    if (rc != 0) {
        return rc;
    }
    char *path = lock_path_of(o->args[0]);
    rc = lock_write(lock, path, o->replace, err);
    if (rc == ERR_EXISTS) {
        rc = err_wrap(err,
                      "the program was locked before with other values (--replace gives that up)");
    }
    rc = rc == 0 ? say(o, lock, path, err) : rc;
    free(path);
    lock_free(lock);
    return rc;
}

int cmd_lock(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct proof proof;
    *code = EXIT_OK;
    int rc = proof_run(o->args[0], false, &proof, err);
    if (!o->json) {
        diag_print(&proof.diag, stderr);
    }
    rc = rc == 0 ? write_lock(o, &proof, err) : rc;
    proof_release(&proof);
    return rc;
}
