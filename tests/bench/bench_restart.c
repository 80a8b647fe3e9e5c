/*
 * A daemon that comes back to a program of 100,000 tasks, three quarters of them done: time from
 * exec to its first answer on the socket, and its resident memory then. The state folder is made
 * through the store, as a daemon would have left it; the program is paused, so that nothing is
 * started.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/uuid.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/lock.h"
#include "state/store/store.h"

#define N_SEEDS   12500
#define N_STAGES  4
#define N_TASKS   (2 * N_SEEDS * N_STAGES)
#define N_DONE    (N_TASKS / 4 * 3)
#define BATCH     3000
#define N_REPEATS 3
#define WAIT_MS   60000

extern char **environ;

static void must(int rc, const struct err *err)
{
    if (rc != 0) {
        (void)fprintf(stderr, "bench restart: %s\n", err->msg);
        exit(1);
    }
}

static char *program_text(void)
{
    struct strbuf s = STRBUF_INIT;
    strbuf_adds(&s, "[program]\nname = \"many\"\nschema = 1\nquestion = \"How many?\"\n"
                    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"
                    "[[factor]]\nname = \"seed\"\nreplicate = true\nlevels = [1");
    for (int i = 2; i <= N_SEEDS; i++) {
        strbuf_addf(&s, ",%d", i);
    }
    strbuf_adds(&s, "]\n[data]\ncorpus = \"corpus.txt\"\n"
                    "[stage.train]\ncommand = [\"./worker.sh\"]\nparams = { data = \"corpus\", "
                    "seed = \"$seed\" }\n"
                    "[stage.train.when.arch]\nmoe = { experts = 4 }\n");
    for (int c = 'a'; c < 'a' + N_STAGES - 1; c++) {
        strbuf_addf(&s, "[stage.%c]\nafter = [\"train\"]\ncommand = [\"./worker.sh\"]\n", c);
    }
    strbuf_adds(&s,
                "[measure]\nacc = { metric = \"a.acc\", items = 100, chance = 0.25, floor = 0.3 }\n"
                "[contrast]\narch = { between = { arch = [\"moe\", \"dense\"] } }\n"
                "[counter]\nk = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n"
                "[[input]]\nname = \"cleared\"\nlevels = [[\"yes\", \"counter.k == 1\"], [\"no\", "
                "\"otherwise\"]]\n"
                "[table]\ninputs = [\"cleared\"]\nrows = [[\"yes\", \"O1\"], [\"no\", \"O2\"]]\n"
                "[outcome]\nO1 = { prior = 0.4, title = \"cleared\" }\nO2 = { prior = 0.5, title = "
                "\"not\" }\n");
    return strbuf_detach(&s);
}

static void write_text(const char *folder, const char *name, const char *text, mode_t mode)
{
    struct err err = {0};
    char *path = path_join(folder, name);
    must(file_write_atomic(path, text, strlen(text), mode, &err), &err);
    free(path);
}

static struct plan_program *make_program(const char *state, char **id, struct digest *root)
{
    struct err err = {0};
    struct diag diag;
    struct plan_program *p = NULL;
    struct lock *lock = NULL;
    char cwd[4096];
    char *text = program_text();
    if (getcwd(cwd, sizeof(cwd)) == NULL) {
        exit(1);
    }
    char *path = path_join(cwd, "grid.toml");
    write_text(cwd, "grid.toml", text, 0600);
    write_text(cwd, "corpus.txt", "Once upon a time.\n", 0600);
    write_text(cwd, "worker.sh", "#!/bin/sh\n", 0700);
    diag_init(&diag, path);
    must(program_load(path, &p, &diag, &err), &err);
    must(lock_build(p, NULL, NULL, &lock, &err), &err);
    *id = lock_program_id(lock);
    char *folder = xasprintf("%s/programs/%s", state, *id);
    char *lock_path = path_join(folder, "grid.toml.lock");
    char *origin = xasprintf("{\"schema\":1,\"path\":\"%s\"}", path);
    must(dir_make(folder, 0700, &err), &err);
    must(lock_write(lock, lock_path, false, &err), &err);
    write_text(folder, "grid.toml", text, 0600);
    write_text(folder, "origin.json", origin, 0600);
    must(digest_from_hex(lock->root, root, &err), &err);
    lock_free(lock);
    diag_release(&diag);
    free(origin);
    free(lock_path);
    free(folder);
    free(path);
    free(text);
    return p;
}

/* From ready to done and linked, as the core's rows would say it. */
static size_t rows_of_task(struct state_row *rows, uint32_t program, uint32_t task)
{
    struct task_row t;
    size_t n = 0;
    bool first_stage = task % N_STAGES == 0;
    struct state_row row = {.program = program, .task = task, .time = clock_wall()};
    attempt_row_init(&row.attempt);
    task_row_init(&t, TASK_READY);
    if (!first_stage) {
        rows[n] = row;
        rows[n].kind = ROW_TASK_READY;
        rows[n].from = TASK_WAITING;
        rows[n++].after = t;
    }
    static const struct {
        enum row_kind kind;
        enum task_state to;
        enum attempt_state attempt;
    } STEPS[] = {{ROW_ATTEMPT_STARTED, TASK_STARTING, ATTEMPT_STARTING},
                 {ROW_ATTEMPT_RUNNING, TASK_RUNNING, ATTEMPT_RUNNING},
                 {ROW_ATTEMPT_ENDED, TASK_DONE, ATTEMPT_ENDED},
                 {ROW_TASK_LINKED, TASK_DONE, ATTEMPT_ENDED}};
    row.attempt.no = t.n_attempts = 1;
    uuid_make(row.attempt.id);
    for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
        row.kind = STEPS[i].kind;
        row.from = t.state;
        t.state = STEPS[i].to;
        t.linked = row.kind == ROW_TASK_LINKED;
        row.after = t;
        row.attempt.state = STEPS[i].attempt;
        row.has_result = row.kind == ROW_ATTEMPT_ENDED;
        row.sealed = true;
        rows[n++] = row;
    }
    return n;
}

