/* Results files, logs of Inspect that are zip files among them: whatever is read has consistent
 * entries, and its groups can be looked at. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "truthtable/imported/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_file(struct imported_results *r, const uint8_t *data, size_t size, struct err *err)
{
    char path[64];
    int fd = -1;
    if (file_in_memory("log", data, size, &fd, err) != 0) {
        abort();
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int rc = results_read(r, path, err);
    (void)close(fd);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct imported_results r;
    struct err err = {0};
    int rc = size > 4 && memcmp(data, "PK\3\4", 4) == 0
                 ? read_file(&r, data, size, &err)
                 : results_parse(&r, (const char *)data, size, "r.json", &err);
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
