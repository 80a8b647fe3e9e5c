/* verify FOLDER|FILE.tar: checks a receipt against itself (ctl/receipt/verify/verify.h) and prints
 * the level of assurance, or the first thing that does not follow. A tar is extracted into a
 * private folder, which is removed in the end. All texts of a receipt may be a stranger's: they are
 * printed as plain lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/temp_folder.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/receipt/tar.h"
#include "ctl/receipt/verify/verify.h"
#include "ctl/text/out.h"
#include "prereg/lock/signature.h"

/* A heading with its sentences; nothing for an empty list. */
static void add_list(struct strbuf *sb, const struct term *t, const char *heading,
                     const cJSON *list)
{
    const cJSON *o = NULL;
    if (cJSON_GetArraySize(list) == 0) {
        return;
    }
    strbuf_addc(sb, '\n');
    out_styled(sb, t, STYLE_BOLD, heading);
    strbuf_addc(sb, '\n');
    cJSON_ArrayForEach(o, list)
    {
        strbuf_addf(sb, "  - %s\n", o->valuestring);
    }
}

/* The place of the fault, what is wrong, and both values if there are any. */
static void add_fault(struct strbuf *sb, const struct term *t, const struct verify_answer *a)
{
    const struct err *f = &a->fault;
    out_styled(sb, t, STYLE_RED, "DOES NOT FOLLOW");
    strbuf_addf(sb, "  %s", f->file[0] == '\0' ? "the receipt" : f->file);
    if (f->line > 0) {
        strbuf_addf(sb, ":%zu", f->line);
    }
    strbuf_addf(sb, ": %s\n", f->msg);
    if (f->expected[0] != '\0' || f->found[0] != '\0') {
        strbuf_addf(sb, "  expected %s\n  found    %s\n", f->expected, f->found);
    }
}

/* Whether it is released, where the plan says what that takes. */
static void add_release(struct strbuf *sb, const struct term *t, const cJSON *release)
{
    if (!cJSON_IsObject(release)) {
        return;
    }
    if (cJSON_IsTrue(json_member(release, "released"))) {
        out_styled(sb, t, STYLE_GREEN, "released");
        strbuf_adds(sb, "  it is signed in every role that [release] requires\n");
    } else {
        out_styled(sb, t, STYLE_RED, "NOT RELEASED");
        strbuf_addf(sb, "  %s\n", answer_text(release, "why", "?"));
    }
}

/* What the lock cannot have preceded belongs beside the level. */
static void add_reused(struct strbuf *sb, const cJSON *reused)
{
    if (cJSON_IsObject(reused)) {
        strbuf_add_count(sb, answer_int(reused, "cells", 0), "cell is", "cells are");
        strbuf_addf(sb, " reused from a receipt of root %.16s: known before this lock\n",
                    answer_text(reused, "root", "?"));
    }
}

/* Behind the level. */
static const char *const BASES[BASIS_NR] = {[BASIS_RECORDS] = "",
                                            [BASIS_ITEMS_IN_PART] =
                                                ", counted again from the items in part",
                                            [BASIS_ITEMS] = ", counted again from the items"};

/* The answer as text: the fault, or level and sentence, then what is established, claimed, not
 * shown. */