static void fill(struct store *store, uint32_t no)
{
    struct err err = {0};
    struct state_row *rows = xcalloc(BATCH + 8, sizeof(*rows));
    struct state_row pause = {
        .kind = ROW_PAUSED, .program = no, .status = {.paused = PAUSE_PERSON}};
    size_t n = 0;
    for (uint32_t task = 0; task < N_DONE; task++) {
        n += rows_of_task(rows + n, no, task);
        if (n >= BATCH || task + 1 == N_DONE) {
            must(store_begin(store, &err), &err);
            must(store_apply(store, rows, n, &err), &err);
            must(store_commit(store, &err), &err);
            n = 0;
        }
    }
    must(store_begin(store, &err), &err);
    must(store_apply(store, &pause, 1, &err), &err);
    must(store_commit(store, &err), &err);
    free(rows);
}

static void make_state(const char *state)
{
    struct err err = {0};
    struct store *store = NULL;
    struct digest root;
    uint32_t no = 0;
    char *id = NULL;
    must(store_open(state, STORE_OWNER, &store, &err), &err);
    struct plan_program *p = make_program(state, &id, &root);
    must(store_program_create(store, p, &(struct store_submission){id, root, clock_wall(), {0}},
                              &no, &err),
         &err);
    fill(store, no);
    store_close(store);
    program_free(p);
    free(id);
}

/* One whole request and its answer; false while nobody serves. */
static bool ping(const char *state)
{
    static const char REQUEST[] = "{\"schema\":1,\"id\":1,\"method\":\"status\",\"params\":{}}\n";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    char answer[4096];
    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/preregd.sock", state);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
              write(fd, REQUEST, sizeof(REQUEST) - 1) == (ssize_t)(sizeof(REQUEST) - 1);
    ssize_t n = ok ? read(fd, answer, sizeof(answer) - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (n <= 0) {
        return false;
    }
    answer[n] = '\0';
    return strstr(answer, "\"ok\":true") != NULL && strstr(answer, "\"many\"") != NULL;
}

static double resident_mib(pid_t pid)
{
    char path[64];
    char line[256];
    double kib = -1;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtod(line + 6, NULL);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kib / 1024;
}

static void measure(const char *daemon, const char *state, double *seconds, double *mib)
{
    char *argv[] = {(char[]){"preregd"}, (char[]){"serve"}, NULL};
    pid_t pid = 0;
    int status = 0;
    int64_t since_ns = clock_mono_ns();
    if (posix_spawn(&pid, daemon, NULL, NULL, argv, environ) != 0) {
        exit(1);
    }
    while (!ping(state)) {
        if ((clock_mono_ns() - since_ns) / 1000000 > WAIT_MS ||
            waitpid(pid, &status, WNOHANG) != 0) {
            (void)fprintf(stderr, "bench restart: the daemon does not serve\n");
            (void)kill(pid, SIGKILL);
            exit(1);
        }
        clock_sleep_ms(2);
    }
    *seconds = (double)(clock_mono_ns() - since_ns) / 1e9;
    *mib = resident_mib(pid);
    (void)kill(pid, SIGTERM);
    (void)waitpid(pid, &status, 0);
}

static void print_figure(const char *name, const char *unit, const double *values, double aim,
                         double limit)
{
    (void)printf("{\"figure\":\"%s\",\"unit\":\"%s\",\"values\":[", name, unit);
    for (int i = 0; i < N_REPEATS; i++) {
        (void)printf("%s%.3f", i > 0 ? "," : "", values[i]);
    }
    (void)printf("],\"aim\":%g,\"limit\":%g}\n", aim, limit);
}

int main(void)
{
    const char *build = getenv("PREREGD_BUILD");
    double seconds[N_REPEATS];
    double mib[N_REPEATS];
    struct err err = {0};
    if (build == NULL) {
        (void)fprintf(stderr, "bench restart: PREREGD_BUILD is not set\n");
        return 77;
    }
    char *daemon = path_join(build, "bin/preregd");
    char *state = path_absolute(NULL, "state");
    must(dir_make(state, 0700, &err), &err);
    (void)setenv("PREREGD_STATE", state, 1);
    (void)setenv("PREREGD_LOG", "warn", 1);
    make_state(state);
    for (int i = 0; i < N_REPEATS; i++) {
        measure(daemon, state, &seconds[i], &mib[i]);
    }
    print_figure("restart with 100,000 tasks, until it answers", "s", seconds, 2.0, 20.0);
    print_figure("resident memory then", "MiB", mib, 200.0, 400.0);
    free(daemon);
    free(state);
    return 0;
}
