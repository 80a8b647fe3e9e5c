/* Line by line, without a copy of the text. RECORD is CSV as pip writes it: only a path can be
 * quoted. */
#include "prereg/lock/package_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/xalloc.h"

#define HASH_CHARS 43 /* a SHA-256 in base64 without its padding */

char *pyvenv_setting(const char *text, const char *key)
{
    char *found = NULL;
    for (const char *line = text; *line != '\0';) {
        const char *end = strchrnul(line, '\n');
        const char *equals = memchr(line, '=', (size_t)(end - line));
        size_t n = equals == NULL ? 0 : (size_t)(equals - line);
        while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t')) {
            n--;
        }
        if (n == strlen(key) && strncasecmp(line, key, n) == 0) {
            const char *value = equals + 1 + strspn(equals + 1, " \t");
            free(found);
            found = xstrndup(value, strcspn(value, " \t\r\n"));
        }
        line = *end == '\0' ? end : end + 1;
    }
    return found;
}

const char *pth_folder(const char *text, size_t *n)
{
    for (const char *line = text; *line != '\0';) {
        *n = strcspn(line, "\r\n"); /* both end a line for Python */
        bool code = strncmp(line, "import ", 7) == 0 || strncmp(line, "import\t", 7) == 0;
        if (strspn(line, " \t") < *n && line[0] != '#' && !code) {
            return line;
        }
        line += *n + (line[*n] != '\0');
    }
    return NULL;
}

/* Reads a SHA-256 in base64 with - and _. False when it is not one. */
static bool read_hash(const char *text, size_t n, struct digest *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned bits = 0;
    unsigned held = 0;
    size_t at = 0;
    for (size_t i = 0; n == HASH_CHARS && i < n; i++) {
        const char *digit = text[i] == '\0' ? NULL : strchr(digits, text[i]);
        if (digit == NULL) {
            return false;
        }
        held = (held << 6U) | (unsigned)(digit - digits);
        bits += 6;
        if (bits >= 8 && at < sizeof(out->bytes)) {
            bits -= 8;
            out->bytes[at++] = (unsigned char)(held >> bits);
            held &= (1U << bits) - 1;
        }
    }
    return at == sizeof(out->bytes);
}

/* A path as it is, or in quotes: "a ""b"" c". */
static char *read_path(const char *text, size_t n)
{
    if (n < 2 || text[0] != '"') {
        return xstrndup(text, n);
    }
    struct strbuf path = STRBUF_INIT;
    for (size_t i = 1; i + 1 < n; i++) {
        strbuf_addc(&path, text[i]);
        i += text[i] == '"' ? 1 : 0;
    }
    return strbuf_detach(&path);
}

bool record_entry_read(const char *line, size_t n, struct record_entry *out)
{
    static const char prefix[] = "sha256=";
    const size_t n_prefix = sizeof(prefix) - 1;
    *out = (struct record_entry){0};
    if (n == 0) {
        out->path = xstrdup("");
        return true;
    }
    const char *last = memrchr(line, ',', n);
    const char *first = last == NULL ? NULL : memrchr(line, ',', (size_t)(last - line));
    if (first == NULL) {
        return false;
    }
    const size_t n_hash = (size_t)(last - first - 1);
    out->has_digest = n_hash > 0;
    if (n_hash > 0 && (n_hash <= n_prefix || strncmp(first + 1, prefix, n_prefix) != 0 ||
                       !read_hash(first + 1 + n_prefix, n_hash - n_prefix, &out->digest))) {
        return false;
    }
    out->path = read_path(line, (size_t)(first - line));
    return true;
}

bool package_path_stays_in(const char *path, int depth)
{
    for (const char *at = path; *at != '\0';) {
        const size_t n = strcspn(at, "/");
        const bool up = n == 2 && strncmp(at, "..", 2) == 0;
        const bool here = n == 0 || (n == 1 && *at == '.');
        depth += up ? -1 : here ? 0 : 1;
        if (depth < 0) {
            return false;
        }
        at += n + (at[n] == '/');
    }
    return path[0] != '/';
}

bool package_path_is_cache(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".pyc") == 0 && strstr(path, "__pycache__/") != NULL;
}
