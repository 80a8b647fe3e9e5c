/*
 * A program's results in the formats of others (docs/export.md): written from a receipt that
 * verifies, so that anyone who has the receipt can write them, and nothing is written while scores
 * are sealed.
 */
#ifndef CTL_FORMATS_FORMAT_H
#define CTL_FORMATS_FORMAT_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/err.h"

/* What to write and where. All borrowed. */
struct format_spec {
    const char *format;         /* one of format_names */
    const char *receipt;        /* the folder of a receipt */
    const char *program_folder; /* that it was made of: for curves; NULL: none */
    const char *out;            /* the folder that the new one is put into */
};

/* What was written; to be released. */
struct format_made {
    char *folder; /* out/<name>-<digest8>-<format> */
    cJSON *notes; /* array of sentences: omissions, and why */
};

extern const char *const format_names[];
extern const size_t format_n_names;

/* ERR_USAGE names the format that is near; of an unknown name. */
int format_check_name(const char *name, struct err *err) MUST_CHECK;

/* Verifies the receipt (ERR_LOCK), then makes the folder, whole or not at all. ERR_EXISTS: it is
 * there. ERR_REFUSED: the receipt says nothing that the format could hold. */
int format_export(const struct format_spec *spec, struct format_made *made,
                  struct err *err) MUST_CHECK;
void format_made_release(struct format_made *made);

#endif
