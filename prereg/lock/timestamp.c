/*
 * Three runs of openssl ts for a check: extract the token from the response, print the token to
 * read time and authority, verify the response against the file's digest at that time. The response
 * reaches openssl at /dev/fd/3, from memory, so that all three runs see the same bytes.
 */
#include "prereg/lock/timestamp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"

#define TIMEOUT_MS 30000

/* One run of openssl; `input` is at /dev/fd/3, NULL: nothing is. What it prints is outside text. */
static int openssl_run(const char *const *argv, const struct strbuf *input,
                       struct proc_result *result, struct err *err)
{
    const char *path = getenv("PATH");
    char *path_env = xasprintf("PATH=%s", path == NULL ? "/usr/bin:/bin" : path);
    const char *const env[] = {path_env, "LC_ALL=C", NULL};
    int fd3 = -1;
    *result = (struct proc_result){.out = STRBUF_INIT, .err = STRBUF_INIT};
    int rc = input == NULL ? 0 : file_in_memory("preregd", input->buf, input->len, &fd3, err);
    if (rc == 0) {
        const struct proc_spec spec = {.argv = argv,
                                       .env = env,
                                       .timeout_ms = TIMEOUT_MS,
                                       .max_out_bytes = LAYOUT_TSR_MAX,
                                       .place = PROC_NO_TERMINAL,
                                       .fd3 = fd3 < 0 ? 0 : fd3};
        rc = proc_run(&spec, result, err);
        if (rc == ERR_NOT_FOUND) {
            rc = err_set(err, ERR_NOT_FOUND, "openssl is not in PATH (Debian: openssl)");
        }
    }
    if (fd3 >= 0) {
        (void)close(fd3);
    }
    free(path_env);
    return rc;
}

static int digest_of(const char *path, char hex[DIGEST_HEX_SIZE], struct err *err)
{
    struct digest d;
    int rc = digest_file(path, &d, NULL, err);
    if (rc == 0) {
        digest_hex(&d, hex);
    }
    return rc;
}

int timestamp_request(const char *of_path, const char *tsq_path, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    int rc = digest_of(of_path, hex, err);
    if (rc != 0) {
        return rc;
    }
    const char *const argv[] = {"openssl", "ts",      "-query", "-digest",
                                hex,       "-sha256", "-cert",  NULL};
    struct proc_result r;
    rc = openssl_run(argv, NULL, &r, err);
    if (rc == 0 && (r.code != 0 || r.out.len == 0)) {
        rc = err_set(err, ERR_OTHER, "openssl ts -query ended with %d", r.code);
    }
    if (rc == 0) {
        rc = file_write_atomic(tsq_path, r.out.buf, r.out.len, 0644, err);
    }
    proc_result_release(&r);
    return rc;
}

/* The value of "KEY: value" at a line's beginning, to its end; heap, NULL when there is none. */
static char *value_of(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += line[0] == '\n' ? 1 : 0;
        if (strncmp(line, key, len) == 0) {
            return xstrndup(line + len, strcspn(line + len, "\r\n"));
        }
    }
    return NULL;
}

/* "Nov 21 12:42:55 2026 GMT", perhaps with a fraction of the second, which is dropped. */
static bool parse_time(const char *text, struct timestamp_check *out, time_t *seconds)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%b %d %H:%M:%S", &tm);
    if (rest != NULL && rest[0] == '.') {
        rest += 1 + strspn(rest + 1, "0123456789");
    }
    rest = rest == NULL ? NULL : strptime(rest, " %Y GMT", &tm);
    if (rest == NULL || rest[0] != '\0' || tm.tm_year < 70) {
        return false;
    }
    *seconds = timegm(&tm);
    return strftime(out->time, sizeof(out->time), "%Y-%m-%dT%H:%M:%SZ", &tm) > 0;
}

/* Reads time and authority from the token inside a response. Only the token is signed: the
 * status text around it could contain anything, so the token is extracted before it is printed. */
