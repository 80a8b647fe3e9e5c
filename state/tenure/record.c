/* The files of tenures: claimed, replaced, listed, read. Names have eight digits, so that they sort
 * by number; temporary files begin with a dot. */
#include "state/tenure/record.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/claim.h"
#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"

#define NUMBER_MAX    99999999
#define RECORD_MAX    ((size_t)64 << 10)
#define READ_TRIES    5
#define READ_PAUSE_MS 100

static char *folder_path(const char *state)
{
    return path_join(state, LAYOUT_TENURE);
}

static char *record_path(const char *state, int64_t number)
{
    return xasprintf("%s/" LAYOUT_TENURE "/%08lld.json", state, (long long)number);
}

/* 0: not the name of a record. */
static int64_t number_of(const char *name)
{
    int64_t number = 0;
    struct err ignored;
    char digits[9] = "";
    if (strlen(name) != 13 || strcmp(name + 8, ".json") != 0) {
        return 0;
    }
    memcpy(digits, name, 8);
    return text_to_int(digits, 1, NUMBER_MAX, &number, &ignored) == 0 ? number : 0;
}

bool tenure_is_kept(const char *state)
{
    assert(state != NULL);
    char *path = folder_path(state);
    bool kept = file_kind_at(path) == FILE_FOLDER;
    free(path);
    return kept;
}

/* 0: none. */
static int highest(const char *state, int64_t *number, struct err *err)
{
    struct name_list names = {0};
    char *path = folder_path(state);
    *number = 0;
    int rc = dir_list(path, &names, err);
    for (size_t i = 0; i < names.n; i++) {
        int64_t n = number_of(names.names[i]);
        *number = n > *number ? n : *number;
    }
    name_list_release(&names);
    free(path);
    return rc;
}

/* ---- as JSON ---- */

struct text_member {
    const char *key;
    char *to;
    size_t size;
};
#define N_TEXTS 11
#define MEMBER(t, name)                                                                            \
    {                                                                                              \
#name, (t)->name, sizeof((t)->name)                                                        \
    }

static void list_texts(struct tenure *t, struct text_member out[N_TEXTS])
{
    const struct text_member texts[] = {
        MEMBER(t, host),     MEMBER(t, machine),     MEMBER(t, boot_id),  MEMBER(t, pid_space),
        MEMBER(t, job),      MEMBER(t, cluster),     MEMBER(t, job_name), MEMBER(t, job_submitted),
        MEMBER(t, database), MEMBER(t, database_id), MEMBER(t, time),
    };
    _Static_assert(ARRAY_LEN(texts) == N_TEXTS, "every text");
    memcpy(out, texts, sizeof(texts));
}

static int write_json(const struct tenure *t, struct strbuf *out, struct err *err)
{
    struct tenure copy = *t;
    struct text_member texts[N_TEXTS];
    list_texts(&copy, texts);
    cJSON *o = json_object();
    json_put_int(o, "schema", 1);
    json_put_int(o, "number", t->number);
    json_put_int(o, "sequence", t->sequence);
    json_put_bool(o, "released", t->released);
    json_put_int(o, "pid", t->pid);
    json_put_int(o, "pid_start", t->pid_start);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_put_string(o, texts[i].key, texts[i].to);
    }
    int rc = json_line(o, out, err);
    strbuf_addc(out, '\n');
    cJSON_Delete(o);
    return rc;
}

static int get_texts(const cJSON *o, struct tenure *out, struct err *err)
{
    struct text_member texts[N_TEXTS];
    list_texts(out, texts);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *text = NULL;
        int rc = json_get_string(o, texts[i].key, &text, err);
        if (rc == 0 && (strlen(text) >= texts[i].size || !text_is_plain(text))) {
            rc = err_set(err, ERR_CORRUPT, "\"%s\" is too long or not plain text", texts[i].key);
        }
        if (rc != 0) {
            return rc;
        }
        (void)snprintf(texts[i].to, texts[i].size, "%s", text);
    }
    return 0;
}

