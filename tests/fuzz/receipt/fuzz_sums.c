/* SHA256SUMS, whatever it says, over a folder of three files, and the rules for names: a listing
 * that holds is exactly the one that would be made. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "ctl/receipt/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/dev/shm/fuzz-sums-XXXXXX";
static struct receipt_files files = {.fd = -1};
static struct strbuf right = STRBUF_INIT;
static int sums_fd = -1;

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void clean_up(void)
{
    struct err ignored;
    files_release(&files);
    strbuf_release(&right);
    (void)!dir_remove(folder, &ignored);
}

static void make_once(void)
{
    static const char *const names[] = {"SHA256SUMS", "VERIFY.md", "amendments/0001.json",
                                        "grid.toml"};
    struct err f = {0};
    struct err err;
    must(mkdtemp(folder) != NULL);
    (void)atexit(clean_up);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path = path_join(folder, names[i]);
        char *parent = path_folder(path);
        must(dir_make(parent, 0700, &err) == 0);
        must(file_write_atomic(path, names[i], i, 0600, &err) == 0);
        if (i == 0) {
            sums_fd = open(path, O_WRONLY | O_CLOEXEC);
        }
        free(parent);
        free(path);
    }
    must(sums_fd >= 0 && files_open(&files, folder, &f) == 0);
    must(sums_make(&files, &right, &f) == 0);
}

/* What may be in a receipt leads nowhere out of its folder. */
static void check_name(const uint8_t *data, size_t size)
{
    char *name = xstrndup((const char *)data, size);
    if (layout_refuses(name) == NULL) {
        must(path_stays_inside(name) && strlen(name) <= RECEIPT_NAME_MAX);
    }
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err f = {0};
    if (sums_fd < 0) {
        make_once();
    }
    check_name(data, size);
    must(ftruncate(sums_fd, 0) == 0 && pwrite(sums_fd, data, size, 0) == (ssize_t)size);
    bool same = size == right.len && memcmp(data, right.buf, size) == 0;
    must((sums_check(&files, &f) == 0) == same && same == (f.msg[0] == '\0'));
    return 0;
}
