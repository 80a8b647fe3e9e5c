/* The set-up that tests of the store share. */
#include "tests/unit/state/fixture.h"
#include "tests/unit/check.h"

#include <stdlib.h>

#include "base/files/file.h"
#include "base/xalloc.h"

void fixture_open(struct fixture *f)
{
    struct err err = {0};
    if (store_open(f->dir, STORE_OWNER, &f->store, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    f->w.store = f->store;
}

void fixture_reopen(struct fixture *f)
{
    store_close(f->store);
    fixture_open(f);
}

void fixture_begin(struct fixture *f)
{
    struct err err = {0};
    struct store_submission s = {SCRATCH_ID, root_make("root"), {1763694202000}, {0}};
    f->dir = state_folder_make();
    f->program = program_make(3);
    fixture_open(f);
    assert_int_equal(store_program_create(f->store, f->program, &s, &f->no, &err), 0);
    walker_init(&f->w, f->store, f->no, 6);
}

void fixture_end(struct fixture *f)
{
    store_close(f->store);
    program_drop(f->program);
    scratch_remove(f->dir);
}

int fixture_setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    fixture_begin(f);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    fixture_end(f);
    free(f);
    return 0;
}

void fixture_commit(struct fixture *f, const struct state_row *rows, size_t n)
{
    struct err err = {0};
    if (commit_rows(f->store, rows, n, &err) != 0) {
        fail_msg("%s", err.msg);
    }
}

char *fixture_journal(const struct fixture *f)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char *path = scratch_path(f->dir, "journal.jsonl");
    assert_int_equal(file_read(path, 1 << 20, &text, &err), 0);
    free(path);
    return strbuf_detach(&text);
}
