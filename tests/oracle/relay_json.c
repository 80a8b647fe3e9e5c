/* Lays each line of standard input, a JSON text, out as Python would: relay_json line|indent. A NUL
 * ends each text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/pyjson.h"

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t cap = 0;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    ssize_t len;
    int rc = argc == 2 ? 0 : 64;
    while (rc == 0 && (len = getline(&line, &cap, stdin)) > 0) {
        struct pyjson w;
        strbuf_clear(&text);
        pyjson_init(&w, &text, strcmp(argv[1], "indent") == 0 ? 2 : 0);
        rc = pyjson_text(&w, line, (size_t)len, &err);
        (void)fwrite(text.buf, 1, text.len + 1, stdout);
    }
    if (err.code != 0)
        fprintf(stderr, "relay_json: %s\n", err.msg);
    free(line);
    strbuf_release(&text);
    return rc == 0 ? 0 : 1;
}
