/*
 * What running a task through preregd costs beside running the same worker bare: the same tiny
 * worker (this executable with --work), as often, two at a time, through
 *   - posix_spawn in a loop, nothing written down;
 *   - GNU parallel;
 *   - preregd: lock and objects checked, two commits with FULL sync, a shim, start.json and
 *     exit.json on disk, the result verified and linked.
 * Ours is taken from the journal: first attempt started to last attempt ended.
 *
 * All of it happens on an ext4 made for it in memory, where the machine allows that: one without a
 * log, as / of many virtual machines is, takes up to half a millisecond to create a file for
 * minutes after others were deleted, so that each run would slow the next one.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"

#define REPEATS   3
#define N_QUICK   200
#define N_LONG    1000
#define AT_ONCE   2
#define LIMIT_MS  ((int64_t)300000)
#define IMAGE     "/dev/shm/preregd-bench-dispatch-%ld.img"
#define IMAGE_MIB 1024

extern char **environ;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_dispatch: %s\n", what);
    exit(1);
}

/* ---- the worker ---- */

static int work(void)
{
    struct strbuf task = STRBUF_INIT;
    struct err err;
    char id[40] = "none";
    const char *path = getenv("PREREG_TASK");
    if (path != NULL && file_read(path, 1 << 20, &task, &err) == 0) {
        const char *at = strstr(task.buf, "\"attempt\": \"");
        if (at != NULL) {
            (void)snprintf(id, sizeof(id), "%.36s", at + 12);
        }
    }
    strbuf_release(&task);
    char text[200];
    int n = snprintf(
        text, sizeof(text),
        "{\"protocol\":1,\"attempt\":\"%s\",\"metrics\":{\"acc\":{\"value\":0.5,\"n\":100}}}", id);
    char name[40] = "result.json";
    if (path == NULL) { /* all in one folder: overwriting a file costs ext4 a flush */
        (void)snprintf(name, sizeof(name), "result-%ld.json", (long)getpid());
    }
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, text, (size_t)n) == n;
    return ok ? 0 : 1;
}

/* ---- bare ---- */

static double bare_ms(const char *self, int n)
{
    char *name = xstrdup(self);
    char verb[] = "--work";
    char *argv[] = {name, verb, NULL};
    int running = 0;
    int64_t start = clock_mono_ns();
    for (int i = 0; i < n; i++) {
        pid_t pid;
        if (running == AT_ONCE && wait(NULL) > 0) {
            running--;
        }
        if (posix_spawn(&pid, self, NULL, NULL, argv, environ) != 0) {
            die("posix_spawn");
        }
        running++;
    }
    while (running > 0 && wait(NULL) > 0) {
        running--;
    }
    free(name);
    return (double)(clock_mono_ns() - start) / 1e6 / n;
}

static double parallel_ms(const char *self, int n)
{
    char *command = xasprintf("seq %d | parallel -j%d --will-cite -n0 %s --work", n, AT_ONCE, self);
    const char *argv[] = {"sh", "-c", command, NULL};
    struct proc_spec spec = {.argv = argv, .timeout_ms = LIMIT_MS, .max_out_bytes = 1 << 20};
    struct proc_result r;
    struct err err;
    int64_t start = clock_mono_ns();
    int rc = proc_run(&spec, &r, &err);
    double ms = rc == 0 && r.code == 0 ? (double)(clock_mono_ns() - start) / 1e6 / n : -1;
    proc_result_release(&r);
    free(command);
    return ms;
}

/* ---- ours ---- */

