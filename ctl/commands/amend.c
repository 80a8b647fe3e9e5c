/* amend: the daemon prepares the amendment of an edited program, a key may sign it here, the
 * daemon commits it. Two questions, because the private key must not leave this process: the
 * first answer contains the amendment as it would be, the second question names its head and
 * carries the signature. An amendment that was prepared and not committed has no effect. */
#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "ctl/ask.h"
#include "ctl/proof.h"
#include "ctl/text/out.h"
#include "ctl/text/status_text.h"
#include "prereg/amend/access_level.h"
#include "prereg/amend/amendment.h"
#include "prereg/lock/signature.h"

/* Puts the program to amend: --program, or the root of the lock beside the file. */
static int put_program(const struct ctl_options *o, cJSON *params, struct err *err)
{
    if (o->program != NULL) {
        json_put_string(params, "program", o->program);
        return 0;
    }
    struct lock *lock = NULL;
    char *path = lock_path_of(o->args[0]);
    int rc = lock_read(path, &lock, err);
    if (rc == ERR_NOT_FOUND) {
        rc = err_set(err, ERR_NOT_FOUND,
                     "there is no %s to say which program it amends: name it with --program", path);
    } else if (rc == 0) {
        json_put_string(params, "program", lock->root);
    }
    lock_free(lock);
    free(path);
    return rc;
}

/* Checks the edited program, asks its workers (unless --no-run), and asks the daemon for the
 * amendment. */
static int prepare(const struct ctl_options *o, cJSON **answer, struct err *err)
{
    struct proof proof;
    cJSON *params = json_object();
    char *path = path_absolute(NULL, o->args[0]);
    const struct trust_ask trust = {.state = o->state, .run = o->run};
    int rc = proof_run(o->args[0], o->no_run ? NULL : &trust, &proof, err);
    if (rc != 0 || o->no_run) {
        diag_print(&proof.diag, stderr);
    }
    if (rc == 0) {
        rc = put_program(o, params, err);
    }
    if (rc != 0) {
        cJSON_Delete(params);
    } else {
        json_put_string(params, "path", path);
        json_put_string(params, "reason", o->reason);
        if (proof.described) {
            json_put(params, "describe", json_copy(proof.describe.json));
        }
        rc = ask(o, "amend", params, answer, err);
        /* the root came from the lock beside the file, so the daemon does not have that program */
        if (rc == ERR_NOT_FOUND && o->program == NULL) {
            rc =
                err_wrap(err, "nothing to amend (not submitted? then change it and lock it again)");
        }
    }
    proof_release(&proof);
    free(path);
    return rc;
}

/* Signs the amendment's text, if there is a key; the signature becomes a member of it. */
static int sign(const struct ctl_options *o, cJSON *amendment, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    cJSON *signature = NULL;
    if (o->key == NULL) {
        return 0;
    }
    int rc = amendment_text(amendment, &text, err);
    if (rc == 0) {
        rc = signature_json_make(o->key, text.buf, text.len, &signature, err);
    }
    if (rc == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(amendment, "signature");
        json_put(amendment, "signature", signature);
    }
    strbuf_release(&text);
    return rc;
}

/* Who signed the amendment, as the daemon found. */
static void say_signer(const cJSON *answer)
{
    const char *key = answer_text(answer, "signed_by", NULL);
    const char *note = answer_text(answer, "note", NULL);
    if (key != NULL) {
        terminal_printf(stdout, "signed by %s (%s)\n", answer_text(answer, "principal", "a key"),
                        key);
    }
    if (note != NULL) {
        terminal_printf(stdout, "%s\n", note);
    }
}

