/* A whole receipt with one file or the tar in a hostile state: the input's first byte chooses
 * which, and how the sums stand to it. Verifying ends with an answer, and what does not follow is
 * named. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/export.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/tar.h"
#include "tests/unit/ctl/receipt/fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const targets[] = {
    "records.jsonl",   "journal.jsonl", "statement.json", "environment.jsonl", "SHA256SUMS",
    "provenance.json", "coverage.json", "verdict.json",   "grid.toml.lock",    "grid.toml"};

static struct export_made made;
static char *scratch;

static void must(int rc, const struct err *err)
{
    if (rc != 0) {
        (void)fprintf(stderr, "fuzz_receipt: %s\n", err->msg);
        abort();
    }
}

static void remove_scratch(void)
{
    struct err ignored;
    (void)!dir_remove(scratch, &ignored);
}

static void make_once(void)
{
    static const struct fixture f = {.n_seeds = 2, .n_evals = 1, .n_metrics = 1};
    struct err err = {0};
    char *program = NULL;
    scratch = xstrdup("/dev/shm/fuzz-receipt-XXXXXX");
    if (mkdtemp(scratch) == NULL) {
        abort();
    }
    (void)atexit(remove_scratch);
    must(fixture_make(&f, scratch, &program, &err), &err);
    char *out = path_join(scratch, "out");
    must(receipt_export(&(struct export_spec){.program_folder = program, .out = out}, &made, &err),
         &err);
    free(out);
    free(program);
}

static void check(const char *folder)
{
    const struct verify_spec spec = {.folder = folder};
    struct verify_answer a;
    int rc = receipt_verify(&spec, &a);
    if (rc != a.fault.code || (rc != 0 && a.fault.msg[0] == '\0') || a.json == NULL) {
        abort();
    }
    verify_answer_release(&a);
}

static void write_at(const char *name, const void *data, size_t size)
{
    struct err err;
    char *path = path_join(made.folder, name);
    must(file_write_atomic(path, data, size, 0644, &err), &err);
    free(path);
}

/* The forger's sums, so that more than the sum is looked at. */
static void sum_again(void)
{
    struct receipt_files files;
    struct err f = {0};
    struct strbuf text = STRBUF_INIT;
    if (files_open(&files, made.folder, &f) == 0 && sums_make(&files, &text, &f) == 0) {
        write_at("SHA256SUMS", text.buf, text.len);
    }
    files_release(&files);
    strbuf_release(&text);
}

/* Bytes over the file's own from an offset on: most of it stays what it was. */
static void try_file(const char *name, const uint8_t *data, size_t size)
{
    struct strbuf old = STRBUF_INIT;
    struct strbuf now = STRBUF_INIT;
    struct strbuf sums = STRBUF_INIT;
    struct err err;
    char *path = path_join(made.folder, name);
    char *sums_path = path_join(made.folder, "SHA256SUMS");
    must(file_read(path, (size_t)1 << 24, &old, &err), &err);
    must(file_read(sums_path, (size_t)1 << 24, &sums, &err), &err);
    const size_t at = size < 2 ? 0 : ((size_t)data[0] << 8 | data[1]) % (old.len + 1);
    const size_t keep = size < 3 ? 0 : data[2];
    const size_t n = size < 3 ? 0 : size - 3;
    strbuf_add(&now, old.buf, at);
    strbuf_add(&now, data + (size - n), n);
    if (at + keep < old.len) {
        strbuf_add(&now, old.buf + at + keep, old.len - at - keep);
    }
    write_at(name, now.buf, now.len);
    if (strcmp(name, "SHA256SUMS") != 0) {
        sum_again();
    }
    check(made.folder);
    write_at(name, old.buf, old.len);
    write_at("SHA256SUMS", sums.buf, sums.len);
    strbuf_release(&old);
    strbuf_release(&now);
    strbuf_release(&sums);
    free(path);
    free(sums_path);
}

static void try_tar(const uint8_t *data, size_t size)
{
    struct err err;
    struct err f = {0};
    char *path = path_join(scratch, "in.tar");
    char *folder = path_join(scratch, "taken");
    must(file_write_atomic(path, data, size, 0600, &err), &err);
    must(dir_make(folder, 0700, &err), &err);
    if (tar_read(path, folder, &f) != 0 && f.msg[0] == '\0') {
        abort();
    }
    must(dir_remove(folder, &err), &err);
    free(folder);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (scratch == NULL) {
        make_once();
    }
    if (size < 1) {
        return 0;
    }
    const size_t which = data[0] % (ARRAY_LEN(targets) + 1);
    if (which == ARRAY_LEN(targets)) {
        try_tar(data + 1, size - 1);
    } else {
        try_file(targets[which], data + 1, size - 1);
    }
    return 0;
}
