#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "ctl/ctl.h"
#include "ctl/starter.h"

int cmd_init(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    const char *folder = o->n_args > 0 ? o->args[0] : ".";
    int rc = dir_make(folder, 0777, err);
    if (rc != 0) {
        return rc;
    }
    char *path = path_join(folder, "grid.toml");
    if (file_kind_at(path) != FILE_ABSENT) {
        rc = err_set(err, ERR_EXISTS, "%s is there already; it stays as it is", path);
    } else {
        rc = file_write_atomic(path, starter_text, starter_len, 0644, err);
    }
    if (rc == 0) {
        printf("%s is written. Next:\n"
               "  cd %s\n"
               "  prereg-data demo --seed 1 --out data\n"
               "  preregctl check grid.toml\n"
               "  preregctl lock grid.toml\n"
               "  preregd submit grid.toml --wait\n",
               path, folder);
    }
    free(path);
    return rc;
}
