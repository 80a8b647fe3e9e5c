/*
 * Asks git(1) in three runs: HEAD's commit, the names of all settings, and the status. The second
 * run finds the filters that the repository or its user configures; the third overrules each of
 * them through GIT_CONFIG_COUNT, which wins over every file. Any failure becomes a note, since a
 * lock without a commit is still a lock.
 */
#include "prereg/lock/git.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"

#define TIMEOUT_MS    30000
#define OUT_BYTES_MAX ((size_t)4 << 20)
#define SETTINGS_MAX  1024 /* of the repository that are overruled; more: git is not asked */

/* Settings that overrule those of the repository, through GIT_CONFIG_COUNT and its numbered
 * variables, in which names may hold any character. */
struct git_settings {
    char *env[2 * SETTINGS_MAX + 8];
    size_t n_env;
    size_t n;
};

static void add_env(struct git_settings *s, char *entry)
{
    s->env[s->n_env++] = entry;
    s->env[s->n_env] = NULL;
}

/* Adds one key and value to the numbered variables. */
static void add_setting(struct git_settings *s, const char *key, const char *value)
{
    add_env(s, xasprintf("GIT_CONFIG_KEY_%zu=%s", s->n, key));
    add_env(s, xasprintf("GIT_CONFIG_VALUE_%zu=%s", s->n, value));
    s->n++;
}

/* The settings that could make git run something or read stale state. */
static void settings_init(struct git_settings *s)
{
    static const char *const fixed[][2] = {{"core.fsmonitor", "false"},
                                           {"core.hooksPath", "/dev/null"},
                                           {"core.untrackedCache", "false"}};
    *s = (struct git_settings){0};
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        add_setting(s, fixed[i][0], fixed[i][1]);
    }
}

static void settings_release(struct git_settings *s)
{
    for (size_t i = 0; i < s->n_env; i++) {
        free(s->env[i]);
    }
}

/* The environment of a child: few names, and the settings when they are complete. */
static size_t env_of(const struct git_settings *s, const char **env, char **owned)
{
    static const char *const fixed[] = {
        "LC_ALL=C",
        "GIT_CONFIG_NOSYSTEM=1",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_TERMINAL_PROMPT=0",
        "GIT_NO_LAZY_FETCH=1",
        "GIT_ALLOW_PROTOCOL=", /* none: a partial clone's missing objects stay missing */
    };
    static const char *const passed[] = {"PATH", "HOME", "XDG_CONFIG_HOME"};
    size_t n = 0;
    size_t n_owned = 0;
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        env[n++] = fixed[i];
    }
    for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
        if (getenv(passed[i]) != NULL) {
            owned[n_owned] = xasprintf("%s=%s", passed[i], getenv(passed[i]));
            env[n++] = owned[n_owned++];
        }
    }
    owned[n_owned] = xasprintf("GIT_CONFIG_COUNT=%zu", s->n);
    env[n++] = owned[n_owned++];
    for (size_t i = 0; i < s->n_env; i++) {
        env[n++] = s->env[i];
    }
    env[n] = NULL;
    return n_owned;
}

/* One run of git in `folder`, without a terminal; `r` is to be released in any case. */
static int git_run(const char *folder, const struct git_settings *s, const char *const *argv,
                   struct proc_result *r, struct err *err)
{
    const char *env[2 * SETTINGS_MAX + 24];
    char *owned[4];
    size_t n_owned = env_of(s, env, owned);
    const struct proc_spec spec = {.argv = argv,
                                   .env = env,
                                   .cwd = folder,
                                   .timeout_ms = TIMEOUT_MS,
                                   .max_out_bytes = OUT_BYTES_MAX,
                                   .place = PROC_NO_TERMINAL};
    int rc = proc_run(&spec, r, err);
    for (size_t i = 0; i < n_owned; i++) {
        free(owned[i]);
    }
    return rc;
}

/* Commands that git would run on a file's bytes: filter.NAME.clean, .smudge, .process. An empty
 * command is none; a filter that is not required then lets the bytes through. */
