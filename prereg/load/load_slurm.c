/* [run.slurm]: how a program's jobs are submitted. The values reach sbatch's command line and the
 * job script, so everything that could change what preregd itself sets there is refused here. */
#include <string.h>

#include "base/xalloc.h"
#include "prereg/load/load.h"

#define LIST_MAX       ((size_t)256)
#define QUEUED_MAX     100000
#define QUEUED_DEFAULT 200
#define GRACE_DEFAULT  (180 * 1000)
#define GRACE_MAX      (60 * 60 * 1000)
#define POLL_DEFAULT   (5 * 1000)
#define POLL_MAX       (60 * 1000)

/* Letters of sbatch's options without a value. */
#define FLAGS "Is"

/* Options of sbatch that preregd sets, or that would break what it relies on, and what to write
 * instead. sbatch accepts any beginning of a long option, so beginnings are refused, too. */
static const struct own_option {
    const char *word;   /* "--time" */
    const char *letter; /* "-t"; NULL: none */
    const char *instead;
} OWN[] = {
    {"--job-name", "-J", "it identifies the attempt"},
    {"--comment", NULL, "it identifies the attempt"},
    {"--array", "-a", "use [run.slurm] array"},
    {"--batch", NULL, "an attempt runs on one node"},
    {"--partition", "-p", "use [run.slurm] partition"},
    {"--account", "-A", "use [run.slurm] account"},
    {"--qos", "-q", "use [run.slurm] qos"},
    {"--clusters", "-M", "use [run.slurm] clusters"},
    {"--cluster-constraint", NULL, "use [run.slurm] clusters"},
    {"--time", "-t", "use time of [run.STAGE]"},
    {"--time-min", NULL, "use time of [run.STAGE]: Slurm would end attempts earlier"},
    {"--deadline", NULL, "use time of [run.STAGE]: Slurm would drop attempts that end later"},
    {"--begin", "-b", "pause the program until then (preregctl pause, resume)"},
    {"--cpus-per-task", "-c", "use threads of [run.STAGE]"},
    {"--cpus-per-gpu", NULL, "use threads of [run.STAGE]"},
    {"--mincpus", NULL, "use threads of [run.STAGE]"},
    {"--overcommit", "-O", "an attempt has the cores of its threads"},
    {"--tres-per-task", NULL, "use threads and gpus of [run.STAGE]"},
    {"--mem", NULL, "use memory of [run.STAGE]"},
    {"--mem-per-cpu", NULL, "use memory of [run.STAGE]"},
    {"--mem-per-gpu", NULL, "use memory of [run.STAGE]"},
    {"--gpus", "-G", "use gpus of [run.STAGE]"},
    {"--gpus-per-node", NULL, "use gpus of [run.STAGE]"},
    {"--gpus-per-socket", NULL, "use gpus of [run.STAGE]"},
    {"--gpus-per-task", NULL, "use gpus of [run.STAGE]"},
    {"--gres", NULL, "use gpus of [run.STAGE]"},
    {"--nodes", "-N", "an attempt runs on one node"},
    {"--ntasks", "-n", "an attempt is one task"},
    {"--ntasks-per-core", NULL, "an attempt is one task"},
    {"--ntasks-per-gpu", NULL, "an attempt is one task"},
    {"--ntasks-per-node", NULL, "an attempt is one task"},
    {"--tasks-per-node", NULL, "an attempt is one task"}, /* another name of the same */
    {"--ntasks-per-socket", NULL, "an attempt is one task"},
    {"--no-kill", "-k", "an attempt runs on one node, and ends with it"},
    {"--uid", NULL, "jobs are the daemon's user's, as the files of attempts are"},
    {"--gid", NULL, "jobs are of the daemon's group, as the files of attempts are"},
    {"--container", NULL, "start the container in command of [stage.STAGE]"},
    {"--container-id", NULL, "start the container in command of [stage.STAGE]"},
    {"--exclude", "-x", "preregd excludes nodes that fail; use --constraint or a partition"},
    {"--output", "-o", "the attempt's folder has the logs"},
    {"--error", "-e", "the attempt's folder has the logs"},
    {"--input", "-i", "a worker has no standard input"},
    {"--open-mode", NULL, "the attempt's folder has the logs"},
    {"--chdir", "-D", "a worker runs in its attempt's folder"},
    {"--export", NULL, "use env of [stage.STAGE], or [run.slurm] setup"},
    {"--export-file", NULL, "use env of [stage.STAGE], or [run.slurm] setup"},
    {"--get-user-env", NULL, "use [run.slurm] setup"},
    {"--requeue", NULL, "preregd retries by itself"},
    {"--no-requeue", NULL, "preregd sets it"},
    {"--signal", NULL, "preregd sets it"},
    {"--parsable", NULL, "preregd sets it"},
    {"--quiet", "-Q", "preregd sets it"},
    {"--verbose", "-v", "preregd reads what sbatch prints"},
    {"--wrap", NULL, "preregd writes the script"},
    {"--external", NULL, "preregd writes the script"},
    {"--wait", "-W", "preregd waits by itself"},
    {"--hold", "-H", "pause the program (preregctl pause, resume)"},
    {"--dependency", "-d", "use after of [stage.STAGE]"},
    {"--kill-on-invalid-dep", NULL, "use after of [stage.STAGE]"},
    {"--test-only", NULL, "use preregctl check --slurm"},
    {"--help", "-h", "it submits nothing"},
    {"--usage", NULL, "it submits nothing"},
    {"--version", "-V", "it submits nothing"},
};

