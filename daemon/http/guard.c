/*
 * Who may ask: names of this machine, tokens and cookies. Names are compared without regard to
 * case, as DNS does; a host with anything that is not a letter, digit, dot or hyphen is refused, so
 * that no second name hides in it.
 */
#include "daemon/http/guard.h"

#include <string.h>
#include <strings.h>

#include "base/files/digest.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/rpc/loopback.h"

#define HOST_MAX ((size_t)255)

/* ---- hosts ---- */

/* "" or ":" and a port. */
static bool is_port(const char *text)
{
    int64_t port = 0;
    struct err ignored;
    if (text[0] == '\0') {
        return true;
    }
    return text[0] == ':' && text[1] >= '0' && text[1] <= '9' && strlen(text) <= 6 &&
           text_to_int(text + 1, 0, 65535, &port, &ignored) == 0;
}

static bool is_localhost(const char *name)
{
    static const char suffix[] = "localhost";
    const size_t n = strlen(name);
    const size_t tail = sizeof(suffix) - 1;
    return n >= tail && strcasecmp(name + n - tail, suffix) == 0 &&
           (n == tail || (n > tail + 1 && name[n - tail - 1] == '.' && name[0] != '.'));
}

bool guard_host_is_local(const char *host)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
    if (strncmp(host, "[::1]", 5) == 0) {
        return is_port(host + 5);
    }
    const size_t n = strspn(host, letters);
    if (n == 0 || n > HOST_MAX || !is_port(host + n)) {
        return false;
    }
    char *name = xstrndup(host, n);
    const bool local = loopback_is_v4(name) || is_localhost(name);
    free(name);
    return local;
}

bool guard_origin_is_local(const char *origin)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        const size_t n = strlen(schemes[i]);
        if (strncasecmp(origin, schemes[i], n) == 0) {
            return guard_host_is_local(origin + n);
        }
    }
    return false; /* "null" is the origin of pages that came from nowhere */
}

/* ---- secrets ---- */

bool guard_same_secret(const char *given, const char *known)
{
    const size_t n = strlen(known);
    const size_t n_given = strlen(given);
    unsigned char differs = n_given != n;
    for (size_t i = 0; i < n; i++) {
        const char c = i < n_given ? given[i] : '\0';
        differs = (unsigned char)(differs | (unsigned char)(c ^ known[i]));
    }
    return differs == 0 && n > 0;
}

bool guard_is_bearer(const char *header, const char *token)
{
    static const char scheme[] = "Bearer ";
    return strncasecmp(header, scheme, sizeof(scheme) - 1) == 0 &&
           guard_same_secret(header + sizeof(scheme) - 1, token);
}

/* Other daemons and other programs of this machine have cookies here, too: one that is longer than
 * ours is skipped. */
bool guard_has_cookie(const char *header, const char *name, const char *value)
{
    const size_t n_name = strlen(name);
    bool found = false;
    for (const char *at = header; *at != '\0';) {
        at += strspn(at, " \t;");
        const size_t n = strcspn(at, ";");
        if (n > n_name && n - n_name - 1 <= GUARD_COOKIE_MAX && strncmp(at, name, n_name) == 0 &&
            at[n_name] == '=') {
            char *given = xstrndup(at + n_name + 1, n - n_name - 1);
            found = guard_same_secret(given, value) || found;
            free(given);
        }
        at += n;
    }
    return found;
}

static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

bool guard_is_token(const char *text)
{
    return strlen(text) == GUARD_TOKEN_SIZE - 1 && text[strspn(text, base64url)] == '\0';
}

void guard_write_token(const unsigned char bytes[32], char out[GUARD_TOKEN_SIZE])
{
    size_t n = 0;
    for (size_t bit = 0; bit < (size_t)32 * 8; bit += 6) {
        const size_t at = bit / 8;
        const unsigned pair = ((unsigned)bytes[at] << 8) | (at + 1 < 32 ? bytes[at + 1] : 0u);
        out[n++] = base64url[(pair >> (10 - bit % 8)) & 63u];
    }
    out[n] = '\0';
}

/* Two digests of the token under two labels: neither tells the token, nor the other. */
void guard_cookie_of(const char *token, char name[24], char value[GUARD_COOKIE_MAX + 1])
{
    char hex[DIGEST_HEX_SIZE];
    struct digest_stream s;
    digest_start(&s);
    digest_add(&s, "preregd cookie name ", 20);
    digest_add(&s, token, strlen(token));
    struct digest d = digest_finish(&s);
    digest_hex(&d, hex);
    (void)snprintf(name, 24, "preregd-%.8s", hex);
    digest_start(&s);
    digest_add(&s, "preregd cookie value ", 21);
    digest_add(&s, token, strlen(token));
    d = digest_finish(&s);
    digest_hex(&d, hex);
    (void)snprintf(value, GUARD_COOKIE_MAX + 1, "%.64s", hex);
}

bool guard_event_id(const char *text, const char *epoch, uint64_t *out)
{
    const size_t n = strlen(epoch);
    int64_t value = 0;
    struct err ignored;
    if (strncmp(text, epoch, n) != 0 || text[n] != '-' || text[n + 1] < '0' || text[n + 1] > '9' ||
        text_to_int(text + n + 1, 0, INT64_MAX, &value, &ignored) != 0) {
        return false;
    }
    *out = (uint64_t)value;
    return true;
}
