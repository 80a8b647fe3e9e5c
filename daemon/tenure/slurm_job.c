/*
 * The answers of squeue and sacct about one job.
 *
 * The clients' own variables are removed from their environment, and times are asked for as
 * seconds, so that two answers compare. States in which processes of the job may still run, or
 * which Slurm sets for a node that it has lost, do not count as an end: only those that it sets
 * after it has ended the job's processes are.
 */
#include "daemon/tenure/slurm_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine/proc.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"

#define ASK_TIMEOUT_MS 20000 /* a client waits for 9 s while the controller is down */
#define ANSWER_MAX     ((size_t)64 << 10)
#define WORDS_MAX      16

extern char **environ;

static bool is_of_clients(const char *variable)
{
    static const char *const prefixes[] = {"SLURM_", "SQUEUE_", "SACCT_", "SBATCH_"};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0 &&
            strncmp(variable, "SLURM_CONF=", 11) != 0) {
            return true;
        }
    }
    return false;
}

/* The caller frees the list, not what is in it. */
static const char **clean_environment(void)
{
    size_t n = 0;
    size_t kept = 0;
    while (environ[n] != NULL) {
        n++;
    }
    const char **env = xcalloc(n + 2, sizeof(*env));
    for (size_t i = 0; i < n; i++) {
        if (!is_of_clients(environ[i])) {
            env[kept++] = environ[i];
        }
    }
    env[kept] = "SLURM_TIME_FORMAT=%s";
    return env;
}

#define NO_SUCH_JOB "Invalid job id"

enum said {
    SAID_NOTHING, /* it could not be run, failed, or took too long */
    SAID_UNKNOWN, /* there is no such job */
    SAID_LINES,
};

/* Appends the standard output. */
static enum said ask(const char *const *argv, struct strbuf *out)
{
    const char **env = clean_environment();
    struct proc_result r = {0};
    struct err ignored;
    const struct proc_spec spec = {.argv = argv,
                                   .env = env,
                                   .timeout_ms = ASK_TIMEOUT_MS,
                                   .max_out_bytes = ANSWER_MAX,
                                   .place = PROC_NO_TERMINAL};
    enum said said = SAID_NOTHING;
    if (proc_run(&spec, &r, &ignored) == 0 && r.signal == 0) {
        said = r.code == 0                                               ? SAID_LINES
               : r.err.len > 0 && strstr(r.err.buf, NO_SUCH_JOB) != NULL ? SAID_UNKNOWN
                                                                         : SAID_NOTHING;
    }
    if (said == SAID_LINES) {
        strbuf_add(out, r.out.buf, r.out.len);
    }
    proc_result_release(&r);
    free(env);
    return said;
}

static enum said ask_squeue(const char *job, const char *cluster, struct strbuf *out)
{
    const char *argv[WORDS_MAX] = {"squeue", "-h", "-t", "all", "-o", "%A|%j|%V|%T", "-j", job};
    argv[8] = cluster[0] == '\0' ? NULL : "--clusters";
    argv[9] = cluster[0] == '\0' ? NULL : cluster;
    return ask(argv, out);
}

static enum said ask_sacct(const struct tenure *t, struct strbuf *out)
{
    const char *argv[WORDS_MAX] = {"sacct", "-X",         "-n",
                                   "-P",    "-j",         t->job,
                                   "-S",    "1970-01-02", "--format=JobIDRaw,JobName,Submit,State"};
    argv[9] = t->cluster[0] == '\0' ? NULL : "--clusters";
    argv[10] = t->cluster[0] == '\0' ? NULL : t->cluster;
    return ask(argv, out);
}

/* The four words of a line; a name may hold '|', so it is the rest in the middle. */
static bool split(char *line, char *words[4])
{
    char *state = strrchr(line, '|');
    if (state == NULL) {
        return false;
    }
    *state = '\0';
    char *submitted = strrchr(line, '|');
    if (submitted == NULL) {
        return false;
    }
    *submitted = '\0';
    char *name = strchr(line, '|');
    if (name == NULL) {
        return false;
    }
    *name = '\0';
    words[0] = line;
    words[1] = name + 1;
    words[2] = submitted + 1;
    words[3] = state + 1;
    return true;
}

