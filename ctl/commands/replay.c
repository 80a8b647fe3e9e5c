/*
 * replay GRID.TOML RECORDS.JSON: reads a verdict off records from elsewhere; with --out it writes
 * an imported program (commands/import.c). Nothing is executed. The lock is used for its root only:
 * an unlocked program can be replayed, and the output says that it is not locked. The exit code is
 * that of `verdict`.
 */
#include <stdio.h>

#include "base/json/json.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/text/out.h"
#include "ctl/text/verdict_text.h"
#include "truthtable/evaluate/verdict.h"
#include "truthtable/evaluate/verdict_file.h"

/* The verdict, with where its records come from and whether the program is locked. */
static int say(const struct ctl_options *o, bool locked, const struct table_verdict *verdict,
               struct err *err)
{
    if (o->json) {
        cJSON *answer = json_object();
        json_put_int(answer, "schema", 1);
        json_put_bool(answer, "locked", locked);
        json_put_int(answer, "exit_code", (int64_t)verdict_kind_exit(verdict->kind));
        int rc = verdict_print_json(verdict, answer, err);
        cJSON_Delete(answer);
        return rc;
    }
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    strbuf_addf(&sb, "records from %s, ", o->args[1]);
    out_line(&sb, answer_text(verdict_summary(verdict), "records", "of unknown origin"));
    strbuf_addf(&sb, "; nothing was executed%s\n\n", locked ? "" : "; the program is not locked");
    verdict_text_of(&sb, &t, verdict);
    out_text(&sb);
    strbuf_release(&sb);
    return 0;
}

/* Computes the verdict under the lock's root, if there is a lock. */
static int replay(const struct ctl_options *o, const struct plan_program *p, enum exit_code *code,
                  struct err *err)
{
    struct lock *lock = NULL;
    int rc = load_lock(p, &lock, err);
    if (rc != 0) {
        return rc;
    }
    struct table_verdict verdict;
    rc = replay_run(p, lock ? lock->root : NULL, o->args[1], &verdict, err);
    if (rc == 0) {
        *code = verdict_kind_exit(verdict.kind);
        rc = say(o, lock != NULL, &verdict, err);
        verdict_release(&verdict);
    }
    lock_free(lock);
    return rc;
}

int cmd_replay(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct plan_program *p = NULL;
    /* with --out it is an import whose records are given */
    if (o->out != NULL) {
        return import_to_folder(o, o->args[1], code, err);
    }
    if (o->replace) {
        return err_set(err, ERR_USAGE, "--replace needs --out");
    }
    int rc = load_program(o->args[0], &p, err);
    if (rc == 0) {
        rc = replay(o, p, code, err);
    }
    program_free(p);
    return rc;
}
