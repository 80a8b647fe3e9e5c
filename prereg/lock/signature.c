/*
 * Each operation is one or more runs of ssh-keygen, which gets the signed bytes on standard input
 * and the signature at /dev/fd/3, both as files in memory. Its exit code decides; its output is
 * parsed for the fingerprint and the principals only. Checking takes three steps: the signature
 * holds, the key is known to the file of allowed signers, and it is allowed for this namespace
 * today.
 */
#include "prereg/lock/signature.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"

#define TIMEOUT_MS     120000 /* an agent may ask its owner to confirm */
#define PRINCIPALS_MAX 64     /* of one key */

#define FIRST_LINE "-----BEGIN SSH SIGNATURE-----\n"
#define LAST_LINE  "-----END SSH SIGNATURE-----\n"

/* The variables that ssh-keygen needs to reach an agent, a security key or a passphrase dialog. */
static const char *const passed_names[] = {
    "PATH",
    "HOME",
    "TERM",
    "SSH_AUTH_SOCK",
    "DISPLAY",
    "SSH_ASKPASS",
    "WAYLAND_DISPLAY",
    "SSH_ASKPASS_REQUIRE",
    "XAUTHORITY",
    "SSH_SK_PROVIDER",
    "XDG_RUNTIME_DIR",
};
#define ENV_MAX (ARRAY_LEN(passed_names) + 2) /* and two of our own */

struct child_env {
    char *owned[ENV_MAX];
    const char *list[ENV_MAX + 1];
    size_t n;
};

/* Adds NAME=value; the list stays terminated by NULL. */
static void env_add(struct child_env *env, const char *name, const char *value)
{
    env->owned[env->n] = xasprintf("%s=%s", name, value);
    env->list[env->n] = env->owned[env->n];
    env->list[++env->n] = NULL;
}

/* Without `may_ask` a passphrase dialog is disabled, unless the user's environment asks for one. */
static void env_fill(struct child_env *env, bool may_ask)
{
    *env = (struct child_env){0};
    for (size_t i = 0; i < ARRAY_LEN(passed_names); i++) {
        const char *value = getenv(passed_names[i]);
        if (value != NULL) {
            env_add(env, passed_names[i], value);
        }
    }
    if (!may_ask && getenv("SSH_ASKPASS_REQUIRE") == NULL) {
        env_add(env, "SSH_ASKPASS_REQUIRE", "never");
    }
    env_add(env, "LC_ALL", "C");
}

static void env_release(struct child_env *env)
{
    for (size_t i = 0; i < env->n; i++) {
        free(env->owned[i]);
    }
}

/* One run of ssh-keygen with `bytes` as its standard input. */
struct keygen {
    const char *const *argv;
    const char *name_space;
    const void *bytes;
    size_t len;
    const char *armored; /* at /dev/fd/3; NULL: nothing is */
    bool may_ask;
};

/* Runs ssh-keygen. A terminal means no time limit: a user may be typing a passphrase. */
static int keygen_run(const struct keygen *k, struct proc_result *result, struct err *err)
{
    struct child_env env;
    int in_fd = -1;
    int fd3 = -1;
    *result = (struct proc_result){.out = STRBUF_INIT, .err = STRBUF_INIT};
    env_fill(&env, k->may_ask);
    int rc = file_in_memory("preregd", k->bytes, k->len, &in_fd, err);
    if (rc == 0 && k->armored != NULL) {
        rc = file_in_memory("preregd", k->armored, strlen(k->armored), &fd3, err);
    }
    if (rc == 0) {
        const struct proc_spec spec = {.argv = k->argv,
                                       .env = env.list,
                                       .timeout_ms = k->may_ask ? 0 : TIMEOUT_MS,
                                       .max_out_bytes = SIGNATURE_BYTES_MAX,
                                       .place = k->may_ask ? PROC_TERMINAL : PROC_NO_TERMINAL,
                                       .in_fd = in_fd,
                                       .fd3 = fd3 < 0 ? 0 : fd3};
        rc = proc_run(&spec, result, err);
        if (rc == ERR_NOT_FOUND) {
            rc = err_set(err, ERR_NOT_FOUND, "ssh-keygen is not in PATH (Debian: openssh-client)");
        }
    }
    if (in_fd >= 0) {
        (void)close(in_fd);
    }
    if (fd3 >= 0) {
        (void)close(fd3);
    }
    env_release(&env);
    return rc;
}

/* The last line that a child wrote to stderr, without its end; "" for none. */
static const char *last_words(struct proc_result *r)
{
    struct strbuf *sb = &r->err;
    while (sb->len > 0 && (sb->buf[sb->len - 1] == '\n' || sb->buf[sb->len - 1] == '\r')) {
        sb->buf[--sb->len] = '\0';
    }
    const char *newline = strrchr(sb->buf, '\n');
    return newline == NULL ? sb->buf : newline + 1;
}

