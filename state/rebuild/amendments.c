/* Amendments that a crash cut short, before the program is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "prereg/amend/amend_heal.h"
#include "state/rebuild/internal.h"

/* The head that the journal tells of last; its chain is held against the rows later. False: it
 * cannot be read. */
static bool journal_head(const struct rebuilding *r, const char *root, char head[DIGEST_HEX_SIZE])
{
    static const char MARK[] = "\"event\":\"amended\"";
    struct err ignored;
    char *path = path_join(r->folder, "journal.jsonl");
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = 0;
    memcpy(head, root, DIGEST_HEX_SIZE);
    while (file != NULL && (n = getline(&line, &cap, file)) > 0 && line[n - 1] == '\n') {
        cJSON *row = NULL;
        const char *found = NULL;
        if (strstr(line, MARK) != NULL && json_parse(line, (size_t)n, &row, &ignored) == 0 &&
            json_get_string(json_member(row, "amendment"), "head", &found, &ignored) == 0) {
            (void)snprintf(head, DIGEST_HEX_SIZE, "%s", found);
        }
        cJSON_Delete(row);
    }
    bool read = file != NULL && ferror(file) == 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    free(line);
    free(path);
    return read;
}

void rebuild_heal_amendments(const struct rebuilding *r)
{
    struct lock *lock = NULL;
    struct err why;
    char head[DIGEST_HEX_SIZE];
    char *path = path_join(r->folder, "grid.toml.lock");
    if (lock_read(path, &lock, &why) == 0 && journal_head(r, lock->root, head) &&
        amendments_heal(r->folder, head, &why) != 0) {
        log_warn("%s: %s", r->id, why.msg);
    }
    lock_free(lock);
    free(path);
}