static const struct own_option *find_own(const char *option)
{
    const size_t n = strcspn(option, "= ");
    for (size_t i = 0; i < ARRAY_LEN(OWN); i++) {
        const bool is_long = strncmp(option, "--", 2) == 0;
        if (is_long ? strncmp(OWN[i].word, option, n) == 0
                    : OWN[i].letter != NULL && strncmp(option, OWN[i].letter, 2) == 0) {
            return &OWN[i];
        }
    }
    return NULL;
}

/* "--constraint a100" in one string is not an option of that name; alone, it would take the next
 * option for its value. */
static void check_form(struct load *l, const struct toml_node *n)
{
    const char *s = n->string;
    const size_t name = strcspn(s, "= ");
    if (strncmp(s, "--", 2) == 0 && s[name] == ' ') {
        load_error(l, n, "a blank in \"%s\": write \"%.*s=VALUE\"", s, (int)name, s);
    } else if (s[1] != '-' && s[2] == ' ') {
        load_error(l, n, "a blank in \"%s\": write the option by its long name, \"--NAME=VALUE\"",
                   s);
    } else if (s[1] != '-' && s[2] != '\0' && strchr(FLAGS, s[1]) != NULL) {
        /* "-sJx" is -s and -J */
        load_error(l, n, "\"%s\" may be several options: write each by its long name", s);
    } else if (s[1] != '-' && s[2] == '\0' && strchr(FLAGS, s[1]) == NULL) {
        load_error(l, n, "\"%s\" has no value: write the option by its long name, \"--NAME=VALUE\"",
                   s);
    }
}

static void check_option(struct load *l, const struct toml_node *n)
{
    const char *s = n->string;
    if (s[0] != '-' || s[1] == '\0' || strcmp(s, "--") == 0) {
        load_error(l, n,
                   "\"%s\" is not an option of sbatch: write \"--NAME=VALUE\", one string each", s);
        return;
    }
    const struct own_option *own = find_own(s);
    if (own != NULL) {
        load_error(l, n, "\"%s\" sets %s, which is preregd's: %s", s, own->word, own->instead);
    } else {
        check_form(l, n);
    }
}

