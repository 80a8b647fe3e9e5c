/*
 * Opens the store as a reader for one question and closes it again: a daemon may run beside, and
 * must never find the database locked for long. Answers have the form that the daemon gives them.
 */
#include "ctl/local_answers.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "prereg/lock/imported.h"
#include "prereg/program/verdict_kind.h"
#include "prereg/program/verdict_tables.h"
#include "state/store/run_history.h"

#define TAIL_BYTES 65536 /* of a journal: few rows follow a removal */

int local_state_folder(const struct ctl_options *o, char **state, struct err *err)
{
    *state = NULL;
    if (o->state != NULL) {
        *state = path_absolute(NULL, o->state);
        return 0;
    }
    return rpc_state_folder(state, err);
}

/* Opens the store of that folder. *state is set even on failure. */
static int open_state(const struct ctl_options *o, char **state, struct store **store,
                      struct err *err)
{
    *store = NULL;
    int rc = local_state_folder(o, state, err);
    return rc == 0 ? store_open(*state, STORE_READER, store, err) : rc;
}

/* Copies what is needed: rows of the store live only as long as it is open. */
int local_program_find(const struct ctl_options *o, const char *name, struct local_program *out,
                       struct err *err)
{
    struct store *store = NULL;
    struct store_program p;
    struct arena texts;
    char *state = NULL;
    *out = (struct local_program){0};
    arena_init(&texts);
    int rc = open_state(o, &state, &store, err);
    if (rc != 0 || (rc = store_program_find(store, name, &texts, &p, err)) != 0) {
        goto out;
    }
    out->id = xstrdup(p.id);
    out->folder = layout_program(state, p.id);
    out->status = p.status;
    out->unverified = p.unverified_history;
    out->state = xstrdup(state);
    out->no = p.no;
out:
    store_close(store);
    arena_release(&texts);
    free(state);
    return rc;
}

void local_program_release(struct local_program *p)
{
    free(p->id);
    free(p->folder);
    free(p->state);
    *p = (struct local_program){0};
}

bool local_is_program_folder(const char *path)
{
    char *journal = path_join(path, LAYOUT_JOURNAL);
    char *lock = path_join(path, LAYOUT_LOCK);
    bool is = file_kind_at(lock) == FILE_REGULAR &&
              (file_kind_at(journal) == FILE_REGULAR || imported_is_folder(path));
    free(lock);
    free(journal);
    return is;
}

