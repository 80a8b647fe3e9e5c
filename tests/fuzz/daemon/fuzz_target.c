/* What a stranger's request gives the page, one text on each line: target, Host, Origin, Cookie,
 * Authorization, Last-Event-ID and an address to listen at. What is accepted has the form that it
 * must have. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/http/guard.h"
#include "daemon/rpc/loopback.h"

#define TOKEN "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void read_target(const char *uri)
{
    struct guard_target t;
    struct err err;
    if (guard_target_parse(uri, &t, &err) == 0) {
        demand(uri[0] == '/' && strlen(uri) <= GUARD_URI_MAX && t.route < ROUTE_NR);
        demand(t.path[0] == '/' && text_is_plain(t.path));
        demand((t.route == ROUTE_REPORT) == (t.rest != NULL));
        const cJSON *p = NULL;
        cJSON_ArrayForEach(p, t.params)
        {
            demand(cJSON_IsNumber(p) || (cJSON_IsString(p) && text_is_plain(p->valuestring)));
        }
    }
    guard_target_release(&t);
}

static void read_headers(char *lines[7])
{
    char name[24];
    char value[GUARD_COOKIE_MAX + 1];
    uint64_t no = 0;
    struct loopback_address at;
    struct err err;
    guard_cookie_of(TOKEN, name, value);
    if (guard_host_is_local(lines[1])) {
        demand(strpbrk(lines[1], "/@\\ ,") == NULL);
    }
    if (guard_origin_is_local(lines[2])) {
        demand(strncasecmp(lines[2], "http", 4) == 0);
    }
    demand(!guard_has_cookie(lines[3], name, value) || strstr(lines[3], value) != NULL);
    demand(!guard_is_bearer(lines[4], TOKEN) || strstr(lines[4], TOKEN) != NULL);
    demand(!guard_event_id(lines[5], "e", &no) || strncmp(lines[5], "e-", 2) == 0);
    demand(loopback_parse(lines[6], &at, &err) != 0 || (at.port >= 0 && at.port <= 65535));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    char empty[1] = "";
    char *lines[7];
    char *rest = text;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        lines[i] = rest == NULL ? empty : strsep(&rest, "\n");
    }
    read_target(lines[0]);
    read_headers(lines);
    free(text);
    return 0;
}
