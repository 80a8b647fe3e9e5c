#include "truthtable/check.h"

#include "truthtable/check_parts.h"

int check_run(const struct program *p, const cJSON *describe, struct check_report *out,
              struct diag *diag, struct err *err)
{
    struct rules rules;
    *out = (struct check_report){.program = p};
    arena_init(&out->arena);
    int rc = rules_compile(p, &rules, diag, err);
    if (rc == 0) {
        check_table(out, diag);
        check_reach(out, &rules, diag);
        check_use(out, &rules, diag);
        check_measures(out, &rules);
        check_fixed(out, &rules, describe);
        check_plan(out, describe);
    }
    rules_release(&rules);
    return rc;
}

void check_release(struct check_report *r)
{
    arena_release(&r->arena);
    *r = (struct check_report){0};
}