/* The outer form of an armored signature; ssh-keygen checks what is between the lines. */
static bool is_armored(const char *text)
{
    size_t len = strnlen(text, SIGNATURE_BYTES_MAX + 1);
    size_t first = strlen(FIRST_LINE);
    size_t last = strlen(LAST_LINE);
    return len <= SIGNATURE_BYTES_MAX && len > first + last &&
           memcmp(text, FIRST_LINE, first) == 0 && strcmp(text + len - last, LAST_LINE) == 0;
}

int signature_make(const char *key_path, const void *bytes, size_t len, struct strbuf *armored,
                   struct err *err)
{
    return signature_make_in(SIGNATURE_NAMESPACE, key_path, bytes, len, armored, err);
}

int signature_make_in(const char *name_space, const char *key_path, const void *bytes, size_t len,
                      struct strbuf *armored, struct err *err)
{
    if (file_kind_at(key_path) != FILE_REGULAR) {
        return err_set(err, ERR_NOT_FOUND, "%s: no such key file", key_path);
    }
    const char *const argv[] = {"ssh-keygen", "-Y", "sign", "-n", name_space, "-f", key_path, NULL};
    const struct keygen k = {
        .argv = argv, .bytes = bytes, .len = len, .may_ask = isatty(STDIN_FILENO) == 1};
    struct proc_result r;
    int rc = keygen_run(&k, &r, err);
    if (rc == 0 && (r.code != 0 || !is_armored(r.out.buf))) {
        rc = err_set(err, ERR_REFUSED, "ssh-keygen does not sign with %s: %s%s", key_path,
                     last_words(&r),
                     strstr(r.err.buf, "passphrase") != NULL && !k.may_ask
                         ? " (there is no terminal to ask on: use an agent)"
                         : "");
    }
    if (rc == 0) {
        strbuf_add(armored, r.out.buf, r.out.len);
    }
    proc_result_release(&r);
    return rc;
}

/* `Good "preregd" signature with ED25519 key SHA256:...` */
static char *fingerprint_in(const char *said)
{
    const char *at = strstr(said, " key SHA256:");
    if (at == NULL) {
        return NULL;
    }
    at += strlen(" key ");
    return xstrndup(at, strcspn(at, " \r\n"));
}

/* Whether the signature is one over these bytes, by any key; sets the fingerprint. */
static int check_valid(struct keygen *k, struct signature_check *out, struct err *err)
{
    const char *const argv[] = {"ssh-keygen",  "-Y", "check-novalidate", "-n",
                                k->name_space, "-s", "/dev/fd/3",        NULL};
    struct proc_result r;
    k->argv = argv;
    int rc = keygen_run(k, &r, err);
    if (rc == 0 && r.code == 0) {
        out->fingerprint = fingerprint_in(r.out.buf);
        out->valid = out->fingerprint != NULL;
    }
    if (rc == 0 && !out->valid) {
        rc = err_set(err, ERR_LOCK, "the signature does not hold: %s", last_words(&r));
    }
    proc_result_release(&r);
    return rc;
}

/* Whether the file of allowed signers allows the key for this principal. */
static int check_principal(struct keygen *k, const char *allowed_signers, const char *principal,
                           bool *good, struct err *err)
{
    const char *const argv[] = {"ssh-keygen", "-Y", "verify",        "-n", k->name_space, "-I",
                                principal,    "-f", allowed_signers, "-s", "/dev/fd/3",   NULL};
    struct proc_result r;
    k->argv = argv;
    int rc = keygen_run(k, &r, err);
    *good = rc == 0 && r.code == 0;
    proc_result_release(&r);
    return rc;
}

/* Finds the principal. Each name that find-principals prints is tried, because each has its own
 * options (namespaces, times). */
static int check_allowed(struct keygen *k, const char *allowed_signers, struct signature_check *out,
                         struct err *err)
{
    const char *const argv[] = {"ssh-keygen",    "-Y", "find-principals", "-f",
                                allowed_signers, "-s", "/dev/fd/3",       NULL};
    struct proc_result r;
    k->argv = argv;
    int rc = keygen_run(k, &r, err);
    char *save = NULL;
    char *line = rc == 0 && r.code == 0 ? strtok_r(r.out.buf, "\r\n", &save) : NULL;
    for (int i = 0; rc == 0 && line != NULL && !out->allowed && i < PRINCIPALS_MAX; i++) {
        rc = check_principal(k, allowed_signers, line, &out->allowed, err);
        if (out->allowed) {
            out->principal = xstrdup(line);
        }
        line = strtok_r(NULL, "\r\n", &save);
    }
    if (rc == 0 && !out->allowed) {
        rc = err_set(err, ERR_REFUSED,
                     "the key %s is not among the allowed signers of %s (for %s, today)",
                     out->fingerprint, allowed_signers, k->name_space);
    }
    proc_result_release(&r);
    return rc;
}

