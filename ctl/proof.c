/*
 * The order of the steps: load, files, trust, workers, then the proofs of truthtable/. Each runs
 * where the parts of the file that it reads have no errors, whatever is wrong elsewhere, so that a
 * user sees all errors at once and none that follows from another.
 */
#include "ctl/proof.h"

#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/machine/gpu_ask.h"
#include "ctl/load.h"
#include "ctl/reuse_proof.h"
#include "prereg/load/program_load.h"
#include "prereg/program/gpu_needs.h"
#include "prereg/program/input_reads.h"

/* Drops everything but the diagnostics. */
static void proof_drop(struct proof *proof)
{
    if (proof->has_report) {
        check_release(&proof->report);
    }
    if (proof->described) {
        describe_release(&proof->describe);
    }
    cJSON_Delete(proof->reuse);
    proof->reuse = NULL;
    program_free(proof->program);
    proof->program = NULL;
    proof->has_report = false;
    proof->described = false;
}

void proof_release(struct proof *proof)
{
    proof_drop(proof);
    diag_release(&proof->diag);
}

/* The diagnostics in the order in which they were found. */
static cJSON *diag_json(const struct diag *diag)
{
    static const char *const levels[] = {
        [DIAG_ERROR] = "error", [DIAG_WARNING] = "warning", [DIAG_NOTE] = "note"};
    cJSON *list = json_array();
    for (size_t i = 0; i < diag->n_items; i++) {
        const struct diag_item *item = &diag->items[i];
        cJSON *row = json_object();
        json_put_string(row, "level", levels[item->level]);
        json_put_int(row, "line", item->line);
        json_put_int(row, "column", item->column);
        json_put_string(row, "message", item->msg);
        json_push(list, row);
    }
    return list;
}

/* Asks whether what the program names may be executed. Without a state folder nothing is
 * remembered. A program with errors raises no question: only what may run anyway does. */
static int may_run(const struct trust_ask *trust, const struct plan_program *p, bool is_faulty,
                   struct err *err)
{
    struct err nowhere;
    char *state = NULL;
    bool found = load_state_folder(trust->state, &state, &nowhere) == 0;
    const struct trust_ask ask = {
        .state = found ? state : NULL, .run = trust->run, .all = trust->all, .quiet = is_faulty};
    int rc = trust_commands(&ask, p, err);
    free(state);
    return rc;
}

/* Where our workers keep what they measured of this machine, its folder made; NULL: nowhere, and
 * they measure again. */
static char *rates_file(const char *named)
{
    struct err nowhere;
    char *state = NULL;
    char *path = NULL;
    if (load_state_folder(named, &state, &nowhere) == 0 && dir_make(state, 0700, &nowhere) == 0) {
        path = path_join(state, LAYOUT_MACHINE_RATES);
    }
    free(state);
    return path;
}

/* What is being proved: a program, and which of its parts are sound. */
struct proof_premises {
    const struct plan_program *program;
    const struct program_sound *sound;
    const struct trust_ask *trust; /* NULL: no worker is asked */
    bool is_faulty;                /* it has errors already */
};

/* Asks the workers what they are about to do, and holds the plan against it. Failures of the
 * machine, and the user's refusal, are returned. */
static int ask_workers(struct proof *proof, const struct proof_premises *x, struct err *err)
{
    const struct plan_program *p = x->program;
    int rc = may_run(x->trust, p, x->is_faulty, err);
    if (rc == ERR_REFUSED && x->is_faulty) {
        err_clear(err);
        return 0;
    }
    if (rc != 0) {
        return rc;
    }
    char *rates = rates_file(x->trust->state);
    const struct describe_how how = {.rates = rates};
    const size_t n_before = proof->diag.n_errors;
    rc = describe_run(p, &how, &proof->describe, &proof->diag, err);
    free(rates);
    proof->described = true;
    if (rc != 0) {
        return err_wrap(err, "ask the workers");
    }
    /* a task with errors does not say what it leaves */
    const bool answered = proof->diag.n_errors == n_before;
    if (x->sound->measures && x->sound->apparatus) {
        describe_check_metrics(p, proof->describe.json, &proof->diag);
    }
    describe_check_memory(p, proof->describe.json, 0, &proof->diag);
    if (answered) {
        describe_check_reads(p, proof->describe.json, &proof->diag);
    }
    if (x->sound->measures && x->sound->conditions) {
        describe_check_resolution(p, proof->describe.json, &proof->diag);
    }
    return 0;
}

/* A model of GPUs that is pinned for nothing. */
static void check_pinned_gpu(struct proof *proof, const struct plan_program *p)
{
    bool asks = false; /* under Slurm too: the node compares it */
    for (size_t i = 0; i < p->n_stages; i++) {
        asks = asks || p->stages[i].run.gpu_thousandths > 0;
    }
    if (p->pin_gpu != NULL && !asks) {
        diag_add(&proof->diag, DIAG_WARNING, p->pin_gpu_place.line, p->pin_gpu_place.column,
                 "pin.gpu: no stage asks for GPUs (gpus of [run.STAGE])");
    }
}

