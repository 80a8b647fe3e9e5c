/*
 * The file may be missing (instruments are computed after the verdict) or of an earlier root, and
 * is then as good as none. It is read by the one that answers, daemon or client: a member of the
 * readers' group cannot open the state folder.
 */
#include "prereg/program/verdict_tables.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"

/* The instruments beside the verdict; NULL: none that can be read. */
static cJSON *read_instruments(const cJSON *answer)
{
    const cJSON *verdict = json_member(answer, "path");
    struct err ignored = {0};
    cJSON *instruments = NULL;
    if (!cJSON_IsString(verdict)) {
        return NULL;
    }
    char *folder = path_folder(verdict->valuestring);
    char *path = path_join(folder, LAYOUT_INSTRUMENTS);
    if (json_read_file(path, LAYOUT_REPORT_MAX, &instruments, &ignored) != 0) {
        instruments = NULL;
    }
    free(path);
    free(folder);
    return instruments;
}

void verdict_tables_put(cJSON *answer)
{
    static const char *const tables[] = {"means", "ranks"};
    cJSON *instruments = read_instruments(answer);
    const cJSON *root = json_member(instruments, "root");
    const cJSON *own = json_member(json_member(answer, "verdict"), "root");
    const bool is_same = cJSON_IsString(root) && cJSON_IsString(own) &&
                         strcmp(root->valuestring, own->valuestring) == 0;
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        const cJSON *table = is_same ? json_member(instruments, tables[i]) : NULL;
        json_put(answer, tables[i], table == NULL ? cJSON_CreateNull() : json_copy(table));
    }
    cJSON_Delete(instruments);
}