static int read_token(const struct strbuf *response, struct timestamp_check *out, time_t *seconds,
                      struct err *err)
{
    static const char *const take[] = {"openssl",   "ts",         "-reply", "-in",
                                       "/dev/fd/3", "-token_out", NULL};
    static const char *const print[] = {"openssl", "ts",        "-reply", "-token_in",
                                        "-in",     "/dev/fd/3", "-text",  NULL};
    struct proc_result token;
    struct proc_result said = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    int rc = openssl_run(take, response, &token, err);
    if (rc == 0 && token.code == 0 && token.out.len > 0) {
        rc = openssl_run(print, &token.out, &said, err);
    }
    char *hash = value_of(said.out.buf, "Hash Algorithm: ");
    char *stamp = value_of(said.out.buf, "Time stamp: ");
    char *authority = value_of(said.out.buf, "TSA: ");
    if (rc == 0 && (hash == NULL || stamp == NULL || !parse_time(stamp, out, seconds))) {
        rc = err_set(err, ERR_LOCK, "it is not a response with a time stamp");
    } else if (rc == 0 && strcmp(hash, "sha256") != 0) {
        rc = err_set(err, ERR_LOCK, "it stamps a digest by %.20s, not by sha256", hash);
    }
    if (rc == 0 && authority != NULL && strcmp(authority, "unspecified") != 0) {
        out->authority = authority;
        authority = NULL;
    }
    free(hash);
    free(stamp);
    free(authority);
    proc_result_release(&said);
    proc_result_release(&token);
    return rc;
}

/* The reason that openssl gives last, "...:message imprint mismatch:..." or "...:Verify
 * error:...", in our words. */
static const char *reason_in(const char *words)
{
    if (strstr(words, "message imprint mismatch") != NULL) {
        return "it is over other bytes";
    }
    const char *verify = strstr(words, "Verify error:");
    return verify == NULL ? "the signature does not hold" : verify + strlen("Verify error:");
}

/* Verifies the response against the digest, with certificates as they were at the stamp's time. */
static int verify(const struct strbuf *response, const char *hex, const char *ca_path,
                  time_t seconds, struct err *err)
{
    char when[24];
    (void)snprintf(when, sizeof(when), "%lld", (long long)seconds);
    const char *believed = ca_path == NULL ? TIMESTAMP_CERTIFICATES : ca_path;
    const char *option = file_kind_at(believed) == FILE_FOLDER ? "-CApath" : "-CAfile";
    const char *const argv[] = {"openssl",   "ts",   "-verify", "-digest", hex,  "-in",
                                "/dev/fd/3", option, believed,  "-attime", when, NULL};
    struct proc_result r;
    int rc = openssl_run(argv, response, &r, err);
    if (rc == 0 && (r.code != 0 || strstr(r.out.buf, "Verification: OK") == NULL)) {
        const char *why = reason_in(r.err.buf);
        rc = err_set(err, ERR_LOCK, "%.*s (authorities: %.80s)", (int)strcspn(why, "\r\n"), why,
                     believed);
    }
    proc_result_release(&r);
    return rc;
}

int timestamp_check(const char *of_path, const char *tsr_path, const char *ca_path,
                    struct timestamp_check *out, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    struct strbuf response = STRBUF_INIT;
    time_t seconds = 0;
    *out = (struct timestamp_check){0};
    if (ca_path != NULL && file_kind_at(ca_path) == FILE_ABSENT) {
        return err_set(err, ERR_NOT_FOUND, "%s: no such certificates", ca_path);
    }
    int rc = digest_of(of_path, hex, err);
    if (rc != 0 || (rc = file_read(tsr_path, LAYOUT_TSR_MAX, &response, err)) != 0) {
        goto out;
    }
    if (read_token(&response, out, &seconds, err) != 0 ||
        verify(&response, hex, ca_path, seconds, err) != 0) {
        rc = err_wrap(err, "%s", tsr_path);
    }
out:
    if (rc != 0) {
        timestamp_check_release(out);
    }
    strbuf_release(&response);
    return rc;
}

void timestamp_check_release(struct timestamp_check *check)
{
    free(check->authority);
    *check = (struct timestamp_check){0};
}
