#include "ctl/load.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

int load_program(const char *path, bool quiet, struct diag *diag, struct program **out,
                 struct err *err)
{
    int rc = program_load(path, out, diag, err);
    if (!quiet) {
        diag_print(diag, stderr);
    }
    return rc;
}

cJSON *load_diag_json(const struct diag *diag)
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

int load_lock(const struct program *p, struct lock **out, struct err *err)
{
    *out = NULL;
    char *path = lock_path_of(p->path);
    int rc = lock_read(path, out, err);
    free(path);
    if (rc == ERR_NOT_FOUND) {
        err_clear(err);
        return 0;
    }
    rc = rc == 0 ? lock_verify(p, *out, LOCK_PLAN, NULL, NULL, err) : rc;
    if (rc != 0) {
        lock_free(*out);
        *out = NULL;
    }
    return rc;
}
