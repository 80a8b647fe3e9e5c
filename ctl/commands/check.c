/*
 * check GRID.TOML: proves a program before anything runs (ctl/proof.c), compares it with its lock,
 * and prints both. An invalid program still prints what could be proved; its diagnostics are
 * repeated below the report, because those above it have scrolled away.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json/json.h"
#include "base/terminal.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/proof.h"
#include "ctl/text/check_text.h"
#include "ctl/text/out.h"
#include "daemon/slurm_check/check.h"
#include "prereg/program/work_folder.h"
#include "truthtable/prove/check_explain.h"

#define ROWS_TOLD 16 /* of each kind; a table may have 2^18 */

/* Printed by --explain below the report. */
static const char explanation[] =
    "\nWhat these lines mean\n"
    "  table         every combination of input levels has exactly one row, so that any reading "
    "of\n"
    "                the data lands somewhere; a hole or a clash is an error\n"
    "  partial state what can be left open when data are missing or a gate is unknown: several "
    "rows\n"
    "                fire, and the verdict binds only where they agree\n"
    "  witnessed     scores were found, by a seeded search, that fire the row, alone or with "
    "others;\n"
    "                impossible: no complete set of records can, which for an outcome is an "
    "error:\n"
    "                the conditions named contradict each other; not shown: neither was found\n"
    "  above chance  how far the floor lies above chance, in binomial standard errors of the "
    "items\n"
    "  detects       the smallest difference of two arms that is seen at 80 % power, from the\n"
    "                sampling of items alone\n"
    "  priors        what you believe now; the report says how surprised you were\n"
    "  held fixed    what the conditions share is what the comparison is about; what differs as "
    "well\n"
    "                is what it is confounded with\n";

/* Reads the lock beside the program, if any, and verifies it against values, data and files: 0,
 * or why it does not fit. *lock may be set in either case. */
static int check_lock(const struct plan_program *p, struct lock **lock, struct err *err)
{
    int rc = load_lock(p, lock, err);
    return rc == 0 && *lock != NULL ? lock_verify(p, *lock, LOCK_ALL, NULL, NULL, err) : rc;
}

/* One line about the lock; returns what is wrong with it, or 0. The next step is named only for a
 * program without errors, since try and lock refuse any other. */
static int say_lock(const struct proof *proof, struct strbuf *sb)
{
    const struct plan_program *p = proof->program;
    struct lock *lock = NULL;
    struct err err = {0};
    int rc = check_lock(p, &lock, &err);
    if (rc != 0) {
        strbuf_addf(sb, "lock: does not fit: %s\n", err.msg);
    } else if (lock == NULL) {
        strbuf_addf(
            sb, "lock: none yet%s\n",
            proof->diag.n_errors > 0
                ? ""
                : " (`preregctl try` runs a little of it first, `preregctl lock` writes it)");
    } else {
        strbuf_addf(sb, "lock: fits, root %s\n", lock->root);
    }
    lock_free(lock);
    return rc;
}

/* What Slurm said, or that it was not asked. */
static void say_slurm(const struct ctl_options *o, const struct proof *proof, const cJSON *slurm,
                      const struct term *t, struct strbuf *sb)
{
    if (slurm != NULL) {
        slurm_text(sb, t, slurm);
    } else if (!o->slurm && slurm_check_stages(proof->program) > 0) {
        strbuf_adds(sb,
                    "slurm: not asked (`preregctl check --slurm` and `preregd submit` do, with a "
                    "probe job of seconds)\n");
    }
}

/* Prints diagnostics, proofs and the lock's state. Returns what is wrong with the lock, or 0. */
static int say(const struct ctl_options *o, const struct proof *proof, const cJSON *slurm)
{
    diag_print(&proof->diag, stderr);
    /* the program did not load, or its table could not be compiled */
    if (!proof->has_report) {
        return 0;
    }
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    cJSON *json = check_json(&proof->report);
    cJSON *explained = o->explain ? check_explain(&proof->report, ROWS_TOLD) : NULL;
    check_text(&sb, &t, proof->program, json, explained);
    cJSON_Delete(explained);
    cJSON_Delete(json);
    if (o->no_run) {
        strbuf_adds(&sb,
                    "no worker was asked (--no-run): metrics, parameters and what is held fixed "
                    "are not checked\n");
    }
    say_slurm(o, proof, slurm, &t, &sb);
    int lock_rc = say_lock(proof, &sb);
    if (o->explain) {
        strbuf_adds(&sb, explanation);
    }
    out_text(&sb);
    strbuf_release(&sb);
    return lock_rc;
}

