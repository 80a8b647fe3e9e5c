/*
 * The rate depends on the processor and on how the workers compute, so it is kept under the
 * processor's name and the contract's version: a state folder may be shared by several machines,
 * and outlives a version. Every failure is a rate of 0, which leaves an estimate out.
 */
#include "ctl/proof.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/machine/machine.h"
#include "base/machine/proc.h"
#include "base/math/contract.h"
#include "base/xalloc.h"
#include "ctl/load.h"

#define BENCH_LIMIT_MS  ((int64_t)30000)
#define BENCH_OUT_BYTES ((size_t)1 << 20)
#define RATES_BYTES_MAX ((size_t)1 << 20)
#define RATE_MAX        1e15 /* no thread does more: a file that says so was not written here */

/* Only our own workers report costs in FLOPs. */
static bool needs_rate(const struct plan_program *p)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        const char *name = p->stages[i].command[0];
        if (strcmp(name, "prereg-train") == 0 || strcmp(name, "prereg-eval") == 0) {
            return true;
        }
    }
    return false;
}

/* A plausible rate; 0 means that none could be measured. */
static bool is_rate(double v)
{
    return isfinite(v) && v >= 0 && v <= RATE_MAX;
}

/* Runs the trainer's benchmark on one thread: a few steps of a small model, in processor time,
 * which takes some tenths of a second. 0 when it fails. */
static double measure(void)
{
    static const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
                                      "OPENBLAS_NUM_THREADS=1", NULL};
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    struct strbuf self = STRBUF_INIT;
    struct err err;
    cJSON *answer = NULL;
    double gflops = 0;
    if (path_of_self(&self, &err) == 0) {
        char *trainer = path_join(self.buf, "prereg-train");
        /* the trainer of this installation, never one from $PATH */
        const char *const argv[] = {trainer, "--bench", "demo", "--steps", "3", "--json", NULL};
        const struct proc_spec spec = {.argv = argv,
                                       .env = env,
                                       .timeout_ms = BENCH_LIMIT_MS,
                                       .max_out_bytes = BENCH_OUT_BYTES};
        if (proc_run(&spec, &r, &err) == 0 && r.code == 0 &&
            json_parse(r.out.buf, r.out.len, &answer, &err) == 0 &&
            json_opt_number(answer, "gflops", &gflops, &err) != 0) {
            gflops = 0;
        }
        free(trainer);
    }
    cJSON_Delete(answer);
    proc_result_release(&r);
    strbuf_release(&self);
    return is_rate(gflops * 1e9) ? gflops * 1e9 : 0;
}

/* Stores the rate. A 0 is stored, too, so that a failing benchmark is not repeated at every
 * check. */
static void keep(const char *path, cJSON *rates, const char *key, double rate)
{
    struct err ignored;
    char *folder = path_folder(path);
    cJSON_DeleteItemFromObjectCaseSensitive(rates, key);
    json_put_number(rates, key, rate);
    /* on failure it is measured again the next time */
    if (dir_make(folder, 0700, &ignored) == 0) {
        (void)!json_write_file(path, rates, 0600, &ignored);
    }
    free(folder);
}

/* A rates file that cannot be read is treated as empty. */
double machine_rate(const char *named, const struct plan_program *p)
{
    char cpu[256];
    struct strbuf key = STRBUF_INIT;
    char *state = NULL;
    cJSON *rates = NULL;
    struct err err;
    double rate = 0;
    if (!needs_rate(p) || load_state_folder(named, &state, &err) != 0) {
        return 0;
    }
    char *path = path_join(state, LAYOUT_MACHINE_RATES);
    machine_cpu(cpu, sizeof(cpu));
    strbuf_addf(&key, "%s, contract %s", cpu, CONTRACT_VERSION_TEXT);
    if (json_read_file(path, RATES_BYTES_MAX, &rates, &err) != 0 || !cJSON_IsObject(rates)) {
        cJSON_Delete(rates);
        rates = json_object();
    }
    const cJSON *known = json_member(rates, key.buf);
    if (cJSON_IsNumber(known) && is_rate(known->valuedouble)) {
        rate = known->valuedouble;
    } else {
        rate = measure();
        keep(path, rates, key.buf, rate);
    }
    cJSON_Delete(rates);
    strbuf_release(&key);
    free(path);
    free(state);
    return rate;
}