int signature_check(const char *armored, const void *bytes, size_t len, const char *allowed_signers,
                    struct signature_check *out, struct err *err)
{
    const struct signed_text text = {.name_space = SIGNATURE_NAMESPACE, .bytes = bytes, .len = len};
    return signature_check_in(&text, armored, allowed_signers, out, err);
}

int signature_check_in(const struct signed_text *text, const char *armored,
                       const char *allowed_signers, struct signature_check *out, struct err *err)
{
    struct keygen k = {
        .name_space = text->name_space, .bytes = text->bytes, .len = text->len, .armored = armored};
    *out = (struct signature_check){0};
    if (!is_armored(armored)) {
        return err_set(err, ERR_LOCK, "the signature is not a text of ssh-keygen -Y sign");
    }
    int rc = check_valid(&k, out, err);
    return rc != 0 || allowed_signers == NULL ? rc : check_allowed(&k, allowed_signers, out, err);
}

void signature_check_release(struct signature_check *check)
{
    free(check->principal);
    free(check->fingerprint);
    *check = (struct signature_check){0};
}

int signature_json_make(const char *key_path, const void *bytes, size_t len, cJSON **out,
                        struct err *err)
{
    struct strbuf armored = STRBUF_INIT;
    struct signature_check check = {0};
    *out = NULL;
    int rc = signature_make(key_path, bytes, len, &armored, err);
    if (rc == 0) {
        rc = signature_check(armored.buf, bytes, len, NULL, &check, err);
    }
    if (rc == 0) {
        *out = json_object();
        json_put_string(*out, "format", "sshsig");
        json_put_string(*out, "namespace", SIGNATURE_NAMESPACE);
        json_put_string(*out, "fingerprint", check.fingerprint);
        json_put_string(*out, "armored", armored.buf);
    }
    signature_check_release(&check);
    strbuf_release(&armored);
    return rc;
}

static bool is_text(const cJSON *signature, const char *key, const char *wanted)
{
    const cJSON *v = json_member(signature, key);
    return cJSON_IsString(v) && (wanted == NULL || strcmp(v->valuestring, wanted) == 0);
}

/* "SHA256:" and the 43 letters of base64 that 32 bytes take. */
static bool is_fingerprint(const cJSON *v)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char kind[] = "SHA256:";
    size_t len = strlen(kind);
    return cJSON_IsString(v) && strncmp(v->valuestring, kind, len) == 0 &&
           strlen(v->valuestring) == len + 43 && strspn(v->valuestring + len, letters) == 43;
}

int signature_json_shape(const cJSON *signature, struct err *err)
{
    bool whole = cJSON_IsObject(signature) && cJSON_GetArraySize(signature) == 4 &&
                 is_text(signature, "format", "sshsig") &&
                 is_text(signature, "namespace", SIGNATURE_NAMESPACE) &&
                 is_fingerprint(json_member(signature, "fingerprint")) &&
                 is_text(signature, "armored", NULL) &&
                 is_armored(json_member(signature, "armored")->valuestring);
    return whole ? 0
                 : err_set(err, ERR_LOCK,
                           "\"signature\" is not a whole SSH signature of namespace %s",
                           SIGNATURE_NAMESPACE);
}

int signature_json_check(const cJSON *signature, const void *bytes, size_t len,
                         const char *allowed_signers, struct signature_check *out, struct err *err)
{
    *out = (struct signature_check){0};
    int rc = signature_json_shape(signature, err);
    if (rc != 0) {
        return rc;
    }
    rc = signature_check(json_member(signature, "armored")->valuestring, bytes, len,
                         allowed_signers, out, err);
    const char *named = json_member(signature, "fingerprint")->valuestring;
    if (out->valid && strcmp(named, out->fingerprint) != 0) {
        out->valid = false;
        out->allowed = false;
        rc = err_set(err, ERR_LOCK, "the signature is by the key %s, not by %.60s as it says",
                     out->fingerprint, named);
    }
    return rc;
}

/* A file that was named must exist; the usual place may be empty. */
int signature_allowed_signers(const char *option, char **path, struct err *err)
{
    const char *named = option != NULL ? option : getenv("PREREGD_ALLOWED_SIGNERS");
    *path = NULL;
    if (named != NULL && named[0] != '\0') {
        if (file_kind_at(named) != FILE_REGULAR) {
            return err_set(err, ERR_NOT_FOUND, "%s: no such file of allowed signers", named);
        }
        *path = xstrdup(named);
        return 0;
    }
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char *usual = NULL;
    if (config != NULL && config[0] == '/') {
        usual = xasprintf("%s/preregd/allowed_signers", config);
    } else if (home != NULL && home[0] == '/') {
        usual = xasprintf("%s/.config/preregd/allowed_signers", home);
    }
    if (usual != NULL && file_kind_at(usual) == FILE_REGULAR) {
        *path = usual;
        return 0;
    }
    free(usual);
    return 0;
}
