/*
 * A worker for tests of the daemon: speaks the protocol, trains nothing. Params:
 *   "mode"   ok, crash_once, crash, no_result, garbage, nan, wrong_attempt, missing_metric, hang,
 *            orphan, memory, usage, unmeasurable, again_once, no_artifact, read_other
 *   "ms"     how long the work takes, in "steps" steps, with a checkpoint after each
 *   "value"  what the metric comes to: value + 0.001 * the sum of all steps done, so that work done
 *            twice or lost shows in the result
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"

struct fake {
    cJSON *task;
    const char *mode;
    const char *attempt;
    int64_t no;
    int64_t ms;
    int64_t steps;
    double value;
    int events;
    int64_t at; /* steps done */
    int64_t sum;
};

static volatile sig_atomic_t told_to_stop;

static void on_term(int sig)
{
    (void)sig;
    told_to_stop = 1;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "fake worker: %s\n", what);
    _exit(1);
}

static void say(const struct fake *f, const char *line)
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    strbuf_adds(&text, line);
    strbuf_addc(&text, '\n');
    if (file_write_all(f->events, text.buf, text.len, &err) != 0) {
        die(err.msg);
    }
    strbuf_release(&text);
}

static void say_progress(const struct fake *f, int64_t done)
{
    char line[160];
    (void)snprintf(line, sizeof(line),
                   "{\"type\":\"progress\",\"done\":%lld,\"total\":%lld,\"unit\":\"step\"}",
                   (long long)done, (long long)f->steps);
    say(f, line);
}

static void say_step(const struct fake *f, const char *type)
{
    char line[160];
    (void)snprintf(line, sizeof(line), "{\"type\":\"%s\",\"step\":%lld}", type, (long long)f->at);
    say(f, line);
}

static bool is(const struct fake *f, const char *mode)
{
    return strcmp(f->mode, mode) == 0;
}

