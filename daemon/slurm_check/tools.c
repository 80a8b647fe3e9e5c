/* Finds and runs Slurm's commands; what they print is bounded. Nothing passes a shell. */
#include "daemon/slurm_check/tools.h"

#include <stdlib.h>

#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "daemon/executor/slurm/parse.h"

#define OUT_BYTES_MAX ((size_t)64 << 20) /* a node is a kilobyte */
#define WHY_SIZE      160

int tools_find(struct err *err)
{
    static const char *const names[] = {"sbatch", "squeue", "scancel", "scontrol"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path = find_program(names[i]);
        const bool found = path != NULL;
        free(path);
        if (!found) {
            return err_set(err, ERR_NOT_FOUND,
                           "no Slurm on this machine: %s is not in PATH; install Slurm's client "
                           "commands (Debian: slurm-client) or run this on a login node",
                           names[i]);
        }
    }
    return 0;
}

int tools_run(const struct tools *t, char *const *argv, int64_t timeout_ms, struct proc_result *r,
              struct err *err)
{
    const struct proc_spec spec = {.argv = (const char *const *)argv,
                                   .env = (const char *const *)t->env,
                                   .timeout_ms = timeout_ms,
                                   .max_out_bytes = OUT_BYTES_MAX,
                                   .place = PROC_NO_TERMINAL,
                                   .stops = t->stops};
    return proc_run(&spec, r, err);
}

int tools_ask(const struct tools *t, char *const *argv, struct proc_result *r, struct err *err)
{
    char why[WHY_SIZE];
    int rc = tools_run(t, argv, TOOLS_QUERY_MS, r, err);
    if (rc != 0 || r->code == 0) {
        return rc;
    }
    slurm_parse_why(r->err.len > 0 ? r->err.buf : r->out.buf,
                    r->err.len > 0 ? r->err.len : r->out.len, why, sizeof(why));
    return err_set(err, ERR_OTHER, "%s: %s", argv[0], why[0] != '\0' ? why : "it failed");
}

char *const *tools_words(const struct tools *t, const char *const words[8])
{
    char **list = arena_array(t->arena, 10, sizeof(*list));
    size_t n = 0;
    for (size_t i = 0; i < 8 && words[i] != NULL; i++) {
        list[n++] = arena_strdup(t->arena, words[i]);
        if (i == 0 && t->clusters != NULL) {
            list[n++] = arena_printf(t->arena, "--clusters=%s", t->clusters);
        }
    }
    return list;
}
