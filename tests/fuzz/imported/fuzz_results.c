/* Results files: whatever is read has consistent entries, and its groups can be looked at. */
#include <stdint.h>
#include <stdlib.h>

#include "truthtable/imported/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct imported_results r;
    struct err err = {0};
    int rc = results_parse(&r, (const char *)data, size, "r.json", &err);
    if (rc != 0 && err.code != rc) {
        abort();
    }
    for (size_t i = 0; rc == 0 && i < r.n_entries; i++) {
        const struct results_entry *e = &r.entries[i];
        const char *how = NULL;
        struct err ignored;
        if (results_find(&r, e->task) != e) {
            abort();
        }
        for (size_t m = 0; m < e->n_metrics; m++) {
            if (e->metrics[m].name == NULL || e->metrics[m].filter == NULL) {
                abort();
            }
        }
        if (e->n_members > 0 && results_check_group(&r, e, &how, &ignored) == 0 && how == NULL) {
            abort();
        }
    }
    results_release(&r);
    return 0;
}
