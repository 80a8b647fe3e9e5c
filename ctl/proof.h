/*
 * What `check` and `lock` establish about a program before there are data: it loads, its files
 * exist, its workers describe it, its table is proved. Diagnostics of every step are collected; a
 * step whose premises are missing is skipped.
 */
#ifndef CTL_PROOF_H
#define CTL_PROOF_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/diag.h"
#include "base/err.h"
#include "prereg/lock/trust.h"
#include "prereg/program/program.h"
#include "prereg/task/describe.h"
#include "truthtable/prove/check.h"

/* The results of all steps; a step that was skipped leaves its part empty. */
struct proof {
    struct diag diag;
    struct plan_program *program; /* NULL when it does not load */
    cJSON *reuse;                 /* what a lock pins from an earlier receipt; NULL: nothing */
    struct describe describe;
    bool described; /* describe holds */
    struct check_report report;
    bool has_report; /* report holds */
};

/* 0 without an error in diag; ERR_INVALID with one; other codes when a file cannot be
 * read or the machine fails, ERR_REFUSED when what it executes may not run (prereg/lock/trust.h).
 * `trust` NULL: executes no worker; its `state` NULL: the user's own. Always valid to release. */
int proof_run(const char *path, const struct trust_ask *trust, struct proof *out,
              struct err *err) MUST_CHECK;
void proof_release(struct proof *proof);

/* {"ok","program","diagnostics":[…],"proof":{…}}; the caller deletes it. */
cJSON *proof_json(const struct proof *proof);

#endif
