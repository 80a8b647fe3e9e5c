/*
 * The order of the steps: load, files, trust, workers, then the proofs of truthtable/. Workers run
 * only when nothing before was wrong; the proofs run in any case, so that a user sees all errors at
 * once.
 */
#include "ctl/proof.h"

#include <stdlib.h>

#include "base/json.h"
#include "ctl/load.h"
#include "ctl/machine_rate.h"
#include "prereg/program/open_reads.h"

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
 * remembered. */
static int may_run(const struct trust_ask *trust, const struct program *p, struct err *err)
{
    struct err nowhere;
    char *state = NULL;
    bool found = load_state_folder(trust->state, &state, &nowhere) == 0;
    const struct trust_ask ask = {
        .state = found ? state : NULL, .run = trust->run, .all = trust->all};
    int rc = trust_commands(&ask, p, err);
    free(state);
    return rc;
}

/* All steps after loading. Errors of the program go to the diagnostics; only failures of the
 * machine, and the user's refusal, are returned. */
static int prove(struct proof *proof, const struct trust_ask *trust, struct err *err)
{
    const bool no_run = trust == NULL;
    const struct program *p = proof->program;
    program_check_files(p, &proof->diag);
    if (!no_run && proof->diag.n_errors == 0) {
        int rc = may_run(trust, p, err);
        if (rc != 0) {
            return rc;
        }
        const struct describe_how how = {.flops_per_second = machine_rate(trust->state, p)};
        rc = describe_run(p, &how, &proof->describe, &proof->diag, err);
        proof->described = true;
        if (rc != 0) {
            return err_wrap(err, "ask the workers");
        }
        describe_check_metrics(p, proof->describe.json, &proof->diag);
        describe_check_memory(p, proof->describe.json, 0, &proof->diag);
    }
    /* with --no-run this becomes a note */
    if (no_run || proof->described) {
        describe_check_items(p, no_run ? NULL : proof->describe.json, &proof->diag);
    }
    check_factors(p, &proof->diag);
    open_reads_check(p, &proof->diag);
    check_floors(p, proof->described ? proof->describe.json : NULL, &proof->diag);
    const cJSON *said = proof->described ? proof->describe.json : NULL;
    int rc = check_run(p, said, &proof->report, &proof->diag, err);
    proof->has_report = rc == 0;
    if (rc != 0) {
        check_release(&proof->report);
    }
    return rc == ERR_INVALID ? 0 : rc;
}

int proof_run(const char *path, const struct trust_ask *trust, struct proof *out, struct err *err)
{
    *out = (struct proof){0};
    diag_init(&out->diag, path);
    int rc = program_load(path, &out->program, &out->diag, err);
    if (rc != 0) {
        return rc;
    }
    rc = prove(out, trust, err);
    return rc == 0 ? diag_result(&out->diag, err) : rc;
}

void proof_release(struct proof *proof)
{
    if (proof->has_report) {
        check_release(&proof->report);
    }
    if (proof->described) {
        describe_release(&proof->describe);
    }
    program_free(proof->program);
    diag_release(&proof->diag);
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