/* Signs, asks the daemon to make the amendment take effect, and reports it. */
static int commit(const struct ctl_options *o, const cJSON *prepared, struct err *err)
{
    cJSON *amendment = json_copy(json_member(prepared, "amendment"));
    cJSON *params = json_object();
    cJSON *answer = NULL;
    json_put_string(params, "program", answer_text(prepared, "program", ""));
    /* the head names the prepared amendment: a program edited since is not committed */
    json_put_string(params, "commit", answer_text(amendment, "head", ""));
    int rc = sign(o, amendment, err);
    if (rc != 0) {
        cJSON_Delete(params);
    } else {
        json_put(params, "signature", json_copy(json_member(amendment, "signature")));
        rc = ask(o, "amend", params, &answer, err);
    }
    if (rc == 0 && o->json) {
        json_put(answer, "amendment", json_copy(amendment));
        rc = out_json(answer, err);
    } else if (rc == 0) {
        terminal_printf(stdout, "%s: amendment %lld took effect, head %s\n",
                        answer_text(answer, "program", "?"),
                        (long long)answer_int(answer, "number", 0),
                        answer_text(answer, "head", "?"));
        say_signer(answer);
    }
    cJSON_Delete(amendment);
    cJSON_Delete(answer);
    return rc;
}

/* The level of access in words. */
static const char *level_words(const cJSON *prepared)
{
    return access_level_words(access_level_from_name(answer_text(prepared, "level", "?")));
}

/* Whether the plan demands a signature on amendments. */
static bool needs_key(const cJSON *prepared)
{
    return cJSON_IsTrue(json_member(prepared, "sign_required"));
}

/* What --dry-run found: everything may be amended. */
static void say_dry_run(const struct ctl_options *o, const cJSON *prepared)
{
    terminal_printf(stdout,
                    "as of now %s; all of it may be amended%s\nnothing was amended (--dry-run)\n",
                    level_words(prepared),
                    needs_key(prepared) && o->key == NULL ? ", with a signature (--key FILE)" : "");
}

/* Reports each change that the level does not allow. With --json the answer itself contains
 * them: one object, and the exit code beside it. */
static int say_refused(const struct ctl_options *o, const cJSON *prepared, enum exit_code *code,
                       struct err *err)
{
    const cJSON *refused = json_member(prepared, "refused");
    const cJSON *r;
    if (o->json) {
        *code = err_exit_code(ERR_REFUSED);
        return out_json(prepared, err);
    }
    cJSON_ArrayForEach(r, refused)
    {
        terminal_printf(stderr, "%s (%s): %s\n", answer_text(r, "path", "?"),
                        answer_text(r, "section", "?"), answer_text(r, "why", "?"));
    }
    /* one refused change refuses the whole amendment */
    const int n_refused = cJSON_GetArraySize(refused);
    const int n_changes = cJSON_GetArraySize(json_member(prepared, "changes"));
    return err_set(err, ERR_REFUSED, "not amended: %d of %d %s refused (%s), so none is made",
                   n_refused, n_changes,
                   n_changes == 1   ? "change is"
                   : n_refused == 1 ? "changes is"
                                    : "changes are",
                   level_words(prepared));
}

/* The changes are printed before anything takes effect; --dry-run ends there. */
int cmd_amend(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    cJSON *prepared = NULL;
    *code = EXIT_OK;
    if (o->reason == NULL || o->reason[0] == '\0') {
        return err_set(err, ERR_USAGE,
                       "say why with --reason; the amendment and the report record it");
    }
    if (amendment_check_reason(o->reason, err) != 0) {
        return err->code;
    }
    int rc = prepare(o, &prepared, err);
    if (rc == 0 && !cJSON_IsObject(json_member(prepared, "amendment"))) {
        rc = say_refused(o, prepared, code, err);
    } else if (rc == 0) {
        if (!o->json) {
            changes_print(json_member(prepared, "changes"), stdout);
            changes_print_known(json_member(prepared, "amendment"), stdout);
        }
        if (o->dry_run && o->json) {
            rc = out_json(prepared, err);
        } else if (o->dry_run) {
            say_dry_run(o, prepared);
        } else if (o->key == NULL && needs_key(prepared)) {
            rc =
                err_set(err, ERR_REFUSED,
                        "[lock] sign = \"required\": an amendment must be signed, too: --key FILE");
        } else {
            rc = commit(o, prepared, err);
        }
    }
    cJSON_Delete(prepared);
    return rc;
}