static bool is_filter(const char *key)
{
    static const char *const ends[] = {".clean", ".smudge", ".process", ".required"};
    const char *dot = strrchr(key, '.');
    for (size_t i = 0; dot != NULL && i < ARRAY_LEN(ends); i++) {
        if (strncmp(key, "filter.", 7) == 0 && strcmp(dot, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Reading the configuration executes nothing. */
static int overrule_filters(const char *folder, struct git_settings *s, struct err *err)
{
    static const char *const argv[] = {"git", "config", "--list", "--name-only", "-z", NULL};
    struct proc_result r;
    int rc = git_run(folder, s, argv, &r, err);
    if (rc == 0 && r.code != 0) {
        rc = err_set(err, ERR_OTHER, "its configuration cannot be read");
    }
    for (const char *key = r.out.buf; rc == 0 && key < r.out.buf + r.out.len;
         key += strlen(key) + 1) {
        if (!is_filter(key)) {
            continue;
        }
        if (s->n + 1 >= SETTINGS_MAX) {
            rc = err_set(err, ERR_OTHER, "it has more filters than %d", SETTINGS_MAX);
        } else {
            add_setting(s, key, strcmp(strrchr(key, '.'), ".required") == 0 ? "false" : "");
        }
    }
    proc_result_release(&r);
    return rc;
}

static bool is_commit(const char *text, size_t len)
{
    return (len == 40 || len == 64) && strspn(text, "0123456789abcdef") == len;
}

/* *commit is NULL outside a repository and before its first commit. */
static int read_commit(const char *folder, const struct git_settings *s, char **commit,
                       struct err *err)
{
    static const char *const argv[] = {"git",           "rev-parse", "--verify", "--end-of-options",
                                       "HEAD^{commit}", NULL};
    struct proc_result r;
    int rc = git_run(folder, s, argv, &r, err);
    size_t len = strcspn(r.out.buf, "\n");
    if (rc == 0 && r.code == 0 && is_commit(r.out.buf, len)) {
        *commit = xstrndup(r.out.buf, len);
    } else if (rc == 0 && strstr(r.err.buf, "not a git repository") == NULL &&
               strstr(r.err.buf, "Needed a single revision") == NULL) {
        rc = err_set(err, ERR_OTHER, "%.*s", (int)strcspn(r.err.buf, "\n"), r.err.buf);
    }
    proc_result_release(&r);
    return rc;
}

/* Lists every change in the tree, wherever in it the folder is, but for the folder's own files. */
static int run_status(const char *folder, const char *const *own, const struct git_settings *s,
                      struct proc_result *r, struct err *err)
{
    const char *argv[16 + GIT_OWN_MAX] = {"git",
                                          "status",
                                          "--porcelain",
                                          "-z",
                                          "--untracked-files=normal",
                                          "--ignore-submodules=all",
                                          "--no-renames",
                                          "--",
                                          ":(top)"};
    char *except[GIT_OWN_MAX];
    size_t n = 0;
    size_t n_args = 0;
    while (argv[n_args] != NULL) {
        n_args++;
    }
    for (; n < GIT_OWN_MAX && own[n] != NULL; n++) {
        except[n] = xasprintf(":(exclude,literal)%s", own[n]);
        argv[n_args++] = except[n];
    }
    int rc = git_run(folder, s, argv, r, err);
    for (size_t i = 0; i < n; i++) {
        free(except[i]);
    }
    return rc;
}

/* More output than is read means changes; nothing at all means a clean tree. */
static int read_clean(const char *folder, const char *const *own, const struct git_settings *s,
                      bool *clean, struct err *err)
{
    struct proc_result r;
    int rc = run_status(folder, own, s, &r, err);
    if (rc == ERR_RANGE) { /* more changes than are read */
        *clean = false;
        rc = 0;
    } else if (rc == 0 && r.code != 0) {
        rc = err_set(err, ERR_OTHER, "%.*s", (int)strcspn(r.err.buf, "\n"), r.err.buf);
    } else if (rc == 0) {
        *clean = r.out.len == 0;
    }
    proc_result_release(&r);
    return rc;
}

/* On the heap, because the settings are too many for a stack frame. */
cJSON *git_state(const char *folder, const char *const *own, struct strbuf *note)
{
    struct git_settings *s = xmalloc(sizeof(*s));
    struct err err;
    char *commit = NULL;
    bool clean = false;
    settings_init(s);
    int rc = read_commit(folder, s, &commit, &err);
    if (rc == 0 && commit != NULL) {
        rc = overrule_filters(folder, s, &err);
        if (rc == 0) {
            rc = read_clean(folder, own, s, &clean, &err);
        }
    }
    cJSON *state = NULL;
    if (rc != 0) {
        strbuf_addf(note, "the lock does not say which git commit this is: %s\n", err.msg);
    } else if (commit != NULL) {
        state = json_object();
        json_put_string(state, "commit", commit);
        json_put_bool(state, "clean", clean);
    }
    free(commit);
    settings_release(s);
    free(s);
    return state == NULL ? cJSON_CreateNull() : state;
}