static void write_program(const char *path, const char *self, int n)
{
    struct strbuf t = STRBUF_INIT;
    struct err err;
    strbuf_adds(&t, "[program]\nname = \"dispatch\"\nschema = 1\nquestion = \"q\"\n"
                    "[[factor]]\nname = \"arm\"\nlevels = [\"a\", \"b\"]\n"
                    "[[factor]]\nname = \"seed\"\nreplicate = true\nlevels = [");
    for (int i = 0; i < n / 2; i++) {
        strbuf_addf(&t, "%d, ", i);
    }
    strbuf_addf(&t, "]\n[stage.t]\ncommand = [\"%s\", \"--work\"]\n", self);
    strbuf_adds(
        &t, "[stage.t.params]\narm = \"$arm\"\nseed = \"$seed\"\n"
            "[measure]\nm = { metric = \"t.acc\", items = 100, chance = 0.25, floor = 0.4 }\n"
            "[contrast]\narm = { between = { arm = [\"b\", \"a\"] }, over = \"counted\" }\n"
            "[counter]\nk = { contrast = \"arm\", clears = \"every_cell\", binds = true }\n"
            "[[input]]\nname = \"d\"\nlevels = [[\"up\", \"contrast.arm.mean > 0\"], "
            "[\"down\", \"otherwise\"]]\n"
            "[table]\ninputs = [\"d\"]\nrows = [[\"up\", \"O1\"], [\"down\", \"O2\"]]\n"
            "[outcome]\nO1 = { prior = 0.5, title = \"t\" }\nO2 = { prior = 0.4, title = \"u\" }\n"
            "[exclusion]\nbudget = 0.1\n");
    strbuf_addf(&t, "[run]\nslots = %d\n", AT_ONCE);
    if (file_write_atomic(path, t.buf, t.len, 0600, &err) != 0) {
        die(err.msg);
    }
    strbuf_release(&t);
}

static void run(const char *program, const char *a, const char *b, const char *c)
{
    const char *argv[] = {program, a, b, c, NULL};
    struct proc_spec spec = {.argv = argv, .timeout_ms = LIMIT_MS, .max_out_bytes = 1 << 20};
    struct proc_result r;
    struct err err;
    if (proc_run(&spec, &r, &err) != 0 || r.code != 0) {
        (void)fprintf(stderr, "%s %s: %s\n", program, a, r.err.buf);
        die("ours did not run");
    }
    proc_result_release(&r);
}

static int64_t time_of(const char *line)
{
    cJSON *o = NULL;
    const char *text = NULL;
    struct wall_time t = {0};
    struct err err;
    if (json_parse(line, strlen(line), &o, &err) != 0 ||
        json_get_string(o, "time", &text, &err) != 0 || !clock_wall_parse(text, &t)) {
        die("a journal line has no time");
    }
    cJSON_Delete(o);
    return t.ms;
}

