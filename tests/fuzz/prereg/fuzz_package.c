/* One text as each file of a Python environment. A line of a RECORD that is written again is read
 * as the same; a value has no blank; a folder is a line of its text; a path that stays in an
 * environment stays in a deeper one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/xalloc.h"
#include "prereg/lock/package_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void add_hash(struct strbuf *out, const struct digest *d)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (size_t bit = 0; bit < 256; bit += 6) {
        unsigned value = 0;
        for (size_t i = bit; i < bit + 6; i++) {
            unsigned one = i < 256 ? (d->bytes[i / 8] >> (7 - i % 8)) & 1U : 0;
            value = value << 1U | one;
        }
        strbuf_addc(out, digits[value]);
    }
}

/* As Python's csv writes it, always quoted. */
static void check_again(const struct record_entry *entry)
{
    struct strbuf line = STRBUF_INIT;
    struct record_entry twice;
    strbuf_addc(&line, '"');
    for (const char *at = entry->path; *at != '\0'; at++) {
        strbuf_adds(&line, *at == '"' ? "\"\"" : (const char[]){*at, '\0'});
    }
    strbuf_adds(&line, "\",");
    if (entry->has_digest) {
        strbuf_adds(&line, "sha256=");
        add_hash(&line, &entry->digest);
    }
    strbuf_adds(&line, ",12");
    must(record_entry_read(line.buf, line.len, &twice));
    must(strcmp(twice.path, entry->path) == 0 && twice.has_digest == entry->has_digest);
    must(!entry->has_digest || digest_equal(&twice.digest, &entry->digest));
    free(twice.path);
    strbuf_release(&line);
}

static void check_record(const char *text, size_t size)
{
    for (const char *line = text; line < text + size;) {
        const char *end = memchr(line, '\n', (size_t)(text + size - line));
        end = end == NULL ? text + size : end;
        struct record_entry entry;
        if (record_entry_read(line, (size_t)(end - line), &entry)) {
            must(package_path_stays_in(entry.path, 3) || !package_path_stays_in(entry.path, 0));
            (void)package_path_is_cache(entry.path);
            check_again(&entry);
            free(entry.path);
        }
        line = end + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const keys[] = {"include-system-site-packages", "version", "version_info"};
    char *text = xmalloc(size + 1); /* with its NULs: a file may have them */
    memcpy(text, data, size);
    text[size] = '\0';
    check_record(text, size);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char *value = pyvenv_setting(text, keys[i]);
        must(value == NULL || strpbrk(value, " \t\r\n") == NULL);
        free(value);
    }
    size_t n = 0;
    const char *folder = pth_folder(text, &n);
    must(folder == NULL || (n > 0 && folder >= text && folder + n <= text + strlen(text) &&
                            memchr(folder, '\n', n) == NULL));
    free(text);
    return 0;
}
