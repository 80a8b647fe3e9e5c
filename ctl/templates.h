/* The programs that `preregctl init` writes: ctl/starter.toml and ctl/templates/, compiled into the
 * executable. A template is a grid.toml, directly followed by the files beside it that it needs.
 * The first line of each grid.toml is a comment with the question it asks; "starter" in it is
 * replaced by the program's name. */
#ifndef CTL_TEMPLATES_H
#define CTL_TEMPLATES_H

#include <stddef.h>

/* One compiled-in text. */
struct template_file {
    const char *name; /* of the template: "holding_fixed"; "" for the starter */
    const char *path; /* from the program's folder on: "grid.toml", "tasks/grammar.yaml" */
    const unsigned char *text;
    size_t len;
};

extern const struct template_file template_files[]; /* the starter first */
extern const size_t n_template_files;

#endif