/* First attempt started to last attempt ended. */
static double journal_span_ms(const char *state)
{
    struct name_list programs;
    struct strbuf text = STRBUF_INIT;
    struct err err;
    char *folder = path_join(state, "programs");
    int64_t first = -1;
    int64_t last = -1;
    if (dir_list(folder, &programs, &err) != 0 || programs.n != 1) {
        die("no program");
    }
    char *path = xasprintf("%s/%s/journal.jsonl", folder, programs.names[0]);
    if (file_read(path, (size_t)1 << 30, &text, &err) != 0) {
        die(err.msg);
    }
    char *save = NULL;
    for (char *line = strtok_r(text.buf, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (first < 0 && strstr(line, "\"attempt_started\"") != NULL) {
            first = time_of(line);
        } else if (strstr(line, "\"attempt_ended\"") != NULL) {
            last = time_of(line);
        }
    }
    strbuf_release(&text);
    name_list_release(&programs);
    free(path);
    free(folder);
    return (double)(last - first);
}

static double ours_ms(const char *bin, const char *self, int n, int repeat)
{
    struct err err;
    char *folder = xasprintf("ours-%d", repeat);
    char *state = path_absolute(NULL, folder);
    char *grid = xasprintf("%s/grid.toml", state);
    char *ctl = path_join(bin, "preregctl");
    char *daemon = path_join(bin, "preregd");
    if (dir_make(state, 0700, &err) != 0 || setenv("PREREGD_STATE", state, 1) != 0) {
        die("state");
    }
    write_program(grid, self, n);
    run(ctl, "lock", "--run", grid);
    run(daemon, "submit", grid, "--wait");
    run(ctl, "stop", NULL, NULL);
    double ms = journal_span_ms(state) / n;
    free(daemon);
    free(ctl);
    free(grid);
    free(state);
    free(folder);
    return ms;
}

/* ---- where ---- */

static bool tool(const char *const argv[])
{
    struct proc_spec spec = {.argv = argv, .timeout_ms = LIMIT_MS, .max_out_bytes = 1 << 20};
    struct proc_result r;
    struct err err;
    if (proc_run(&spec, &r, &err) != 0) {
        return false;
    }
    bool done = r.code == 0;
    proc_result_release(&r);
    return done;
}

/* Mounts the image at ./disk in a mount namespace of this process's own, with which it goes. */
static bool mount_image(const char *image)
{
    struct err err;
    const char *const make[] = {"mkfs.ext4", "-q", "-F", image, NULL};
    const char *const join[] = {"mount", "-o", "loop", image, "disk", NULL};
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           tool(make) && dir_make("disk", 0700, &err) == 0 && tool(join) && chdir("disk") == 0;
}

/* The image has no name once it is mounted. */
static void go_to_fresh_disk(void)
{
    char *image = xasprintf(IMAGE, (long)getpid());
    int fd = open(image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool made = fd >= 0 && ftruncate(fd, (off_t)IMAGE_MIB << 20) == 0 && mount_image(image);
    if (fd >= 0) {
        (void)close(fd);
        (void)unlink(image);
    }
    (void)printf("on %s\n",
                 made ? "a fresh ext4 in memory"
                      : "the file system of the working folder: no ext4 could be made and "
                        "mounted in memory (it needs root, mkfs.ext4 and /dev/shm)");
    (void)fflush(stdout);
    free(image);
}

/* ---- figures ---- */

static void print_figure(const char *name, const double values[REPEATS], double aim)
{
    (void)printf("{\"figure\":\"%s\",\"unit\":\"ms\",\"values\":[", name);
    for (int i = 0; i < REPEATS; i++) {
        (void)printf("%s%.3f", i == 0 ? "" : ",", values[i]);
    }
    if (aim > 0) {
        (void)printf("],\"aim\":%.1f}\n", aim);
    } else {
        (void)printf("]}\n");
    }
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[2], "--describe") == 0) {
        return 64; /* it does not */
    }
    if (argc > 1 && strcmp(argv[1], "--work") == 0) {
        return work();
    }
    const char *build = getenv("PREREGD_BUILD");
    if (build == NULL) {
        die("run it with tests/bench/run");
    }
    int n = argc > 1 && strcmp(argv[1], "--long") == 0 ? N_LONG : N_QUICK;
    char *bin = path_join(build, "bin");
    char *self = path_join(build, "bench/bench_dispatch");
    double bare[REPEATS];
    double parallel[REPEATS];
    double ours[REPEATS];
    double added[REPEATS];
    go_to_fresh_disk();
    for (int i = 0; i < REPEATS; i++) {
        bare[i] = bare_ms(self, n);
        ours[i] = ours_ms(bin, self, n, i);
        added[i] = ours[i] - bare[i];
    }
    /* Last: it deletes files of its own, which slows an ext4 without a log. */
    for (int i = 0; i < REPEATS; i++) {
        parallel[i] = parallel_ms(self, n);
    }
    print_figure("dispatch, per task: bare posix_spawn", bare, 0);
    if (parallel[0] > 0) {
        print_figure("dispatch, per task: GNU parallel", parallel, 0);
    }
    print_figure("dispatch, per task: preregd", ours, 0);
    print_figure("dispatch, per task: what preregd adds", added, 2.0);
    free(self);
    free(bin);
    return 0;
}
