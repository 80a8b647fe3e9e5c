/* Files and texts for the writers of formats. Every string that comes from a program, a worker or
 * another lab passes through one of the functions here, json_add_string() or escape_md(). */
#include "ctl/formats/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"

#define NAME_BYTES_MAX 200

int format_put(const struct format_output *out, const char *name, const struct strbuf *text,
               struct err *err)
{
    char *path = path_join(out->folder, name);
    char *folder = path_folder(path);
    int rc = dir_make(folder, 0755, err);
    int fd = rc == 0 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : -1;
    if (rc == 0 && fd < 0) {
        rc = err_set_errno(err, errno, "create %s", path);
    }
    if (rc == 0) {
        rc = file_write_all(fd, text->buf, text->len, err);
    }
    if (fd >= 0 && close(fd) != 0 && rc == 0) {
        rc = err_set_errno(err, errno, "write %s", path);
    }
    free(folder);
    free(path);
    return rc;
}

int format_make_folder(const struct format_output *out, const char *name, struct err *err)
{
    char *path = path_join(out->folder, name);
    int rc = dir_make(path, 0755, err);
    free(path);
    return rc;
}

int format_put_json(const struct format_output *out, const char *name, cJSON *value,
                    struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = json_pretty(value, &text, err);
    strbuf_addc(&text, '\n');
    rc = rc == 0 ? format_put(out, name, &text, err) : rc;
    strbuf_release(&text);
    cJSON_Delete(value);
    return rc;
}

void format_note(const struct format_output *out, const char *fmt, ...)
{
    char text[512];
    const cJSON *said = NULL;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    text_make_line(text);
    cJSON_ArrayForEach(said, out->notes)
    {
        if (strcmp(said->valuestring, text) == 0) {
            return;
        }
    }
    json_push_string(out->notes, text);
}

/* Printable in YAML without being a line break, a mark of byte order or no character at all. */
static bool yaml_shows(uint32_t c)
{
    return c >= 0x20 && c != 0x7f && !(c >= 0x80 && c <= 0xa0) && c != 0x2028 && c != 0x2029 &&
           c != 0xfeff && c != 0xfffe && c != 0xffff;
}

void yaml_add_string(struct strbuf *out, const char *text)
{
    size_t left = strlen(text);
    strbuf_addc(out, '"');
    while (left > 0) {
        uint32_t c = 0;
        const size_t n = text_utf8_next(text, left, &c);
        if (n == 0) {
            strbuf_adds(out, "\\ufffd");
        } else if (c == '"' || c == '\\') {
            strbuf_addf(out, "\\%c", (char)c);
        } else if (!yaml_shows(c)) {
            strbuf_addf(out, "\\u%04x", (unsigned)c);
        } else {
            strbuf_add(out, text, n);
        }
        text += n == 0 ? 1 : n;
        left -= n == 0 ? 1 : n;
    }
    strbuf_addc(out, '"');
}

void yaml_add_number(struct strbuf *out, double v)
{
    char number[JSON_NUMBER_MAX];
    json_number_text(v, number);
    const size_t digits = strcspn(number, "e");
    strbuf_add(out, number, digits);
    if (number[digits] == 'e' && memchr(number, '.', digits) == NULL) {
        strbuf_adds(out, ".0");
    }
    strbuf_adds(out, number + digits);
}

char *format_file_name(const char *text, const char *also)
{
    char *name = xstrndup(text, NAME_BYTES_MAX);
    bool same = strlen(text) <= NAME_BYTES_MAX && name[0] != '\0';
    for (char *c = name; *c != '\0'; c++) {
        const bool fits = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                          (*c >= '0' && *c <= '9') || *c == '_' || *c == '-' ||
                          strchr(also, *c) != NULL || (*c == '.' && c != name && c[1] != '\0');
        same = same && fits;
        *c = fits ? *c : '_';
    }
    if (!same) {
        char hex[DIGEST_HEX_SIZE];
        const struct digest d = digest_bytes(text, strlen(text));
        digest_hex(&d, hex);
        char *longer = xasprintf("%.*s-%.8s", NAME_BYTES_MAX - 9, name, hex);
        free(name);
        name = longer;
    }
    return name;
}

char *format_cell_name(const char *cell)
{
    return format_file_name(cell, "=,");
}
