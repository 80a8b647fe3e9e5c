#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/templates.h"

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

/* What a template asks, from its first line: "# What it asks". */
static void print_list(void)
{
    for (size_t i = 1; i < n_template_files; i++) {
        const struct template_file *t = &template_files[i];
        const char *line = (const char *)t->text + strlen("# ");
        const char *end = memchr(line, '\n', t->len - strlen("# "));
        assert(end != NULL);
        printf("%-16s %.*s\n", t->name, (int)(end - line), line);
    }
}

/* NULL: the starter. */
static const struct template_file *find_template(const char *name, struct err *err)
{
    const char *known[16];
    assert(n_template_files <= ARRAY_LEN(known));
    for (size_t i = 1; i < n_template_files && name != NULL; i++) {
        if (strcmp(template_files[i].name, name) == 0) {
            return &template_files[i];
        }
        known[i - 1] = template_files[i].name;
    }
    if (name == NULL) {
        return &template_files[0];
    }
    const char *near = text_nearest(name, known, n_template_files - 1);
    (void)(near != NULL
               ? err_set(err, ERR_USAGE, "no template \"%s\"; did you mean %s?", name, near)
               : err_set(err, ERR_USAGE, "no template \"%s\" (see `preregctl init --list`)", name));
    return NULL;
}

static int write_template(const struct template_file *template, const char *path,
                          const char *folder, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    const char *start = (const char *)template->text;
    const char *at = memmem(start, template->len, STARTER_NAME, strlen(STARTER_NAME));
    assert(at != NULL);
    size_t before = (size_t)(at - start);
    char *name = name_of(folder);
    strbuf_add(&text, start, before);
    strbuf_addf(&text, "\"%s\"", name);
    strbuf_add(&text, at + strlen(STARTER_NAME), template->len - before - strlen(STARTER_NAME));
    int rc = file_write_atomic(path, text.buf, text.len, 0644, err);
    free(name);
    strbuf_release(&text);
    return rc;
}

int cmd_init(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    if (o->list) {
        print_list();
        return 0;
    }
    const char *folder = o->n_args > 0 ? o->args[0] : ".";
    const struct template_file *template = find_template(o->template_name, err);
    int rc = template == NULL ? err->code : dir_make(folder, 0777, err);
    if (rc != 0) {
        return rc;
    }
    char *path = path_join(folder, "grid.toml");
    if (file_kind_at(path) != FILE_ABSENT) {
        rc = err_set(err, ERR_EXISTS, "%s is there already; it stays as it is", path);
    } else {
        rc = write_template(template, path, folder, err);
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
