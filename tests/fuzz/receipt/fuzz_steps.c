/* One step of a verification over one file that is not what it was: the input's first byte chooses
 * the file, the rest is laid over it somewhere. The journal's chain is made anew, so that its rows
 * are looked at and not their hashes alone. A step ends with an answer, and what does not follow is
 * named. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/export.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "tests/unit/ctl/receipt/fixture.h"
#include "tests/unit/ctl/receipt/forger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum target { JOURNAL, RECORDS, COVERAGE, VERDICT, PROVENANCE, ENVIRONMENT, TARGET_NR };

static const char *const names[TARGET_NR] = {
    [JOURNAL] = RECEIPT_JOURNAL,       [RECORDS] = RECEIPT_RECORDS,
    [COVERAGE] = RECEIPT_COVERAGE,     [VERDICT] = RECEIPT_VERDICT,
    [PROVENANCE] = RECEIPT_PROVENANCE, [ENVIRONMENT] = RECEIPT_ENVIRONMENT};

static char scratch[] = "/dev/shm/fuzz-steps-XXXXXX";
static struct export_made made;
static struct strbuf right[TARGET_NR];
static int fds[TARGET_NR];
static struct verify_answer answer;
static struct verify_spec spec;
static struct verifying v = {
    .spec = &spec, .out = &answer, .err = &answer.fault, .files = {.fd = -1}};

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void clean_up(void)
{
    struct err ignored;
    verdict_release(&v.verdict);
    evidence_release(&v.evidence);
    cJSON_Delete(v.established);
    history_release(&v.history);
    verify_inputs_release(&v);
    verify_items_release(&v);
    verify_same_work_release(&v);
    free(v.places);
    lock_free(v.lock);
    program_free(v.program);
    files_release(&v.files);
    arena_release(&v.arena);
    for (size_t i = 0; i < TARGET_NR; i++) {
        strbuf_release(&right[i]);
        (void)close(fds[i]);
    }
    export_made_release(&made);
    (void)!dir_remove(scratch, &ignored);
}

static void make_once(void)
{
    static const struct fixture f = {.n_seeds = 2, .n_evals = 1, .n_metrics = 1};
    struct err err = {0};
    char *program = NULL;
    must(mkdtemp(scratch) != NULL && fixture_make(&f, scratch, &program, &err) == 0);
    char *out = path_join(scratch, "out");
    must(receipt_export(&(struct export_spec){.program_folder = program, .out = out}, &made,
                        &err) == 0);
    free(out);
    free(program);
    spec.folder = made.folder;
    arena_init(&v.arena);
    v.established = json_array();
    must(files_open(&v.files, made.folder, v.err) == 0 && verify_lock(&v) == 0);
    must(history_read(&v.history, v.program, v.lock, &v.files, v.err) == 0);
    must(verify_records(&v) == 0 && verify_verdict(&v) == 0 && verify_provenance(&v) == 0);
    for (size_t i = 0; i < TARGET_NR; i++) {
        char *path = path_join(made.folder, names[i]);
        strbuf_init(&right[i]);
        must(file_read(path, (size_t)1 << 24, &right[i], &err) == 0);
        fds[i] = open(path, O_WRONLY | O_CLOEXEC);
        must(fds[i] >= 0);
        free(path);
    }
    (void)atexit(clean_up);
}

static void put(enum target t, const struct strbuf *text)
{
    must(ftruncate(fds[t], 0) == 0 &&
         pwrite(fds[t], text->buf, text->len, 0) == (ssize_t)text->len);
}

/* Each over what the good receipt's earlier steps left, in a copy of its own. */
static int run_step(enum target t)
{
    struct verifying w = v;
    int rc;
    arena_init(&w.arena);
    w.established = json_array();
    switch (t) {
    case JOURNAL:
        rc = history_read(&w.history, v.program, v.lock, &v.files, v.err);
        history_release(&w.history);
        break;
    case RECORDS:
        w.artifacts = (struct cell_artifacts){0};
        w.items = (struct receipt_items){0};
        w.works = (struct kept_works){0};
        rc = verify_records(&w);
        evidence_release(&w.evidence);
        verify_inputs_release(&w);
        verify_items_release(&w);
        verify_same_work_release(&w);
        free(w.places);
        break;
    case COVERAGE:
    case VERDICT:
        w.verdict = (struct table_verdict){0};
        rc = verify_verdict(&w);
        if (w.verdict.file != NULL) {
            verdict_release(&w.verdict);
        }
        break;
    case PROVENANCE:
    case ENVIRONMENT:
    case TARGET_NR:
    default:
        w.provenance = NULL;
        rc = verify_provenance(&w);
        break;
    }
    cJSON_Delete(w.established);
    arena_release(&w.arena);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct strbuf now = STRBUF_INIT;
    if (made.folder == NULL) {
        make_once();
    }
    if (size < 4) {
        return 0;
    }
    const enum target t = (enum target)(data[0] % TARGET_NR);
    const struct strbuf *old = &right[t];
    const size_t at = ((size_t)data[1] << 8 | data[2]) % (old->len + 1);
    const size_t keep = at + data[3] < old->len ? at + data[3] : old->len;
    strbuf_add(&now, old->buf, at);
    strbuf_add(&now, data + 4, size - 4);
    strbuf_add(&now, old->buf + keep, old->len - keep);
    if (t == JOURNAL) {
        forge_chain(&now);
    }
    put(t, &now);
    err_clear(v.err);
    int rc = run_step(t);
    bool same = now.len == old->len && memcmp(now.buf, old->buf, now.len) == 0;
    must(rc == 0 ? v.err->msg[0] == '\0' : rc == v.err->code && v.err->msg[0] != '\0');
    must(rc != 0 || same || t == JOURNAL || t == PROVENANCE);
    put(t, old);
    strbuf_release(&now);
    return 0;
}