/* Ends the output with the errors and their number; those above the report have scrolled away. The
 * report is flushed first, because both streams may go to one pipe. */
static int say_errors(const struct proof *proof, struct err *err)
{
    const int rc = out_flush(err);
    if (proof->has_report) {
        diag_print_errors(&proof->diag, stderr);
    }
    terminal_printf(stderr, "preregctl check: %zu error%s\n", proof->diag.n_errors,
                    proof->diag.n_errors == 1 ? "" : "s");
    return rc;
}

/* The lock's state for --json; a lock that does not fit decides the exit code of a valid
 * program. */
static void put_lock(cJSON *answer, const struct plan_program *p, enum exit_code *code)
{
    struct lock *lock = NULL;
    struct err err = {0};
    int rc = check_lock(p, &lock, &err);
    cJSON *o = json_object();
    json_put_bool(o, "fits", rc == 0 && lock != NULL);
    json_put_string(o, "root", lock != NULL ? lock->root : NULL);
    json_put_string(o, "why", rc != 0 ? err.msg : NULL);
    json_put(answer, "lock", o);
    *code = *code == EXIT_OK && rc != 0 ? err_exit_code(rc) : *code;
    lock_free(lock);
}

/* Asks Slurm about a program without errors. */
static int ask_slurm(const struct ctl_options *o, struct proof *proof, cJSON **answer,
                     struct err *err)
{
    char *state = NULL;
    int rc = load_state_folder(o->state, &state, err);
    if (rc == 0) {
        const struct slurm_check check = {
            .program = proof->program, .state = state, .wait_ms = o->slurm_wait_ms};
        rc = slurm_check(&check, &proof->diag, answer, err);
    }
    free(state);
    return rc;
}

/* The one object of --json; *code is the lock's where the program has no errors. */
static int say_json(const struct ctl_options *o, const struct proof *proof, const cJSON *slurm,
                    enum exit_code *code, struct err *err)
{
    struct err failure = {0};
    cJSON *answer = proof_json(proof);
    /* --json has every row, however many */
    if (o->explain && proof->has_report) {
        json_put(answer, "table", check_explain(&proof->report, SIZE_MAX));
    }
    if (proof->program != NULL) {
        put_lock(answer, proof->program, code);
    }
    if (o->slurm) {
        json_put(answer, "slurm", slurm != NULL ? json_copy(slurm) : cJSON_CreateNull());
    }
    int rc = out_json(answer, &failure);
    cJSON_Delete(answer);
    *err = rc != 0 ? failure : *err;
    return rc;
}

/* The exit code is that of the program's errors, else that of the lock. */
int cmd_check(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct proof proof;
    cJSON *slurm = NULL;
    *code = EXIT_OK;
    const struct trust_ask trust = {.state = o->state, .run = o->run};
    int rc = proof_run(o->args[0], o->no_run ? NULL : &trust, &proof, err);
    if (rc == 0 && o->slurm) {
        rc = ask_slurm(o, &proof, &slurm, err);
    } else if (rc == 0) { /* the daemon may be that of another machine */
        work_folder_check(proof.program, DIAG_WARNING, &proof.diag);
    }
    /* the machine failed, or the user refused: there is nothing to report */
    if (rc != 0 && rc != ERR_INVALID) {
        proof_release(&proof);
        return rc;
    }
    *code = err_exit_code(rc);
    if (o->json) {
        rc = say_json(o, &proof, slurm, code, err);
    } else {
        int lock_rc = say(o, &proof, slurm);
        *code = rc == 0 && lock_rc != 0 ? err_exit_code(lock_rc) : *code;
        rc = rc != 0 ? say_errors(&proof, err) : 0;
    }
    cJSON_Delete(slurm);
    proof_release(&proof);
    return rc;
}
