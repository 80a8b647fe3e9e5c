/*
 * programs, disk: what the state folder has and what it takes. Files are counted in a job, which
 * reads rows through a connection of its own; what only the daemon knows is added on the loop.
 */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"
#include "state/disk/programs.h"

/* Jobs at a time: each walks the whole state folder. Readers have a place of their own, so that
 * they can neither keep the owner from asking nor take the threads that attempts need. */
#define COUNTING_MAX 4

struct disk_job {
    struct job job;
    struct shell *shell;
    uint64_t connection;
    char *state;
    char *only; /* an id, or NULL */
    bool details;
    bool reader;
    cJSON *answer;
    int rc;
    struct err err;
};

static unsigned n_counting;    /* on the loop's thread: for the owner */
static bool counts_for_reader; /* likewise: for a reader */

static void on_count(struct job *job)
{
    struct disk_job *j = (struct disk_job *)job;
    j->rc = j->details ? disk_details(j->state, j->only, &j->answer, &j->err)
                       : disk_programs(j->state, &j->answer, &j->err);
}

static struct hosted *find_hosted(const struct shell *sh, const char *id)
{
    for (size_t i = 0; i < sh->cap_programs; i++) {
        struct hosted *h = shell_served(sh, i);
        if (h != NULL && strcmp(h->id, id) == 0) {
            return h;
        }
    }
    return NULL;
}

static void replace_text(cJSON *o, const char *key, const char *text)
{
    (void)cJSON_ReplaceItemInObjectCaseSensitive(o, key, cJSON_CreateString(text));
}

/* Pauses that are in no journal, and tasks that moved since the job read them. */
static void add_live_state(const struct shell *sh, cJSON *programs)
{
    cJSON *o = NULL;
    cJSON_ArrayForEach(o, programs)
    {
        const cJSON *id = json_member(o, "id");
        const struct hosted *h = cJSON_IsString(id) ? find_hosted(sh, id->valuestring) : NULL;
        if (h != NULL && json_member(o, "state") != NULL) {
            const char *state = summary_state(sh, h);
            replace_text(o, "state", state);
            (void)cJSON_ReplaceItemInObjectCaseSensitive(
                o, "priority", cJSON_CreateNumber((double)h->bundle->program->run.priority));
            (void)cJSON_ReplaceItemInObjectCaseSensitive(
                o, "paused", cJSON_CreateBool(strcmp(state, "paused") == 0));
        }
    }
}

/* Programs that this daemon does not serve, whatever their files look like. */
static void add_unloaded(const struct shell *sh, const char *only, cJSON *damaged)
{
    for (size_t i = 0; i < sh->n_unloaded; i++) {
        cJSON *o = NULL;
        bool listed = false;
        if (only != NULL && strcmp(only, sh->unloaded[i].id) != 0) {
            continue;
        }
        cJSON_ArrayForEach(o, damaged)
        {
            const cJSON *id = json_member(o, "id");
            if (cJSON_IsString(id) && strcmp(id->valuestring, sh->unloaded[i].id) == 0) {
                replace_text(o, "why", sh->unloaded[i].why.msg);
                listed = true;
            }
        }
        if (!listed) {
            o = json_object();
            json_put_string(o, "id", sh->unloaded[i].id);
            json_put_string(o, "why", sh->unloaded[i].why.msg);
            json_push(damaged, o);
        }
    }
}

static void on_counted(struct job *job)
{
    struct disk_job *j = (struct disk_job *)job;
    if (j->reader) {
        counts_for_reader = false;
    } else {
        n_counting--;
    }
    if (!j->shell->stopping) {
        if (j->rc == 0) {
            add_live_state(j->shell, cJSON_GetObjectItemCaseSensitive(j->answer, "programs"));
            add_unloaded(j->shell, j->only, cJSON_GetObjectItemCaseSensitive(j->answer, "damaged"));
            json_put_bool(j->answer, "daemon", true);
        }
        answer_later(j->shell, j->connection, j->answer, j->rc == 0 ? NULL : &j->err);
    }
    cJSON_Delete(j->answer);
    free(j->state);
    free(j->only);
    free(j);
}

static int start(struct answer_context *ctx, const char *only, bool details, struct err *err)
{
    const bool reader = ctx->call->reader;
    if (reader && counts_for_reader) {
        return err_set(err, ERR_BUSY, "the files are being counted for another reader: ask again");
    }
    if (!reader && n_counting >= COUNTING_MAX) {
        return err_set(err, ERR_BUSY,
                       "the files are being counted for %d other requests: ask again",
                       COUNTING_MAX);
    }
    struct disk_job *j = xcalloc(1, sizeof(*j));
    *j = (struct disk_job){.job = {.work = on_count, .done = on_counted},
                           .shell = ctx->shell,
                           .connection = ctx->call->connection,
                           .state = xstrdup(ctx->shell->state),
                           .only = only == NULL ? NULL : xstrdup(only),
                           .details = details,
                           .reader = reader};
    counts_for_reader = counts_for_reader || reader;
    n_counting += !reader;
    ctx->call->later = true;
    job_start(&ctx->shell->loop, &j->job);
    return 0;
}

int answer_programs(struct answer_context *ctx, const cJSON *params, cJSON **result,
                    struct err *err)
{
    (void)params;
    (void)result;
    return start(ctx, NULL, false, err);
}

/* All programs unless one is named: what it takes is a question about the whole disk. */
int answer_disk(struct answer_context *ctx, const cJSON *params, cJSON **result, struct err *err)
{
    struct hosted *h = NULL;
    (void)result;
    int rc = json_member(params, "program") == NULL
                 ? 0
                 : answer_find_program(ctx->shell, params, &h, err);
    return rc != 0 ? rc : start(ctx, h == NULL ? NULL : h->id, true, err);
}