static void read_task(struct fake *f)
{
    struct err err;
    const cJSON *params = NULL;
    const char *path = getenv("PREREG_TASK");
    const char *events = getenv("PREREG_EVENTS");
    if (path == NULL || events == NULL || json_read_file(path, 1 << 24, &f->task, &err) != 0 ||
        json_get_object(f->task, "params", &params, &err) != 0 ||
        json_get_string(f->task, "attempt", &f->attempt, &err) != 0 ||
        json_get_int(f->task, "attempt_no", 1, INT32_MAX, &f->no, &err) != 0) {
        die("no task");
    }
    f->mode = "ok";
    f->steps = 4;
    if (json_opt_string(params, "mode", &f->mode, &err) != 0 ||
        json_opt_int(params, "ms", 0, 600000, &f->ms, &err) != 0 ||
        json_opt_int(params, "steps", 1, 1000, &f->steps, &err) != 0 ||
        json_opt_number(params, "value", &f->value, &err) != 0) {
        die(err.msg);
    }
    f->events = open(events, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (f->events < 0) {
        die("no events file");
    }
}

/* The newest state any earlier attempt left: "<steps> <sum>" in checkpoint.txt, whole or not there.
 */
static void resume(struct fake *f)
{
    const cJSON *folder;
    cJSON_ArrayForEach(folder, json_member(f->task, "resume"))
    {
        char *path = path_join(folder->valuestring, "checkpoint.json");
        cJSON *o = NULL;
        struct err err;
        int64_t at = 0;
        int64_t sum = 0;
        if (json_read_file(path, 4096, &o, &err) == 0 &&
            json_get_int(o, "at", 0, 1000, &at, &err) == 0 &&
            json_get_int(o, "sum", 0, INT32_MAX, &sum, &err) == 0 && at > f->at) {
            f->at = at;
            f->sum = sum;
        }
        cJSON_Delete(o);
        free(path);
    }
    if (f->at > 0) {
        say_step(f, "resumed");
    }
}

static void checkpoint(const struct fake *f)
{
    struct err err;
    cJSON *o = json_object();
    json_put_int(o, "at", f->at);
    json_put_int(o, "sum", f->sum);
    if (json_write_file("checkpoint.json", o, 0600, &err) != 0) {
        die(err.msg);
    }
    cJSON_Delete(o);
    say_step(f, "checkpoint");
}

static void work(struct fake *f)
{
    say(f, "{\"type\":\"section\",\"name\":\"step\"}");
    while (f->at < f->steps) {
        clock_sleep_ms(f->ms / f->steps);
        f->at++;
        f->sum += f->at;
        say_progress(f, f->at);
        checkpoint(f);
        if (told_to_stop != 0) {
            _exit(75);
        }
        if (is(f, "crash_once") && f->no == 1 && f->at == 2) {
            abort();
        }
    }
}

/* What goes wrong before any work. */
static void misbehave_early(const struct fake *f)
{
    if (is(f, "crash")) {
        _exit(1);
    } else if (is(f, "usage")) {
        _exit(64);
    } else if (is(f, "unmeasurable")) {
        _exit(69);
    } else if (is(f, "again_once") && f->no == 1) {
        say_progress(f, 1);
        _exit(75);
    } else if (is(f, "garbage")) {
        for (int i = 0; i < 150; i++) {
            say(f, "this is not JSON");
        }
        clock_sleep_ms(20000);
    } else if (is(f, "hang")) {
        clock_sleep_ms(600000);
    } else if (is(f, "orphan")) {
        if (fork() == 0) {
            (void)setsid();
            clock_sleep_ms(600000);
            _exit(0);
        }
    } else if (is(f, "memory")) {
        for (int i = 0; i < 4000; i++) {
            char *p = xmalloc(1 << 20);
            memset(p, i, 1 << 20);
            clock_sleep_ms(1);
        }
    }
}

static void write_result(const struct fake *f)
{
    struct err err;
    cJSON *o = json_object();
    cJSON *metrics = json_object();
    cJSON *m = json_object();
    cJSON *facts = json_object();
    json_put_int(o, "protocol", 1);
    json_put_string(o, "attempt",
                    is(f, "wrong_attempt") ? "00000000-0000-4000-8000-000000000000" : f->attempt);
    json_put_number(m, "value", f->value + 0.001 * (double)f->sum);
    if (is(f, "nan")) {
        cJSON_Delete(cJSON_DetachItemFromObject(m, "value"));
        json_put_null(m, "value");
        json_put_string(m, "why", "not_finite");
    }
    json_put_int(m, "n", 1000);
    json_put(metrics, is(f, "missing_metric") ? "other" : "acc", m);
    json_put_int(facts, "steps", f->at);
    json_put(o, "metrics", metrics);
    json_put(o, "facts", facts);
    cJSON *artifacts = json_array();
    if (is(f, "no_artifact")) {
        cJSON *a = json_object();
        json_put_string(a, "path", "weights.bin");
        json_put_string(a, "sha256",
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        json_push(artifacts, a);
    }
    json_put(o, "artifacts", artifacts);
    cJSON *read = json_object();
    if (is(f, "read_other")) {
        json_put_string(read, "items",
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
    json_put(o, "read", read);
    if (json_write_file("result.json", o, 0600, &err) != 0) {
        die(err.msg);
    }
    cJSON_Delete(o);
}

int main(int argc, char **argv)
{
    struct fake f = {0};
    if (argc > 1 && strcmp(argv[1], "--describe") == 0) {
        return 64; /* it does not */
    }
    (void)signal(SIGTERM, on_term);
    read_task(&f);
    say(&f, "{\"type\":\"section\",\"name\":\"setup\"}");
    misbehave_early(&f);
    resume(&f);
    work(&f);
    if (!is(&f, "no_result")) {
        write_result(&f);
    }
    cJSON_Delete(f.task);
    return 0;
}