/* sacct adds who cancelled: "CANCELLED by 1000". */
static bool is_over(const char *state)
{
    static const char *const over[] = {"COMPLETED",     "FAILED",    "CANCELLED", "TIMEOUT",
                                       "OUT_OF_MEMORY", "PREEMPTED", "DEADLINE"};
    for (size_t i = 0; i < ARRAY_LEN(over); i++) {
        size_t n = strlen(over[i]);
        if (strncmp(state, over[i], n) == 0 && (state[n] == '\0' || state[n] == ' ')) {
            return true;
        }
    }
    return false;
}

bool slurm_job_line(const struct tenure *holder, const char *line, struct tenure_evidence *e)
{
    char *copy = xstrdup(line);
    char *words[4];
    bool same = holder->job_submitted[0] != '\0' && split(copy, words) &&
                strcmp(words[0], holder->job) == 0 && strcmp(words[1], holder->job_name) == 0 &&
                strcmp(words[2], holder->job_submitted) == 0;
    if (same) {
        e->job = is_over(words[3]) ? TENURE_JOB_IS_OVER : TENURE_JOB_LIVES;
        text_copy_line(e->job_state, sizeof(e->job_state), words[3]);
    }
    free(copy);
    return same;
}

/* True when a line of the answer is of this job. */
static bool judge_answer(const struct tenure *holder, struct strbuf *answer,
                         struct tenure_evidence *e)
{
    char *rest = NULL;
    bool found = false;
    if (answer->len > 0) {
        for (char *line = strtok_r(answer->buf, "\n", &rest); line != NULL && !found;
             line = strtok_r(NULL, "\n", &rest)) {
            found = slurm_job_line(holder, line, e);
        }
    }
    return found;
}

/* A cluster can be named only where there is accounting, while every job has its name. Where that
 * fails the default cluster is asked: id, name and submit time together identify a job there, too.
 * That it does not know the job says nothing, because it may be another cluster. */
static bool is_of_default_cluster(const struct tenure *holder, struct tenure_evidence *e)
{
    struct strbuf squeue = STRBUF_INIT;
    const bool found = holder->cluster[0] != '\0' &&
                       ask_squeue(holder->job, "", &squeue) == SAID_LINES &&
                       judge_answer(holder, &squeue, e);
    strbuf_release(&squeue);
    return found;
}

/* Accounting notes the end of a job while that still completes, its processes not all gone. So it
 * is asked only if the controller does not know the job, or has given its id to another one. */
void slurm_job_ask(const struct tenure *holder, struct tenure_evidence *e)
{
    struct strbuf squeue = STRBUF_INIT;
    struct strbuf sacct = STRBUF_INIT;
    e->job = TENURE_JOB_UNKNOWN;
    if (holder->job[0] != '\0' && holder->job_submitted[0] != '\0') {
        const enum said said = ask_squeue(holder->job, holder->cluster, &squeue);
        const bool found = said == SAID_LINES     ? judge_answer(holder, &squeue, e)
                           : said == SAID_NOTHING ? is_of_default_cluster(holder, e)
                                                  : false;
        if (said != SAID_NOTHING && !found && ask_sacct(holder, &sacct) == SAID_LINES) {
            (void)judge_answer(holder, &sacct, e);
        }
    }
    strbuf_release(&sacct);
    strbuf_release(&squeue);
}

static void copy_variable(const char *name, char *out, size_t size)
{
    const char *value = getenv(name);
    text_copy_line(out, size, value == NULL ? "" : value);
}

void slurm_job_of_self(struct tenure *t)
{
    struct strbuf answer = STRBUF_INIT;
    char *words[4];
    copy_variable("SLURM_JOB_ID", t->job, sizeof(t->job));
    if (t->job[0] == '\0') {
        return;
    }
    copy_variable("SLURM_CLUSTER_NAME", t->cluster, sizeof(t->cluster));
    copy_variable("SLURM_JOB_NAME", t->job_name, sizeof(t->job_name));
    if (ask_squeue(t->job, "", &answer) == SAID_LINES && answer.len > 0) {
        answer.buf[strcspn(answer.buf, "\n")] = '\0';
        if (split(answer.buf, words) && strcmp(words[0], t->job) == 0) {
            text_copy_line(t->job_name, sizeof(t->job_name), words[1]);
            text_copy_line(t->job_submitted, sizeof(t->job_submitted), words[2]);
        }
    }
    strbuf_release(&answer);
}
