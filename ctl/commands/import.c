/*
 * import: results files of lm-evaluation-harness become an imported program (docs/import.md). The
 * plan was locked before, or is locked now, which its lock then states; the records come from
 * files; gates, contrasts and table are those of any program. Nothing is executed but
 * prereg-report. `replay --out` takes the same way, with records.json in place of a map.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/text/out.h"
#include "ctl/text/verdict_text.h"
#include "truthtable/evaluate/verdict_file.h"
#include "truthtable/imported/folder.h"
#include "truthtable/prove/check.h"

/* Everything that an import collects before it writes. */
struct importing {
    const struct ctl_options *o;
    const char *replayed; /* records.json of a replay; NULL: an import */
    struct plan_program *program;
    struct lock *lock;
    struct map map;
    struct import import;
    struct table_verdict verdict;
};

/* ---- an executed history in the state folder ---- */

/* Refuses a plan that one executed program has: imported records never join an executed history. */
static int check_program(const char *folder, const struct importing *in, struct err *err)
{
    struct lock *lock = NULL;
    struct err unread;
    char *path = path_join(folder, LAYOUT_LOCK);
    int rc = 0;
    if (lock_read(path, &lock, &unread) == 0) {
        cJSON *plan = program_covered(in->program);
        if (json_equal(plan, lock->plan)) {
            rc = err_set(err, ERR_REFUSED,
                         "this plan has an executed history, %s: imported records never become "
                         "part of it (--state names another state folder)",
                         folder);
        }
        cJSON_Delete(plan);
    }
    lock_free(lock);
    free(path);
    return rc;
}

/* Refuses a plan that has an executed history, and an output folder among the executed programs. */
static int check_state(const struct importing *in, struct err *err)
{
    char *state = NULL;
    struct name_list names = {0};
    int rc = load_state_folder(in->o->state, &state, err);
    if (rc != 0) {
        return rc;
    }
    char *programs = path_join(state, LAYOUT_PROGRAMS);
    char *out = path_absolute(NULL, in->o->out);
    const size_t n = strlen(programs);
    /* an imported folder among executed ones would be read as one of them */
    if (strncmp(out, programs, n) == 0 && (out[n] == '/' || out[n] == '\0')) {
        rc = err_set(err, ERR_REFUSED, "%s is for executed programs: choose a folder elsewhere",
                     programs);
    } else if (file_kind_at(programs) == FILE_FOLDER) {
        rc = dir_list(programs, &names, err);
    }
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *folder = path_join(programs, names.names[i]);
        rc = check_program(folder, in, err);
        free(folder);
    }
    name_list_release(&names);
    free(out);
    free(programs);
    free(state);
    return rc;
}

/* ---- the lock ---- */

/* The proofs of the table, for the lock; an invalid program is refused here. */
static int prove(const struct plan_program *p, cJSON **proof, struct err *err)
{
    struct diag diag;
    struct check_report report;
    diag_init(&diag, p->path);
    int rc = check_run(p, NULL, &report, &diag, err);
    if (rc == 0) {
        rc = diag_result(&diag, err);
        *proof = check_json(&report);
        check_release(&report);
    } else {
        check_release(&report);
    }
    diag_print(&diag, stderr);
    diag_release(&diag);
    return rc;
}

/* The lock beside the program when there is one, else one of the plan alone. */
static int take_lock(struct importing *in, struct err *err)
{
    cJSON *proof = NULL;
    int rc = load_lock(in->program, &in->lock, err);
    if (rc != 0 || in->lock != NULL) {
        return rc;
    }
    rc = prove(in->program, &proof, err);
    if (rc == 0) {
        rc = imported_lock_build(in->program, proof, &in->lock, err);
    }
    cJSON_Delete(proof);
    return rc;
}

/* ---- the map ---- */