/* The last bytes of a file; empty where it cannot be read. */
static void read_tail(const char *path, struct strbuf *out)
{
    char buf[TAIL_BYTES];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        const off_t from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
        const ssize_t n = pread(fd, buf, sizeof(buf), from);
        strbuf_add(out, buf, n > 0 ? (size_t)n : 0);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Says it with the row's own words: {"detail":"receipt /home/me/a-1-receipt, SHA-256 ..."}. */
static int refuse_removed(const char *folder, const char *what, const char *line, struct err *err)
{
    cJSON *row = NULL;
    struct err ignored;
    const size_t len = strcspn(line, "\n");
    if (json_parse(line, len, &row, &ignored) != 0) {
        row = NULL;
    }
    const char *detail = answer_text(row, "detail", "no reason given");
    const char *digest = strstr(detail, ", SHA-256 of "); /* too long for a message */
    int rc = err_set(err, ERR_REFUSED,
                     "%s: its cells were removed (%.10s, %.*s): %s; plan, journal, verdict and "
                     "report are kept",
                     path_name(folder), answer_text(row, "time", "?"),
                     digest == NULL || digest - detail > 120 ? 120 : (int)(digest - detail), detail,
                     what);
    cJSON_Delete(row);
    return rc;
}

int local_check_cells(const char *folder, const char *what, struct err *err)
{
    static const char MARK[] = "\"event\":\"removed\"";
    struct strbuf text = STRBUF_INIT;
    int rc = 0;
    char *path = path_join(folder, LAYOUT_JOURNAL);
    read_tail(path, &text);
    const char *at = text.len == 0 ? NULL : memmem(text.buf, text.len, MARK, sizeof(MARK) - 1);
    if (at != NULL) {
        while (at > text.buf && at[-1] != '\n') {
            at--;
        }
        rc = refuse_removed(folder, what, at, err);
    }
    free(path);
    strbuf_release(&text);
    return rc;
}

/* Reads verdict.json, if it has the digest that the journal ends with. */
static int read_verdict(const struct local_program *p, const char *path, cJSON **out,
                        struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = NULL;
    int rc = file_read(path, LAYOUT_REPORT_MAX, &text, err);
    if (rc == 0) {
        struct digest d = digest_bytes(text.buf, text.len);
        rc = digest_equal(&d, &p->status.verdict_digest)
                 ? json_parse(text.buf, text.len, out, err)
                 : err_set(err, ERR_LOCK, "%s is not the verdict that the journal ends with", path);
    }
    strbuf_release(&text);
    return rc;
}

/* The changes of [run]; NULL when they cannot be read, which does not withhold the verdict. */
static cJSON *read_runs(const struct local_program *p)
{
    struct store *store = NULL;
    struct err err;
    cJSON *runs = NULL;
    int rc = store_open(p->state, STORE_READER, &store, &err);
    if (rc == 0) {
        rc = run_record_read_list(store, p->no, &runs, &err);
    }
    store_close(store);
    if (rc != 0) {
        log_warn("%s: %s", p->id, err.msg);
    }
    return runs;
}

/* What the stages were locked to run in; NULL when the lock cannot be read, which does not withhold
 * the verdict. */
static cJSON *read_environments(const struct local_program *p)
{
    struct lock *lock = NULL;
    struct err err;
    char *path = path_join(p->folder, LAYOUT_LOCK);
    cJSON *out = NULL;
    if (lock_read(path, &lock, &err) == 0) {
        out = lock_environments(lock);
    } else {
        log_warn("%s: %s", p->id, err.msg);
    }
    lock_free(lock);
    free(path);
    return out;
}

/* Compares journal and database for a verdict that is shown, as a daemon does when it starts: none
 * has done so since the last ended. A journal that cannot be read proves nothing. */
static void put_history(cJSON *o, const struct local_program *p)
{
    struct err why;
    const bool checks = p->status.reported && !p->unverified;
    const int rc = checks ? store_check_history(p->state, p->no, &why) : 0;
    json_put_string(o, "history",
                    p->unverified || rc == ERR_CORRUPT ? "unverified"
                    : rc != 0                          ? "checking"
                    : checks                           ? "verified"
                                                       : NULL);
    json_put_string(o, "history_why", rc != 0 ? why.msg : NULL);
}

/* Builds the answer even for a pending verdict; kind and exit code follow from the stored
 * outcome. */
int local_verdict(const struct local_program *p, cJSON **answer, struct err *err)
{
    const char *outcome = p->status.outcome;
    cJSON *verdict = NULL;
    *answer = NULL;
    cJSON *o = json_object();
    json_put_string(o, "program", p->id);
    /* the state of the journal is part of every answer */
    put_history(o, p);
    json_put_string(o, "state", p->status.reported ? "computed" : "pending");
    if (!p->status.reported) {
        *answer = o;
        return 0;
    }
    char *path = path_join(p->folder, LAYOUT_IN_REPORT(LAYOUT_VERDICT));
    int rc = read_verdict(p, path, &verdict, err);
    verdict_kind_put(o, outcome);
    json_put_string(o, "path", path);
    cJSON *environments = rc == 0 ? read_environments(p) : NULL;
    json_put(o, "environments", environments == NULL ? cJSON_CreateNull() : environments);
    cJSON *runs = rc == 0 ? read_runs(p) : NULL;
    json_put(o, "runs", runs == NULL ? cJSON_CreateNull() : runs);
    if (rc == 0) {
        json_put(o, "verdict", verdict);
        verdict_tables_put(o);
        *answer = o;
    } else {
        cJSON_Delete(o);
    }
    free(path);
    return rc;
}

struct count {
    size_t n;
    size_t n_finished;
};

/* Called for each program of the store. */
static int count_one(void *ctx, const struct store_program *p, struct err *err)
{
    struct count *c = ctx;
    (void)err;
    c->n++;
    c->n_finished += p->status.reported ? 1 : 0;
    return 0;
}

void local_count(const struct ctl_options *o, size_t *n, size_t *n_finished)
{
    struct store *store = NULL;
    struct count c = {0};
    struct err ignored;
    char *state = NULL;
    if (open_state(o, &state, &store, &ignored) != 0 ||
        store_programs(store, count_one, &c, &ignored) != 0) {
        c = (struct count){0}; /* unreadable counts as nothing */
    }
    store_close(store);
    free(state);
    *n = c.n;
    *n_finished = c.n_finished;
}
