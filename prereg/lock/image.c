/* Asks podman for the digest of an image, each time: it is what may have changed. */
#include "prereg/lock/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/machine/proc.h"
#include "base/xalloc.h"

#define TIMEOUT_MS    60000
#define OUT_BYTES_MAX ((size_t)4096)

int image_runtime(char **path, struct err *err)
{
    *path = find_program("podman");
    return *path != NULL ? 0 : err_set(err, ERR_NOT_FOUND, "podman is not installed (in PATH)");
}

char **image_runtime_variables(void)
{
    static const char *const names[] = {"PATH",
                                        "HOME",
                                        "XDG_RUNTIME_DIR",
                                        "XDG_CONFIG_HOME",
                                        "XDG_DATA_HOME",
                                        "CONTAINERS_CONF",
                                        "CONTAINERS_STORAGE_CONF"};
    char **list = xcalloc(ARRAY_LEN(names) + 1, sizeof(*list));
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL) {
            list[n++] = xasprintf("%s=%s", names[i], value);
        }
    }
    return list;
}

/* Runs `podman image VERB... NAME`. */
static int ask(const char *podman, const char *const *argv, struct proc_result *r, struct err *err)
{
    union {
        char **in;
        const char *const *out;
    } env = {.in = image_runtime_variables()};
    const struct proc_spec spec = {.exec = podman,
                                   .argv = argv,
                                   .env = env.out,
                                   .timeout_ms = TIMEOUT_MS,
                                   .max_out_bytes = OUT_BYTES_MAX};
    int rc = proc_run(&spec, r, err);
    xfree_list(env.in);
    return rc;
}

/* podman's exit code does not tell a missing image from a store that cannot be read. */
static int explain(const char *podman, const char *name, const struct proc_result *asked,
                   struct err *err)
{
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    const char *argv[] = {"podman", "image", "exists", name, NULL};
    int rc = ask(podman, argv, &r, err);
    if (rc == 0 && r.code == 1) {
        rc = err_set(err, ERR_NOT_FOUND, "podman has no image %.150s here", name);
    } else if (rc == 0) {
        const char *said = asked->err.len == 0 ? "it said nothing" : asked->err.buf;
        rc = err_set(err, ERR_OTHER, "podman image inspect %.80s: %.*s", name,
                     (int)strcspn(said, "\n"), said);
    }
    proc_result_release(&r);
    return rc;
}

int image_find(const char *name, char hex[DIGEST_HEX_SIZE], struct err *err)
{
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    const char *argv[] = {"podman", "image", "inspect", "--format", "{{.Id}}", name, NULL};
    struct digest id;
    char *podman = NULL;
    int rc = image_runtime(&podman, err);
    if (rc == 0 && (rc = ask(podman, argv, &r, err)) == 0 && r.code != 0) {
        rc = explain(podman, name, &r, err);
    } else if (rc == 0) {
        char *line = xstrndup(r.out.buf, strcspn(r.out.buf, "\n"));
        rc = digest_from_hex(line, &id, err);
        rc = rc == 0 ? 0 : err_wrap(err, "podman image inspect %.80s", name);
        free(line);
    }
    if (rc == 0) {
        digest_hex(&id, hex);
    }
    free(podman);
    proc_result_release(&r);
    return rc;
}