static int get_all(const cJSON *o, struct tenure *out, struct err *err)
{
    int64_t schema = 0;
    if (json_get_int(o, "schema", 1, 1, &schema, err) != 0 ||
        json_get_int(o, "number", 1, NUMBER_MAX, &out->number, err) != 0 ||
        json_get_int(o, "sequence", 1, JSON_INT_MAX, &out->sequence, err) != 0 ||
        json_opt_bool(o, "released", &out->released, err) != 0 ||
        json_get_int(o, "pid", 1, INT32_MAX, &out->pid, err) != 0 ||
        json_get_int(o, "pid_start", 0, JSON_INT_MAX, &out->pid_start, err) != 0) {
        return err->code;
    }
    return get_texts(o, out, err);
}

int tenure_parse(const char *text, size_t len, int64_t number, struct tenure *out, struct err *err)
{
    cJSON *o = NULL;
    *out = (struct tenure){0};
    int rc = json_parse(text, len, &o, err);
    if (rc == 0) {
        rc = get_all(o, out, err);
    }
    if (rc == 0 && out->number != number) {
        rc = err_set(err, ERR_CORRUPT, "\"number\" is not that of its name");
    }
    cJSON_Delete(o);
    if (rc != 0) {
        err->code = rc = ERR_CORRUPT;
    }
    return rc;
}

static int read_record(const char *path, int64_t number, struct tenure *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    *out = (struct tenure){0};
    int rc = shared_read(path, RECORD_MAX, &text, err);
    if (rc == 0 && (rc = tenure_parse(text.buf, text.len, number, out, err)) != 0) {
        (void)err_wrap(err, "%s", path);
    }
    strbuf_release(&text);
    return rc;
}

/* The owner may replace it, or a successor remove it, between listing and reading. */
int tenure_read(const char *state, struct tenure *out, bool *found, struct err *err)
{
    assert(state != NULL && out != NULL && found != NULL);
    int rc = 0;
    *found = false;
    *out = (struct tenure){0};
    for (int i = 0; i < READ_TRIES; i++) {
        int64_t number = 0;
        rc = tenure_is_kept(state) ? highest(state, &number, err) : 0;
        if (rc != 0 || number == 0) {
            return rc;
        }
        char *path = record_path(state, number);
        rc = read_record(path, number, out, err);
        free(path);
        if (rc == 0 || rc == ERR_CORRUPT) {
            *found = rc == 0;
            return rc;
        }
        clock_sleep_ms(READ_PAUSE_MS);
    }
    err->code = ERR_IO;
    return ERR_IO;
}

/* ---- claimed and replaced ---- */

/* The one before stays, for a reader of this moment. */
static void remove_older(const char *state, int64_t number)
{
    struct name_list names = {0};
    struct err ignored;
    char *folder = folder_path(state);
    if (dir_list(folder, &names, &ignored) == 0) {
        for (size_t i = 0; i < names.n; i++) {
            int64_t n = number_of(names.names[i]);
            if (n > 0 && n < number - 1) {
                char *path = path_join(folder, names.names[i]);
                (void)unlink(path);
                free(path);
            }
        }
    }
    name_list_release(&names);
    free(folder);
}

/* Of a claimant that was slow: others have claimed and removed this number since. */
static int refuse_late(const char *state, const struct tenure *t, const char *path, struct err *err)
{
    int rc = tenure_check(state, t, err);
    if (rc == ERR_MOVED) {
        (void)unlink(path);
        return err_set(err, ERR_EXISTS, "%s was claimed, and given up, before", path);
    }
    return rc;
}

int tenure_claim(const char *state, struct tenure *t, struct err *err)
{
    assert(state != NULL && t != NULL && t->number > 0);
    if (t->number > NUMBER_MAX) {
        return err_set(err, ERR_RANGE,
                       "%s/" LAYOUT_TENURE "/%d.json is the last number there can be: while no "
                       "preregd serves this folder, remove " LAYOUT_TENURE "/",
                       state, NUMBER_MAX);
    }
    struct strbuf text = STRBUF_INIT;
    char *folder = folder_path(state);
    char *path = record_path(state, t->number);
    t->sequence = 1;
    t->released = false;
    clock_wall_text(clock_wall(), t->time);
    int rc = dir_make_durable(folder, 0700, err);
    if (rc == 0) {
        rc = write_json(t, &text, err);
    }
    if (rc == 0) {
        rc = claim_file(path, text.buf, text.len, err);
    }
    if (rc == 0) {
        rc = refuse_late(state, t, path, err);
    }
    if (rc == 0) {
        remove_older(state, t->number);
        claim_sweep(folder);
    }
    strbuf_release(&text);
    free(path);
    free(folder);
    return rc;
}

