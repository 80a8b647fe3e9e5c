/* What a client says whose daemon does not answer: the process that holds the folder, and what to
 * do with it. A child of the test holds the locks, and listens, as a daemon does. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/rpc/client.h"
#include "daemon/rpc/owner.h"
#include "daemon/rpc/schema.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

struct holder {
    char *state;
    char *lock;
    char *socket;
    pid_t pid;
};

static int setup(void **state)
{
    struct holder *h = xcalloc(1, sizeof(*h));
    h->state = scratch_make();
    h->lock = path_join(h->state, "state.lock");
    h->socket = path_join(h->state, LAYOUT_SOCKET);
    *state = h;
    return 0;
}

static int teardown(void **state)
{
    struct holder *h = *state;
    if (h->pid > 0) {
        (void)kill(h->pid, SIGKILL);
        (void)waitpid(h->pid, NULL, 0);
    }
    scratch_remove(h->state);
    free(h->socket);
    free(h->lock);
    free(h);
    return 0;
}

static void listen_and_say_nothing(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const int s = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    if (s < 0 || bind(s, (const struct sockaddr *)&addr, sizeof(addr)) != 0 || listen(s, 8) != 0) {
        _exit(1);
    }
}

/* Returns when it holds the folder. */
static void start_holder(struct holder *h, const char *name, bool listens, const char *noted)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    h->pid = fork();
    assert_true(h->pid >= 0);
    if (h->pid == 0) {
        struct err err;
        int lock = -1;
        const int folder = open(h->state, O_RDONLY | O_DIRECTORY);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)prctl(PR_SET_NAME, name);
        if (lock_try(h->lock, false, &lock, &err) != 0 || lock < 0 ||
            file_write_all(lock, noted, strlen(noted), &err) != 0) {
            _exit(1);
        }
        if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) != 0) {
            _exit(1);
        }
        if (listens) {
            listen_and_say_nothing(h->socket);
        }
        if (write(ready[1], "r", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            (void)pause();
        }
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
}

static void expect(const struct err *err, int code, const char *form, ...) PRINTF_LIKE(3, 4);

static void expect(const struct err *err, int code, const char *form, ...)
{
    char want[256];
    va_list args;
    va_start(args, form);
    (void)vsnprintf(want, sizeof(want), form, args);
    va_end(args);
    assert_int_equal(err->code, code);
    if (strstr(err->msg, want) == NULL) {
        fail_msg("\"%s\" does not hold \"%s\"", err->msg, want);
    }
}

static void open_fails(const struct holder *h, struct err *err)
{
    struct rpc_client *c = NULL;
    assert_int_equal(rpc_open(h->state, &c, err), ERR_NO_DAEMON);
    assert_null(c);
}

static void test_nobody(void **state)
{
    const struct holder *h = *state;
    struct err err;
    open_fails(h, &err);
    expect(&err, ERR_NO_DAEMON, "no daemon answers at %s (`preregd serve`", h->socket);
    /* A file that is left over holds nothing. */
    assert_int_equal(file_write_atomic(h->lock, "1\n", 2, 0600, &err), 0);
    open_fails(h, &err);
    expect(&err, ERR_NO_DAEMON, "no daemon answers at %s (`preregd serve`", h->socket);
}

static void test_no_socket(void **state)
{
    struct holder *h = *state;
    struct err err;
    start_holder(h, "preregd", false, "not a number\n");
    open_fails(h, &err);
    expect(&err, ERR_NO_DAEMON, "preregd (process %ld) does not listen at %s", (long)h->pid,
           h->socket);
    expect(&err, ERR_NO_DAEMON, "If not: `kill %ld`, then `preregd serve`", (long)h->pid);
    /* Without state.lock the folder's own lock tells. */
    assert_int_equal(unlink(h->lock), 0);
    open_fails(h, &err);
    expect(&err, ERR_NO_DAEMON, "preregd (process %ld)", (long)h->pid);
}

/* It was put to sleep: nothing else helps. */
static void test_stopped(void **state)
{
    struct holder *h = *state;
    struct err err;
    int status = 0;
    start_holder(h, "preregd", false, "");
    assert_int_equal(kill(h->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(h->pid, &status, WUNTRACED), h->pid);
    assert_true(WIFSTOPPED(status));
    open_fails(h, &err);
    expect(&err, ERR_NO_DAEMON, "is stopped and cannot answer: `kill -CONT %ld`", (long)h->pid);
}

static void test_silent(void **state)
{
    struct holder *h = *state;
    struct rpc_client *c = NULL;
    cJSON *answer = NULL;
    struct err err;
    start_holder(h, "preregd", true, "");
    assert_int_equal(rpc_open(h->state, &c, &err), 0);
    rpc_set_timeout(c, 50);
    assert_int_equal(rpc_call(c, "ping", NULL, &answer, &err), ERR_TIMEOUT);
    expect(&err, ERR_TIMEOUT, "preregd (process %ld) did not answer within 0.05 s", (long)h->pid);
    expect(&err, ERR_TIMEOUT, "`kill -9 %ld`", (long)h->pid);
    rpc_close(c);
}

/* A rebuild holds the folder, too. */
static void test_other(void **state)
{
    struct holder *h = *state;
    struct err err;
    start_holder(h, "preregctl) T 1", false, "");
    open_fails(h, &err);
    expect(&err, ERR_NO_DAEMON, "preregctl) T 1 (process %ld) holds %s; wait until it ends",
           (long)h->pid, h->state);
}

/* The same inode of another device is another file. */
static void test_locks(void **state)
{
    const char *const text = "1: FLOCK  ADVISORY  WRITE 11 fd:00:131 0 EOF\n"
                             "2: POSIX  ADVISORY  WRITE 12 08:01:131 0 EOF\n"
                             "2: -> FLOCK  ADVISORY  WRITE 13 08:01:131 0 EOF\n"
                             "3: FLOCK  ADVISORY  READ 14 08:01:131 0 EOF\n"
                             "4: FLOCK  ADVISORY  WRITE 15 08:01:1310 0 EOF\n"
                             "5: FLOCK  ADVISORY  WRITE 16 08:01:131 0 EOF\n";
    const struct {
        dev_t dev;
        ino_t ino;
        pid_t pid;
    } cases[] = {{makedev(8, 1), 131, 16},
                 {makedev(0xfd, 0), 131, 11},
                 {makedev(8, 1), 1310, 15},
                 {makedev(8, 2), 131, 0}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        char *copy = xstrdup(text);
        const struct stat st = {.st_dev = cases[i].dev, .st_ino = cases[i].ino};
        assert_int_equal(rpc_owner_in_locks(copy, &st), cases[i].pid);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks),
        cmocka_unit_test_setup_teardown(test_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_socket, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