static void say(const struct verify_answer *a)
{
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    const cJSON *tool = json_member(a->json, "tool");
    if (a->fault.code != 0) {
        add_fault(&sb, &t, a);
    } else {
        char records[200]; /* of an imported program a label of its maker's */
        text_copy_line(records, sizeof(records), answer_text(a->json, "records", "?"));
        out_styled(&sb, &t, STYLE_GREEN, verify_level_name(a->level));
        strbuf_addf(&sb, "%s  %s: %s, root %.16s, records: %s\n", BASES[a->basis],
                    answer_text(a->json, "program", "?"), answer_text(a->json, "outcome", "?"),
                    answer_text(a->json, "root", "?"), records);
        add_release(&sb, &t, json_member(a->json, "release"));
        add_reused(&sb, json_member(a->json, "reused"));
        strbuf_addf(&sb, "%s\n", answer_text(a->json, "sentence", ""));
    }
    /* a verdict is compared byte for byte, so the maker's version matters */
    if (strcmp(answer_text(tool, "made", PREREGD_VERSION), PREREGD_VERSION) != 0) {
        char made[40];
        text_copy_line(made, sizeof(made), answer_text(tool, "made", "?"));
        strbuf_addf(&sb, "made by preregd %s, verified by %s\n", made, PREREGD_VERSION);
    }
    add_list(&sb, &t, "established besides", json_member(a->json, "established"));
    add_list(&sb, &t, "claimed", json_member(a->json, "claimed"));
    add_list(&sb, &t, "not shown", json_member(a->json, "not_shown"));
    out_text(&sb);
    strbuf_release(&sb);
}

/* Prints the answer. The receipt is named as the user named it, not by the temporary folder. */
static int tell(const struct ctl_options *o, const struct verify_answer *a, enum exit_code *code,
                struct err *err)
{
    int rc = 0;
    if (o->json) {
        cJSON_ReplaceItemInObjectCaseSensitive(a->json, "receipt", cJSON_CreateString(o->args[0]));
        rc = out_json(a->json, err);
    } else {
        say(a);
    }
    *code = a->is_unreleased ? EXIT_LOCK : err_exit_code(a->fault.code);
    return rc;
}

/* Extracts a tar into a new folder under $TMPDIR, which the caller removes. What is wrong with
 * the tar is in `f`, as the receipt's fault; `err` is for faults of this machine. */
static int take_out(const char *path, struct temp_folder *folder, struct err *f, struct err *err)
{
    int rc = temp_folder_make("verify", folder, err);
    if (rc == 0) {
        (void)!tar_read(path, folder->path, f);
    }
    return rc == 0 ? 0 : err_wrap(err, "take %s out", path);
}

/* Verifies the folder with the user's allowed signers. A fault of the receipt is an answer, a
 * failure of this machine is an error. */
static int verify_at(const struct ctl_options *o, const char *folder, const struct err *taken,
                     enum exit_code *code, struct err *err)
{
    char *allowed = NULL;
    struct verify_answer a;
    int rc = signature_allowed_signers(o->allowed_signers, &allowed, err);
    if (rc == 0) {
        const struct verify_spec spec = {.folder = folder,
                                         .allowed_signers = allowed,
                                         .must_be_allowed = o->allowed_signers != NULL,
                                         .taken = taken,
                                         .ca = o->ca};
        int fault = receipt_verify(&spec, &a);
        /* what could not be checked says nothing about the receipt */
        rc = fault == 0 || fault == ERR_LOCK ? tell(o, &a, code, err) : err_join(&a.fault, err);
        verify_answer_release(&a);
    }
    free(allowed);
    return rc;
}

/* A file is taken to be a tar. The temporary folder is removed in any case. */
int cmd_verify(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    const char *path = o->args[0];
    struct err taken = {0};
    struct temp_folder folder = {.fd = -1};
    enum file_kind kind = file_kind_at(path);
    int rc = 0;
    if (kind == FILE_ABSENT) {
        return err_set(err, ERR_NOT_FOUND, "there is no %s", path);
    }
    if (kind != FILE_FOLDER) {
        rc = take_out(path, &folder, &taken, err);
    }
    if (rc == 0) {
        rc = verify_at(o, folder.path != NULL ? folder.path : path, &taken, code, err);
    }
    struct err left;
    if (folder.path != NULL && temp_folder_remove(&folder, &left) != 0) {
        (void)fflush(stdout); /* the answer first, where both go to one pipe */
        terminal_printf(stderr, "preregctl: %s\n", left.msg);
    }
    return rc;
}
