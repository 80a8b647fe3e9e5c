/* Command lines are lists of strings in an arena: nothing of them passes a shell. */
#include "daemon/executor/slurm/command.h"

#include <assert.h>
#include <string.h>

#include "base/xalloc.h"
#include "daemon/executor/slurm/parse.h"

#define WORDS_MAX 40 /* of our own; the user's options come on top */

struct words {
    struct arena *arena;
    char **list;
    size_t n;
    size_t cap;
};

static struct words begin(struct arena *a, size_t more)
{
    struct words w = {.arena = a, .cap = WORDS_MAX + more};
    w.list = arena_array(a, w.cap, sizeof(*w.list));
    return w;
}

static void add(struct words *w, const char *word)
{
    assert(w->n + 1 < w->cap); /* the arena's zeroes end the list */
    w->list[w->n++] = arena_strdup(w->arena, word);
}

static void add_value(struct words *w, const char *option, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        add(w, arena_printf(w->arena, "%s=%s", option, value));
    }
}

/* ---- sbatch ---- */

static void add_resources(struct words *w, const struct slurm_request *r)
{
    /* Rule 23. */
    add(w, "--nodes=1");
    add(w, "--ntasks=1");
    add(w, arena_printf(w->arena, "--cpus-per-task=%u", r->threads > 0 ? r->threads : 1));
    if (r->memory_bytes > 0) {
        const int64_t kib = (r->memory_bytes - 1) / 1024 + 1;
        add(w, arena_printf(w->arena, "--mem=%lldK", (long long)kib));
    }
    if (r->gpus > 0) {
        add(w, arena_printf(w->arena, "--gres=gpu:%u", r->gpus));
    }
    if (r->time_ms > 0) {
        const int64_t minutes = (r->time_ms - 1) / 60000 + 1;
        add(w, arena_printf(w->arena, "--time=%lld", (long long)minutes));
        /* Rule 21: USR2 to the script's process alone, which is the shim. */
        if (r->warn_ms > 0) {
            add(w, arena_printf(w->arena, "--signal=B:USR2@%lld", (long long)(r->warn_ms / 1000)));
        }
    }
}

static struct words begin_sbatch(struct arena *a, const struct slurm_request *r,
                                 const struct slurm_submission *s)
{
    struct words w = begin(a, r->n_options);
    add(&w, "sbatch");
    add(&w, "--parsable");
    for (size_t i = 0; i < r->n_options; i++) {
        add(&w, r->options[i]);
    }
    if (r->n_options > 0) { /* a last option without its value takes this, not one of ours */
        add(&w, "--parsable");
    }
    add_value(&w, "--clusters", r->clusters); /* rule 25 */
    add_value(&w, "--partition", r->partition);
    add_value(&w, "--account", r->account);
    add_value(&w, "--qos", r->qos);
    add_resources(&w, r);
    add(&w, "--no-requeue"); /* rule 7 */
    /* Rule 9: nothing of the daemon's environment either way. NONE makes the node log in as the
     * user, which takes longer than a short task. */
    add(&w, r->login ? "--export=NONE" : "--export-file=/dev/null");
    add_value(&w, "--chdir", s->folder);
    /* Rule 8: nothing that may be missing; the script writes its log itself. */
    add(&w, "--output=/dev/null");
    add(&w, "--error=/dev/null");
    return w;
}

char *const *slurm_command_submit(struct arena *a, const struct slurm_request *r,
                                  const struct slurm_submission *s)
{
    struct words w = begin_sbatch(a, r, s);
    assert(s->name != NULL);
    add_value(&w, "--job-name", s->name); /* rule 1 */
    add_value(&w, "--array", s->array);
    add_value(&w, "--exclude", s->exclude); /* rule 24 */
    if (s->script != NULL) {
        add(&w, s->script); /* rule 4 */
    }
    return w.list;
}

char *const *slurm_command_test(struct arena *a, const struct slurm_request *r,
                                const struct slurm_submission *s)
{
    struct words w = begin_sbatch(a, r, s);
    add(&w, "--test-only");
    if (s->script != NULL) {
        add(&w, s->script);
    }
    return w.list;
}

/* ---- the others ---- */

char *const *slurm_command_queue(struct arena *a, const char *clusters, const char *user,
                                 const char *names)
{
    struct words w = begin(a, 0);
    add(&w, "squeue");
    add(&w, "--noheader");
    add(&w, "--array");
    add(&w, "--states=all");
    add_value(&w, "--clusters", clusters);
    add_value(&w, "--user", user);
    add_value(&w, "--name", names);
    add(&w, "--format=" SLURM_QUEUE_FORMAT);
    return w.list;
}

char *const *slurm_command_accounting(struct arena *a, const char *clusters, const char *names,
                                      const char *since)
{
    struct words w = begin(a, 0);
    add(&w, "sacct");
    add(&w, "--allocations");
    add(&w, "--noheader");
    add(&w, "--parsable2");
    add_value(&w, "--clusters", clusters);
    add_value(&w, "--starttime", since); /* rule 16: without it, it begins at midnight */
    add_value(&w, "--name", names);
    add(&w, "--format=" SLURM_SACCT_FORMAT);
    return w.list;
}

char *const *slurm_command_cancel(struct arena *a, const char *clusters, const char *name,
                                  const char *ids, bool soft)
{
    size_t n_ids = 1;
    for (const char *c = ids; *c != '\0'; c++) {
        n_ids += *c == ' ';
    }
    struct words w = begin(a, n_ids);
    add(&w, "scancel");
    add_value(&w, "--clusters", clusters);
    add_value(&w, "--name", name); /* rule 2: scancel itself checks the name again */
    if (soft) {
        add(&w, "--signal=TERM");
        add(&w, "--batch");
    }
    for (size_t len = 0; *ids != '\0'; ids += len) {
        ids += strspn(ids, " ");
        len = strcspn(ids, " ");
        if (len > 0) {
            add(&w, arena_strndup(a, ids, len));
        }
    }
    return w.list;
}

char *const *slurm_command_config(struct arena *a, const char *clusters)
{
    struct words w = begin(a, 0);
    add(&w, "scontrol");
    add_value(&w, "--clusters", clusters);
    add(&w, "show");
    add(&w, "config");
    return w.list;
}

/* ---- environment ---- */

static bool is_dropped(const char *entry)
{
    static const char *const KEPT[] = {"SLURM_CONF=", "SLURM_CONF_SERVER=", "SLURM_JWT="};
    static const char *const DROPPED[] = {"SBATCH_",   "SLURM_",  "SQUEUE_", "SACCT_", "SCANCEL_",
                                          "SCONTROL_", "SALLOC_", "SRUN_",   "LC_ALL="};
    for (size_t i = 0; i < ARRAY_LEN(KEPT); i++) {
        if (strncmp(entry, KEPT[i], strlen(KEPT[i])) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(DROPPED); i++) {
        if (strncmp(entry, DROPPED[i], strlen(DROPPED[i])) == 0) {
            return true;
        }
    }
    return false;
}

char *const *slurm_command_environment(struct arena *a, char *const *environment)
{
    size_t n = 0;
    while (environment[n] != NULL) {
        n++;
    }
    struct words w = begin(a, n);
    for (size_t i = 0; i < n; i++) {
        if (!is_dropped(environment[i])) { /* rule 3 */
            add(&w, environment[i]);
        }
    }
    add(&w, "SLURM_TIME_FORMAT=%s"); /* rule 13 */
    add(&w, "LC_ALL=C");
    return w.list;
}