int tenure_renew(const char *state, struct tenure *t, struct err *err)
{
    assert(state != NULL && t != NULL && t->number > 0);
    struct strbuf text = STRBUF_INIT;
    char *folder = folder_path(state);
    char *temp = claim_temp(folder);
    char *path = record_path(state, t->number);
    t->sequence++;
    int rc = write_json(t, &text, err);
    if (rc == 0) {
        rc = claim_write(temp, text.buf, text.len, err);
    }
    if (rc == 0 && rename(temp, path) != 0) {
        rc = err_set_errno(err, errno, "rename to %s", path);
    }
    if (rc != 0) {
        (void)unlink(temp);
    }
    strbuf_release(&text);
    free(path);
    free(temp);
    free(folder);
    return rc;
}

int tenure_check(const char *state, const struct tenure *t, struct err *err)
{
    assert(state != NULL && t != NULL);
    int64_t number = 0;
    int rc = highest(state, &number, err);
    if (rc != 0) {
        err->code = ERR_IO;
        return ERR_IO;
    }
    return number <= t->number
               ? 0
               : err_set(err, ERR_MOVED,
                         "another preregd has taken the state folder %s over (number %lld, ours is "
                         "%lld)",
                         state, (long long)number, (long long)t->number);
}

/* ---- identity ---- */

bool tenure_is_same_host(const struct tenure *a, const struct tenure *b)
{
    assert(a != NULL && b != NULL);
    return strcmp(a->host, b->host) == 0 && strcmp(a->machine, b->machine) == 0;
}

/* An id as systemd writes it, 32 hexadecimal digits; before that the file may be empty, or say
 * "uninitialized". */
static void clear_unless_id(char *machine)
{
    if (strspn(machine, "0123456789abcdef") != 32 || machine[32] != '\0') {
        machine[0] = '\0';
    }
}

static void read_word(const char *path, char *out, size_t size)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    out[0] = '\0';
    if (file_read(path, 256, &text, &ignored) == 0) {
        text.buf[strcspn(text.buf, "\n")] = '\0';
        text_copy_line(out, size, text.buf);
    }
    strbuf_release(&text);
}

void tenure_init(struct tenure *t)
{
    assert(t != NULL);
    char host[256] = "";
    *t = (struct tenure){.pid = getpid()};
    if (gethostname(host, sizeof(host) - 1) != 0) {
        (void)snprintf(host, sizeof(host), "unknown");
    }
    text_copy_line(t->host, sizeof(t->host), host);
    read_word("/etc/machine-id", t->machine, sizeof(t->machine));
    clear_unless_id(t->machine);
    clock_boot_id(t->boot_id);
    ssize_t n = readlink("/proc/self/ns/pid", t->pid_space, sizeof(t->pid_space) - 1);
    t->pid_space[n > 0 ? n : 0] = '\0';
}

char *tenure_text(const struct tenure *t)
{
    assert(t != NULL);
    char *job = t->job[0] == '\0' ? xstrdup("")
                                  : xasprintf(", Slurm job %s%s%s", t->job,
                                              t->cluster[0] == '\0' ? "" : " of ", t->cluster);
    char *text = xasprintf("host %s, process %lld%s, boot %.8s", t->host, (long long)t->pid, job,
                           t->boot_id);
    free(job);
    return text;
}

char *tenure_local_folder(const char *state)
{
    assert(state != NULL);
    struct tenure own;
    struct tenure last;
    struct err ignored;
    bool found = false;
    tenure_init(&own);
    if (tenure_read(state, &last, &found, &ignored) == 0 && found &&
        tenure_is_same_host(&last, &own) && last.database[0] == '/') {
        return xstrdup(last.database);
    }
    return xstrdup(state);
}