/* What ends up as one argument, or in a comma-separated list of names. */
static void load_name(struct load *l, const struct toml_node *t, const char *key, const char **out,
                      struct place *place)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_-.,:+/@%";
    if (load_text(l, t, key, false, out) &&
        ((*out)[0] == '-' || (*out)[strspn(*out, allowed)] != '\0')) {
        load_error(l, toml_member(t, key), "\"%s\" is not a name of Slurm", *out);
    }
    if (*out != NULL) {
        *place = load_place(toml_member(t, key));
    }
}

/* A list of strings, each of which is checked. */
struct string_list {
    const char *key;
    void (*check)(struct load *l, const struct toml_node *n); /* NULL: any string */
    const char ***out;
    struct place **places;
};

static size_t load_strings(struct load *l, const struct toml_node *t, const struct string_list *s)
{
    const struct toml_node *array = load_member(l, t, s->key, TOML_ARRAY);
    size_t n = 0;
    if (array == NULL) {
        return 0;
    }
    if (array->n_items > LIST_MAX) {
        load_error(l, array, "%zu entries; the limit is %zu", array->n_items, LIST_MAX);
        return 0;
    }
    *s->out = arena_array(&l->p->arena, array->n_items, sizeof(**s->out));
    *s->places = arena_array(&l->p->arena, array->n_items, sizeof(**s->places));
    for (size_t i = 0; i < array->n_items; i++) {
        const struct toml_node *item = array->items[i];
        if (load_is(l, item, TOML_STRING)) {
            if (s->check != NULL) {
                s->check(l, item);
            }
            (*s->places)[n] = load_place(item);
            (*s->out)[n++] = item->string;
        }
    }
    return n;
}

void load_slurm(struct load *l, const struct toml_node *run)
{
    static const char *const keys[] = {"partition",  "account", "qos",     "clusters",
                                       "max_queued", "array",   "options", "setup",
                                       "grace",      "poll",    "shim"};
    struct slurm_settings *s = &l->p->run.slurm;
    *s = (struct slurm_settings){.max_queued = QUEUED_DEFAULT,
                                 .array = true,
                                 .grace_ms = GRACE_DEFAULT,
                                 .poll_ms = POLL_DEFAULT};
    const struct toml_node *t = run == NULL ? NULL : load_member(l, run, "slurm", TOML_TABLE);
    if (t == NULL) {
        return;
    }
    s->place = load_key_place(t);
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    load_name(l, t, "partition", &s->partition, &s->partition_place);
    load_name(l, t, "account", &s->account, &s->account_place);
    load_name(l, t, "qos", &s->qos, &s->qos_place);
    load_name(l, t, "clusters", &s->clusters, &s->clusters_place);
    if (load_text(l, t, "shim", false, &s->shim) && s->shim[0] != '/') {
        load_error(l, toml_member(t, "shim"),
                   "expected the absolute path of prereg-shim on the "
                   "nodes");
    }
    if (s->shim != NULL) {
        s->shim_place = load_place(toml_member(t, "shim"));
    }
    if (load_int(l, t, "max_queued", (int64_t[]){1, QUEUED_MAX}, &s->max_queued)) {
        s->max_queued_place = load_place(toml_member(t, "max_queued"));
    }
    (void)load_bool(l, t, "array", &s->array);
    s->n_options = load_strings(
        l, t, &(struct string_list){"options", check_option, &s->options, &s->options_at});
    s->n_setup = load_strings(l, t, &(struct string_list){"setup", NULL, &s->setup, &s->setup_at});
    if (load_ms(l, t, "grace", &s->grace_ms) && (s->grace_ms < 1000 || s->grace_ms > GRACE_MAX)) {
        load_error(l, toml_member(t, "grace"), "expected 1 s to 1 h");
    }
    if (load_ms(l, t, "poll", &s->poll_ms) && (s->poll_ms < 1000 || s->poll_ms > POLL_MAX)) {
        load_error(l, toml_member(t, "poll"), "expected 1 s to 1 min");
    }
}
