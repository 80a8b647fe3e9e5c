/* The programs that `preregctl init` writes: ctl/starter.toml and ctl/templates/NAME.toml,
 * compiled into the executable. The first line of each is a comment with the question it asks;
 * "starter" is replaced by the program's name. */
#ifndef CTL_TEMPLATES_H
#define CTL_TEMPLATES_H

#include <stddef.h>

/* One compiled-in text. */
struct template_file {
    const char *name; /* "holding_fixed"; "" for the starter */
    const unsigned char *text;
    size_t len;
};

extern const struct template_file template_files[]; /* the starter first */
extern const size_t n_template_files;

#endif