/* GPUs that [run] asks for and this machine lacks. A warning: the daemon may be that of another. */
static void check_gpus(struct proof *proof, const struct plan_program *p)
{
    struct gpu_list list = {0};
    struct err err;
    if (!gpu_needs_any(p)) {
        return;
    }
    if (gpu_ask(GPU_ASK_MS, &list, NULL, &err) != 0) {
        diag_add(&proof->diag, DIAG_WARNING, 0, 0,
                 "[run] asks for GPUs, and those of this machine are not known: %s", err.msg);
    } else {
        gpu_needs_check(p, &list, DIAG_WARNING, &proof->diag);
    }
    gpu_list_release(&list);
}

/* What is reused rests on what the workers solve: without their answer nothing is matched. */
static int check_reuse(struct proof *proof, const struct proof_premises *x, struct err *err)
{
    const struct plan_program *p = x->program;
    if (p->reuse.receipt == NULL || !x->sound->tasks) {
        return 0;
    }
    if (!proof->described) {
        diag_add(&proof->diag, DIAG_NOTE, p->reuse.place.line, p->reuse.place.column,
                 "reuse: not checked, since no worker was asked (--no-run, or errors above)");
        return 0;
    }
    int rc = reuse_prove(p, proof->describe.json, &proof->diag, &proof->reuse, err);
    return rc == ERR_INVALID ? 0 : rc;
}

/* The proofs of truthtable/: all of them where the decision is sound, else what rests on sound
 * parts alone. */
static int prove_decision(struct proof *proof, const struct proof_premises *x, struct err *err)
{
    const struct plan_program *p = x->program;
    const cJSON *said = proof->described ? proof->describe.json : NULL;
    if (!x->sound->decision) {
        if (x->sound->conditions) {
            check_conditions(p, x->sound->forecasts, &proof->diag);
        }
        if (x->sound->table) {
            check_table_alone(p, &proof->diag);
        }
        return 0;
    }
    check_factors(p, &proof->diag);
    check_same_work(p, said, &proof->diag);
    open_reads_check(p, &proof->diag);
    check_floors(p, said, &proof->diag);
    int rc = check_run(p, said, &proof->report, &proof->diag, err);
    proof->has_report = rc == 0;
    if (rc != 0) {
        check_release(&proof->report);
    } else if (proof->reuse != NULL) {
        check_plan(&proof->report, said, proof->reuse);
    }
    return rc == ERR_INVALID ? 0 : rc;
}

/* All steps after loading, each where its premises hold. Errors of the program go to the
 * diagnostics; only failures of the machine, and the user's refusal, are returned. */
static int prove(struct proof *proof, const struct proof_premises *x, struct err *err)
{
    const bool no_run = x->trust == NULL;
    const size_t n_before = proof->diag.n_errors;
    if (x->sound->files) {
        program_check_files(x->program, &proof->diag);
    }
    const bool files_hold = x->sound->files && proof->diag.n_errors == n_before;
    int rc =
        !no_run && files_hold && x->sound->tasks && x->sound->run ? ask_workers(proof, x, err) : 0;
    if (rc != 0) {
        return rc;
    }
    if (x->sound->run) {
        check_pinned_gpu(proof, x->program);
    }
    if (!no_run && x->sound->run) { /* another executable lists them */
        check_gpus(proof, x->program);
    }
    /* with --no-run this becomes a note */
    if (x->sound->measures && x->sound->tasks && (no_run || proof->described)) {
        describe_check_items(x->program, no_run ? NULL : proof->describe.json, &proof->diag);
    }
    rc = check_reuse(proof, x, err);
    return rc == 0 ? prove_decision(proof, x, err) : rc;
}

/* A program with errors is proved as far as it goes, for its errors alone. */
int proof_run(const char *path, const struct trust_ask *trust, struct proof *out, struct err *err)
{
    struct program_sound sound;
    *out = (struct proof){0};
    diag_init(&out->diag, path);
    int rc = program_load_sound(path, &out->program, &sound, &out->diag, err);
    const bool is_faulty = rc != 0;
    if (out->program == NULL || (is_faulty && rc != ERR_INVALID)) {
        return rc;
    }
    const struct proof_premises x = {
        .program = out->program, .sound = &sound, .trust = trust, .is_faulty = is_faulty};
    rc = prove(out, &x, err);
    if (is_faulty) {
        proof_drop(out);
    }
    return rc == 0 ? diag_result(&out->diag, err) : rc;
}

cJSON *proof_json(const struct proof *proof)
{
    cJSON *answer = json_object();
    json_put_bool(answer, "ok", proof->program != NULL && proof->diag.n_errors == 0);
    json_put_string(answer, "program", proof->program ? proof->program->name : NULL);
    json_put(answer, "diagnostics", diag_json(&proof->diag));
    json_put(answer, "proof", proof->has_report ? check_json(&proof->report) : cJSON_CreateNull());
    return answer;
}
