/* Writes and reads the file `unfit` of an attempt that a node did not begin. */
#include "daemon/shim/unfit.h"

#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/text.h"

void unfit_fill(struct unfit *u, const char *has)
{
    const char *node = getenv("SLURMD_NODENAME");
    text_copy_line(u->node, sizeof(u->node), node == NULL ? "" : node);
    text_copy_line(u->has, sizeof(u->has), has);
}

int unfit_write(const char *folder, const struct unfit *u, struct err *err)
{
    cJSON *o = json_object();
    char *path = path_join(folder, LAYOUT_UNFIT);
    json_put_int(o, "schema", 1);
    json_put_string(o, "node", u->node);
    json_put_string(o, "has", u->has);
    int rc = json_write_file(path, o, 0600, err);
    free(path);
    cJSON_Delete(o);
    return rc;
}

bool unfit_read(const char *folder, struct unfit *out)
{
    cJSON *o = NULL;
    struct err ignored;
    const char *node = NULL;
    const char *has = NULL;
    char *path = path_join(folder, LAYOUT_UNFIT);
    *out = (struct unfit){0};
    const bool good = json_read_file(path, LAYOUT_JOB_MAX, &o, &ignored) == 0 &&
                      json_get_string(o, "node", &node, &ignored) == 0 &&
                      json_get_string(o, "has", &has, &ignored) == 0;
    if (good) {
        text_copy_line(out->node, sizeof(out->node), node);
        text_copy_line(out->has, sizeof(out->has), has);
    }
    cJSON_Delete(o);
    free(path);
    return good;
}
