/* Replaces the names of hosts in a receipt's provenance.json by numbers. Called by export after the
 * files are copied and before anything is made of them. */
#include "ctl/receipt/export_parts.h"

#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/layout.h"

/* The names so far; a host's number is its index plus 1. */
struct hosts {
    char **names;
    size_t n;
    size_t cap;
};

/* The number of a host, from 1; a new name gets the next one. */
static size_t number_of(struct hosts *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++) {
        if (strcmp(h->names[i], name) == 0) {
            return i + 1;
        }
    }
    ARRAY_GROW(h->names, h->n, h->cap);
    h->names[h->n++] = xstrdup(name);
    return h->n;
}

/* Replaces the hosts in the attempts of every entry of the list. */
static void hide_in(struct hosts *h, const cJSON *list)
{
    const cJSON *entry = NULL;
    cJSON_ArrayForEach(entry, list)
    {
        cJSON *attempt = NULL;
        cJSON_ArrayForEach(attempt, json_member(entry, "attempts"))
        {
            const cJSON *host = json_member(attempt, "host");
            if (cJSON_IsString(host)) {
                char text[40];
                (void)snprintf(text, sizeof(text), "host %zu", number_of(h, host->valuestring));
                (void)cJSON_ReplaceItemInObjectCaseSensitive(attempt, "host",
                                                             cJSON_CreateString(text));
            }
        }
    }
}

/* Tasks first, then apparatus checks: the numbers follow that order. */
int hosts_hide(const char *path, struct err *err)
{
    cJSON *provenance = NULL;
    struct hosts h = {0};
    int rc = json_read_file(path, (size_t)RECEIPT_WHOLE_MAX, &provenance, err);
    if (rc == 0) {
        hide_in(&h, json_member(provenance, "tasks"));
        hide_in(&h, json_member(provenance, "apparatus"));
    }
    if (rc == 0 && h.n > 0) {
        rc = json_write_file(path, provenance, 0644, err);
    }
    for (size_t i = 0; i < h.n; i++) {
        free(h.names[i]);
    }
    free(h.names);
    cJSON_Delete(provenance);
    return rc;
}
