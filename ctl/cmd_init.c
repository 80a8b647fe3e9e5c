#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/starter.h"

#define STARTER_NAME "\"starter\""

/* The folder's own name where it can be a program's name, else the starter's. */
static char *name_of(const char *folder)
{
    char *absolute = path_absolute(NULL, folder);
    size_t len = strlen(absolute);
    while (len > 1 &&
           (absolute[len - 1] == '/' || (absolute[len - 1] == '.' && absolute[len - 2] == '/'))) {
        absolute[--len] = '\0';
    }
    char *name = xstrdup(text_is_name(path_name(absolute)) ? path_name(absolute) : "starter");
    free(absolute);
    return name;
}

static int write_starter(const char *path, const char *folder, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    const char *start = (const char *)starter_text;
    const char *at = memmem(start, starter_len, STARTER_NAME, strlen(STARTER_NAME));
    assert(at != NULL);
    size_t before = (size_t)(at - start);
    char *name = name_of(folder);
    strbuf_add(&text, start, before);
    strbuf_addf(&text, "\"%s\"", name);
    strbuf_add(&text, at + strlen(STARTER_NAME), starter_len - before - strlen(STARTER_NAME));
    int rc = file_write_atomic(path, text.buf, text.len, 0644, err);
    free(name);
    strbuf_release(&text);
    return rc;
}

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
        rc = write_starter(path, folder, err);
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
