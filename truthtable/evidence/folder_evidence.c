/*
 * Chooses where the evidence of a folder comes from: an imported program has records.json, an
 * executed one has result files and provenance.json. Verdict, report and instruments all read
 * evidence through this function, so they cannot disagree on the source.
 */
#include "truthtable/evidence/evidence.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "prereg/lock/imported.h"
#include "truthtable/evidence/linked_results.h"

/* The records of an imported program, limited to LAYOUT_RECORDS_MAX. */
static int read_records(struct evidence *e, const char *folder, struct err *err)
{
    char *path = path_join(folder, LAYOUT_RECORDS);
    int rc = evidence_read_file(e, path, LAYOUT_RECORDS_MAX, err);
    free(path);
    return rc;
}

static enum task_end end_of(const char *name)
{
    return strcmp(name, "done") == 0        ? TASK_END_DONE
           : strcmp(name, "blocked") == 0   ? TASK_END_BLOCKED
           : strcmp(name, "never_run") == 0 ? TASK_END_NEVER_RUN
                                            : TASK_END_PENDING;
}

/* How the apparatus checks ended. Earlier versions did not write it: nothing is known then. */
static void read_checks(struct evidence *e, const cJSON *list)
{
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, list)
    {
        struct err ignored;
        const char *name = NULL;
        const char *end = NULL;
        const cJSON *cause = json_member(o, "cause");
        size_t i = json_get_string(o, "name", &name, &ignored) == 0
                       ? program_find_apparatus(e->program, name)
                       : INDEX_NONE;
        if (i != INDEX_NONE && json_get_string(o, "end", &end, &ignored) == 0) {
            evidence_set_check(e, i, end_of(end),
                               cJSON_IsString(cause) ? cause->valuestring : NULL);
        }
    }
}

int folder_evidence(struct evidence *e, const char *folder, const cJSON *provenance,
                    struct err *err)
{
    if (imported_is_folder(folder)) {
        return read_records(e, folder, err);
    }
    const cJSON *ends = provenance == NULL ? NULL : json_member(provenance, "tasks");
    char *cells = path_join(folder, LAYOUT_CELLS);
    int rc = gather_evidence(e, cells, ends, err);
    read_checks(e, json_member(provenance, "apparatus"));
    free(cells);
    return rc;
}
