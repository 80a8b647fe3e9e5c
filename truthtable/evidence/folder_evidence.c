/*
 * Chooses where the evidence of a folder comes from: an imported program has records.json, an
 * executed one has result files and provenance.json. Verdict, report and instruments all read
 * evidence through this function, so they cannot disagree on the source.
 */
#include "truthtable/evidence/evidence.h"

#include <stdlib.h>

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

int folder_evidence(struct evidence *e, const char *folder, const cJSON *provenance,
                    struct err *err)
{
    if (imported_is_folder(folder)) {
        return read_records(e, folder, err);
    }
    const cJSON *ends = provenance == NULL ? NULL : json_member(provenance, "tasks");
    char *cells = path_join(folder, LAYOUT_CELLS);
    int rc = gather_evidence(e, cells, ends, err);
    free(cells);
    return rc;
}
