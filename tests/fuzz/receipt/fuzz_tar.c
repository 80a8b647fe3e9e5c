/* An archive, whatever it is: what is taken out are files that a receipt may have, in the folder
 * given, and nothing is written beside it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char scratch[] = "/dev/shm/fuzz-tar-XXXXXX";
static char *taken; /* the only thing in scratch */

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void clean_up(void)
{
    struct err ignored;
    (void)!dir_remove(scratch, &ignored);
    free(taken);
}

static void make_once(void)
{
    must(mkdtemp(scratch) != NULL);
    taken = path_join(scratch, "taken");
    (void)atexit(clean_up);
}

static void check_taken(int rc)
{
    struct receipt_files files;
    struct err f = {0};
    struct name_list names;
    struct err err;
    must(files_open(&files, taken, &f) == 0 && (rc != 0 || files.n > 0));
    files_release(&files);
    must(dir_list(scratch, &names, &err) == 0 && names.n == 1);
    name_list_release(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err f = {0};
    struct err err;
    char path[40];
    if (taken == NULL) {
        make_once();
    }
    int fd = memfd_create("tar", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    must(dir_make(taken, 0700, &err) == 0);
    int rc = tar_read(path, taken, &f);
    must(rc == f.code && (rc == 0) == (f.msg[0] == '\0'));
    check_taken(rc);
    must(dir_remove(taken, &err) == 0);
    (void)close(fd);
    return 0;
}