/* The map of files to cells: MAP.JSON, --pattern or --records, or the records of a replay. */
static int take_map(struct importing *in, struct err *err)
{
    const struct ctl_options *o = in->o;
    int rc = 0;
    if (in->replayed != NULL) {
        in->map.label_of_records = true;
        map_add_records(&in->map, NULL, in->replayed);
        return 0;
    }
    if (o->n_args < 2 && o->pattern == NULL && o->records == NULL) {
        return err_set(err, ERR_USAGE, "import needs a MAP.JSON, --pattern or --records");
    }
    if (o->pattern == NULL && o->samples != NULL) {
        return err_set(err, ERR_USAGE, "--samples needs --pattern");
    }
    if (o->n_args > 1) {
        rc = map_read(&in->map, o->args[1], err);
    }
    if (rc == 0 && o->label != NULL) {
        in->map.label = o->label;
    }
    if (rc == 0 && o->pattern != NULL) {
        rc = map_add_pattern(&in->map, NULL, o->pattern, o->samples, err);
    }
    if (rc == 0 && o->records != NULL) {
        map_add_records(&in->map, NULL, o->records);
    }
    return rc;
}

/* ---- output ---- */

/* The verdict is the last member, and is written as it is made. */
static int say_json(const struct importing *in, struct err *err)
{
    cJSON *answer = json_object();
    json_put_int(answer, "schema", 1);
    json_put_string(answer, "folder", in->o->out);
    json_put_string(answer, "root", in->lock->root);
    json_put_bool(answer, "locked_before", !imported_lock(in->lock));
    json_put_int(answer, "exit_code", (int64_t)verdict_kind_exit(in->verdict.kind));
    json_put(answer, "warnings", json_copy(in->import.warnings));
    json_put(answer, "files", json_copy(in->import.receipts));
    int rc = verdict_print_json(&in->verdict, answer, err);
    cJSON_Delete(answer);
    return rc;
}

/* The summary says first that nothing was executed here. */
static int say(const struct importing *in, struct err *err)
{
    const cJSON *w = NULL;
    if (in->o->json) {
        return say_json(in, err);
    }
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    int n_files = cJSON_GetArraySize(in->import.receipts);
    strbuf_addf(&sb, "IMPORTED PROGRAM: %d records of %d file%s (",
                cJSON_GetArraySize(in->import.list), n_files, n_files == 1 ? "" : "s");
    out_line(&sb, answer_text(verdict_summary(&in->verdict), "records", "imported"));
    strbuf_adds(&sb, "); nothing was executed\n");
    cJSON_ArrayForEach(w, in->import.warnings)
    {
        strbuf_adds(&sb, "warning: ");
        out_line(&sb, w->valuestring);
        strbuf_addc(&sb, '\n');
    }
    strbuf_addc(&sb, '\n');
    verdict_text_of(&sb, &t, &in->verdict);
    strbuf_addf(&sb, "\n%s/" LAYOUT_IN_REPORT(LAYOUT_REPORT_HTML) "\n", in->o->out);
    out_text(&sb);
    strbuf_release(&sb);
    return 0;
}

/* All checks come before the first byte is written; a failed report leaves the import in place. */
static int import_all(struct importing *in, enum exit_code *code, struct err *err)
{
    const struct folder_spec spec = {.folder = in->o->out,
                                     .program_path = in->o->args[0],
                                     .program = in->program,
                                     .lock = in->lock,
                                     .replace = in->o->replace};
    int rc = folder_check(&spec, err);
    if (rc != 0 || (rc = check_state(in, err)) != 0 || (rc = take_map(in, err)) != 0 ||
        (rc = import_run(&in->import, in->program, &in->map, err)) != 0 ||
        (rc = folder_write(&spec, &in->import, &in->verdict, err)) != 0) {
        return rc;
    }
    if (run_report(in->o->out, NULL, err) != 0) {
        return err_wrap(err, "the import is in %s, without a report (run `preregctl report`)",
                        in->o->out);
    }
    *code = verdict_kind_exit(in->verdict.kind);
    return say(in, err);
}

int import_to_folder(const struct ctl_options *o, const char *replayed, enum exit_code *code,
                     struct err *err)
{
    struct importing in = {.o = o, .replayed = replayed};
    int rc = load_program(o->args[0], &in.program, err);
    if (rc != 0) {
        return rc;
    }
    map_init(&in.map, in.program);
    rc = take_lock(&in, err);
    if (rc == 0) {
        rc = import_all(&in, code, err);
    }
    /* set only when folder_write() computed it */
    if (in.verdict.file != NULL) {
        verdict_release(&in.verdict);
    }
    import_release(&in.import);
    map_release(&in.map);
    lock_free(in.lock);
    program_free(in.program);
    return rc;
}

int cmd_import(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    return o->out == NULL ? err_set(err, ERR_USAGE, "import needs --out FOLDER")
                          : import_to_folder(o, NULL, code, err);
}
