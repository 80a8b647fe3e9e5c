/*
 * The token and the port of a state folder, in files of their own (0600) beside the sockets. Both
 * are kept over restarts, so that open tabs and scrapers go on. A token file that is not one of
 * this user's own, or does not hold a token, is an error: a secret is not replaced unasked.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/http/internal.h"

static int make_token(struct http *h, const char *path, struct err *err)
{
    unsigned char bytes[32];
    char text[GUARD_TOKEN_SIZE + 1];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return err_set_errno(err, errno, "random bytes");
    }
    guard_write_token(bytes, text);
    text[GUARD_TOKEN_SIZE - 1] = '\n';
    const int rc = file_write_atomic(path, text, GUARD_TOKEN_SIZE, 0600, err);
    if (rc == 0) { /* else the old one holds */
        (void)snprintf(h->token, sizeof(h->token), "%.*s", GUARD_TOKEN_SIZE - 1, text);
    }
    return rc;
}

static int read_token(struct http *h, const char *path, struct err *err)
{
    struct stat st;
    struct strbuf text = STRBUF_INIT;
    int rc = file_lstat(path, &st, err);
    if (rc != 0) {
        return rc;
    }
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        return err_set(err, ERR_REFUSED,
                       "%.180s must be a file of your own that others cannot read: `chmod 600` it",
                       path);
    }
    rc = file_read(path, 256, &text, err);
    if (rc == 0) {
        text.buf[strcspn(text.buf, "\n")] = '\0';
        if (guard_is_token(text.buf)) {
            (void)snprintf(h->token, sizeof(h->token), "%s", text.buf);
        } else {
            rc = err_set(err, ERR_INVALID,
                         "%.180s does not hold a token: remove it, and another one is made", path);
        }
    }
    strbuf_release(&text);
    return rc;
}

int http_session_read(struct http *h, bool renew, struct err *err)
{
    char *path = path_join(h->shell->local, HTTP_SESSION_FILE);
    int rc = renew ? ERR_NOT_FOUND : read_token(h, path, err);
    if (rc == ERR_NOT_FOUND) {
        rc = make_token(h, path, err);
    }
    if (rc == 0) {
        guard_cookie_of(h->token, h->cookie_name, h->cookie_value);
    }
    free(path);
    return rc;
}

int http_last_port(const struct http *h)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    int64_t port = 0;
    char *path = path_join(h->shell->local, HTTP_PORT_FILE);
    if (file_read(path, 16, &text, &ignored) == 0) {
        text.buf[strcspn(text.buf, "\n")] = '\0';
        if (text_to_int(text.buf, 1, 65535, &port, &ignored) != 0) {
            port = 0;
        }
    }
    strbuf_release(&text);
    free(path);
    return (int)port;
}

/* A port that is not noted only costs a bookmark. */
void http_note_port(const struct http *h)
{
    struct err err;
    char text[16];
    if (http_last_port(h) == h->address.port) {
        return;
    }
    char *path = path_join(h->shell->local, HTTP_PORT_FILE);
    (void)snprintf(text, sizeof(text), "%d\n", h->address.port);
    if (file_write_atomic(path, text, strlen(text), 0600, &err) != 0) {
        log_warn("the page's port is not noted: %s", err.msg);
    }
    free(path);
}

cJSON *http_describe(const struct http *h)
{
    const bool v6 = strchr(h->address.host, ':') != NULL;
    struct strbuf url = STRBUF_INIT;
    cJSON *o = json_object();
    strbuf_addf(&url, "http://%s%s%s:%d/#token=%s", v6 ? "[" : "", h->address.host, v6 ? "]" : "",
                h->address.port, h->token);
    json_put_string(o, "url", url.buf);
    json_put_string(o, "host", h->address.host);
    json_put_int(o, "port", h->address.port);
    json_put_string(o, "socket", h->local.path);
    json_put_string(o, "token", h->token);
    strbuf_release(&url);
    return o;
}
