/* The files that export makes beside those that it copies; private to export. */
#ifndef CTL_RECEIPT_EXPORT_PARTS_H
#define CTL_RECEIPT_EXPORT_PARTS_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

/* The state of one export. */
struct exporting {
    const char *from; /* the program's folder */
    const char *to;   /* the receipt's, with the copied files in it */
    struct plan_program *program;
    struct lock *lock;
    bool imported;
    bool with_host;
    bool with_items;
};

/* Checks that the copies of the report are the files of its SHA256SUMS: ERR_LOCK. */
int export_check_report(const struct exporting *x, struct err *err) MUST_CHECK;

/* records.jsonl, environment.jsonl, apparatus/, coverage.json, VERIFY.md, statement.json and
 * SHA256SUMS. Everything is computed from the copies: a journal that grows meanwhile changes
 * nothing. */
int export_parts(const struct exporting *x, struct err *err) MUST_CHECK;

/* Copies the items that an accepted result names into items/, under the digest that it states;
 * `result_path` is the link to it. A result without items has nothing to copy. */
int export_items(const struct exporting *x, const char *result_path, const cJSON *result,
                 struct err *err) MUST_CHECK;

/*
 * Names of hosts in a receipt. Without --with-host every "host" of provenance.json becomes "host
 * 1", "host 2", in the order in which the attempts name them: whether two attempts ran on the same
 * machine stays visible. The files that follow from provenance.json (environment.jsonl, apparatus/)
 * are made after that.
 */

/* Rewrites the file at path; one that names no host keeps its bytes. */
int hosts_hide(const char *path, struct err *err) MUST_CHECK;

#endif
