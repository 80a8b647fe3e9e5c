/*
 * What the writers of formats share: files of the folder that is being made, texts of other
 * formats, and the list of omissions that the user sees.
 */
#ifndef CTL_FORMATS_OUTPUT_H
#define CTL_FORMATS_OUTPUT_H

#include <cjson/cJSON.h>

#include "base/strbuf.h"

struct format_output {
    const char *folder; /* the new one; a writer makes subfolders as it needs them */
    cJSON *notes;       /* array of sentences: omissions, and why */
};

/* Writes a file of the folder, whose subfolders are made; `name` is a path inside. It is not synced
 * one by one: an export can be repeated. */
int format_put(const struct format_output *out, const char *name, const struct strbuf *text,
               struct err *err) MUST_CHECK;
/* Makes a subfolder, for readers that want one even where it is empty. */
int format_make_folder(const struct format_output *out, const char *name,
                       struct err *err) MUST_CHECK;
/* format_put() of a JSON value, which it deletes. */
int format_put_json(const struct format_output *out, const char *name, cJSON *value,
                    struct err *err) MUST_CHECK;
/* Adds a sentence, once. */
void format_note(const struct format_output *out, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A double-quoted YAML scalar of any UTF-8 text: every character that a reader of YAML 1.1 or 1.2
 * could take for anything else is escaped. */
void yaml_add_string(struct strbuf *out, const char *text);
/* A float of YAML 1.1, too: "1e-7" is a string there, "1.0e-7" is not. */
void yaml_add_number(struct strbuf *out, double v);

/* A name as one component of a path that every file system takes: letters, digits, "_", "-", those
 * of `also`, and inside "." stay; each other byte is "_"; 200 bytes at most. A name that is not
 * itself afterwards ends in "-" and 8 digits of its SHA-256, so that two stay two. The caller frees
 * it. */
char *format_file_name(const char *text, const char *also) __attribute__((returns_nonnull));
/* The same for a folder or file of a cell. */
char *format_cell_name(const char *cell) __attribute__((returns_nonnull));

#endif
