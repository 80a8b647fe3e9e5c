#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/rng.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/train/fixture.h"

#define WORKER           TEST_BIN_DIR "/prereg-train"
#define CORPUS_SENTENCES 1200
#define SENTENCES_A_DOC  4

/* Sentences of a small grammar: something a model of a few thousand parameters can learn in a
 * second. */
static void add_sentence(struct strbuf *out, struct rng *r)
{
    static const char *const who[] = {"the cat", "a dog", "my aunt", "the old king"};
    static const char *const does[] = {"sees", "likes", "follows", "paints"};
    static const char *const what[] = {"a red ball", "the river", "two birds", "nothing"};

    strbuf_addf(out, "%s %s %s. ", who[rng_below(r, 4)], does[rng_below(r, 4)],
                what[rng_below(r, 4)]);
}

static void write_file(const char *path, const struct strbuf *text)
{
    struct err err = {0};

    if (file_write_atomic(path, text->buf, text->len, 0644, &err) < 0)
        fail_msg("%s", err.msg);
}

static void write_corpora(const struct fixture *f)
{
    struct strbuf jsonl = STRBUF_INIT, text = STRBUF_INIT;
    struct rng r;

    rng_seed(&r, 7);
    for (int i = 0; i < CORPUS_SENTENCES / SENTENCES_A_DOC; i++) {
        strbuf_adds(&jsonl, "{\"text\": \"");
        for (int j = 0; j < SENTENCES_A_DOC; j++) {
            add_sentence(&jsonl, &r);
            add_sentence(&text, &r);
        }
        strbuf_adds(&jsonl, "\"}\n");
        strbuf_adds(&text, "\n<|endoftext|>\n");
    }
    write_file(f->corpus, &jsonl);
    write_file(f->corpus_b, &text);
    strbuf_release(&jsonl);
    strbuf_release(&text);
}

int fixture_set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->folder = scratch_make();
    f->corpus = path_join(f->folder, "corpus.jsonl");
    f->corpus_b = path_join(f->folder, "corpus.txt");
    write_corpora(f);
    *state = f;
    return 0;
}

void fixture_forget(struct fixture *f)
{
    for (size_t i = 0; i < f->n_attempts; i++)
        free(f->attempts[i]);
    f->n_attempts = 0;
}

void fixture_forget_last(struct fixture *f)
{
    assert_true(f->n_attempts > 0 && f->n_apart < FIXTURE_ATTEMPTS_MAX);
    f->apart[f->n_apart++] = f->attempts[--f->n_attempts];
}

int fixture_tear_down(void **state)
{
    struct fixture *f = *state;

    fixture_forget(f);
    for (size_t i = 0; i < f->n_apart; i++)
        free(f->apart[i]);
    scratch_remove(f->folder);
    free(f->corpus);
    free(f->corpus_b);
    free(f);
    return 0;
}

static cJSON *data_entry(const char *path)
{
    cJSON *entry = json_object();

    json_put_string(entry, "path", path);
    return entry;
}

const char *fixture_attempt(struct fixture *f, const cJSON *params, double checkpoint_seconds)
{
    static int number;
    struct err err = {0};
    cJSON *task = json_object(), *data = json_object(), *resume = json_array();

    assert_true(f->n_attempts < FIXTURE_ATTEMPTS_MAX);
    char *folder = xasprintf("%s/attempt-%03d", f->folder, ++number);
    for (size_t i = f->n_attempts; i-- > 0;)
        json_push_string(resume, f->attempts[i]);
    f->attempts[f->n_attempts++] = folder;
    json_put(data, "a", data_entry(f->corpus));
    json_put(data, "b", data_entry(f->corpus_b));
    if (f->words != NULL)
        json_put(data, "words", data_entry(f->words));
    if (f->earlier != NULL)
        json_put(data, "earlier", data_entry(f->earlier));
    json_put_int(task, "protocol", 1);
    json_put_string(task, "attempt", folder);
    json_put_int(task, "attempt_no", (int64_t)f->n_attempts);
    json_put_int(task, "threads", 1);
    json_put(task, "params", json_copy(params));
    json_put(task, "data", data);
    json_put(task, "resume", resume);
    if (checkpoint_seconds >= 0.0)
        json_put_number(task, "checkpoint", checkpoint_seconds);
    char *path = path_join(folder, "task.json"), *log = path_join(folder, "stderr.log");
    assert_int_equal(dir_make(folder, 0755, &err), 0);
    assert_int_equal(json_write_file(path, task, 0644, &err), 0);
    /* There even when the worker is killed before it was one. */
    assert_int_equal(file_write_atomic(log, "", 0, 0644, &err), 0);
    free(log);
    free(path);
    cJSON_Delete(task);
    return folder;
}

static void exec_worker(const char *folder)
{
    if (chdir(folder) != 0 || setenv("PREREG_TASK", "task.json", 1) != 0 ||
        setenv("PREREG_EVENTS", "events.jsonl", 1) != 0 ||
        setenv("OPENBLAS_NUM_THREADS", "1", 1) != 0)
        _exit(120);
    int fd = open("stderr.log", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(121);
    (void)execl(WORKER, WORKER, (char *)NULL);
    _exit(122);
}

static pid_t start_worker(const char *folder)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        exec_worker(folder);
    return pid;
}

static struct attempt_end wait_worker(const char *folder, pid_t pid)
{
    struct attempt_end end = {.code = -1};
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        end.code = WEXITSTATUS(status);
    else
        end.signal = WTERMSIG(status);
    end.err = fixture_file(folder, "stderr.log");
    return end;
}

struct attempt_end fixture_run(const char *folder, int signo, int64_t delay_us)
{
    pid_t pid = start_worker(folder);

    if (signo != 0) {
        (void)usleep((useconds_t)delay_us);
        (void)kill(pid, signo);
    }
    return wait_worker(folder, pid);
}

struct attempt_end fixture_run_unwanted(const char *folder)
{
    sigset_t held;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)sigemptyset(&held);
        (void)sigaddset(&held, SIGTERM);
        if (sigprocmask(SIG_BLOCK, &held, NULL) != 0 || raise(SIGTERM) != 0)
            _exit(119);
        exec_worker(folder);
    }
    return wait_worker(folder, pid);
}

static void wait_for(const char *folder, pid_t pid, const char *text, int times)
{
    for (int ms = 0; fixture_events_count(folder, text) < times; ms++) {
        if (ms > 300000) {
            (void)kill(pid, SIGKILL);
            fail_msg("%s never said %s %d times", folder, text, times);
        }
        (void)usleep(1000);
    }
}

struct attempt_end fixture_run_until(const char *folder, const char *text, int times, int signo)
{
    pid_t pid = start_worker(folder);

    wait_for(folder, pid, text, times);
    (void)kill(pid, signo);
    return wait_worker(folder, pid);
}

struct attempt_end fixture_run_twice(const char *folder, const char *text, int times, int signo)
{
    pid_t pid = start_worker(folder);

    wait_for(folder, pid, text, times);
    (void)kill(pid, signo);
    (void)usleep(1000);
    (void)kill(pid, signo);
    return wait_worker(folder, pid);
}

int fixture_events_count(const char *folder, const char *text)
{
    char *path = path_join(folder, "events.jsonl");
    bool exists = file_kind_at(path) == FILE_REGULAR;
    int count = 0;

    free(path);
    if (!exists)
        return 0;
    struct strbuf events = fixture_file(folder, "events.jsonl");
    for (const char *at = events.buf; (at = strstr(at, text)) != NULL; at++)
        count++;
    strbuf_release(&events);
    return count;
}

void attempt_end_release(struct attempt_end *end)
{
    strbuf_release(&end->err);
}

struct strbuf fixture_file(const char *folder, const char *name)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char *path = path_join(folder, name);

    if (file_read(path, (size_t)1 << 28, &text, &err) < 0)
        fail_msg("%s", err.msg);
    free(path);
    return text;
}

struct strbuf fixture_outcome(const char *folder)
{
    static const char *const timings[] = {"step_seconds", "tokens_per_second", "peak_rss_bytes"};
    struct strbuf text = fixture_file(folder, "result.json"), out = STRBUF_INIT;
    struct err err = {0};
    cJSON *result = NULL;

    assert_int_equal(json_parse(text.buf, text.len, &result, &err), 0);
    cJSON *facts = cJSON_GetObjectItemCaseSensitive(result, "facts");
    for (size_t i = 0; i < ARRAY_LEN(timings); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(facts, timings[i]);
    cJSON_DeleteItemFromObjectCaseSensitive(result, "attempt");
    assert_int_equal(json_canonical(result, &out, &err), 0);
    cJSON_Delete(result);
    strbuf_release(&text);
    return out;
}

cJSON *fixture_params(const char *text)
{
    struct err err = {0};
    cJSON *params = NULL;
    char *copy = xstrdup(text);

    for (char *c = copy; *c != '\0'; c++)
        if (*c == '\'')
            *c = '"';
    if (json_parse(copy, strlen(copy), &params, &err) < 0)
        fail_msg("%s in %s", err.msg, text);
    free(copy);
    return params;
}

void reference_release(struct reference *ref)
{
    strbuf_release(&ref->model);
    strbuf_release(&ref->outcome);
}

void reference_assert_same(const struct reference *ref, const char *folder)
{
    struct strbuf model = fixture_file(folder, "model/model.bin");
    struct strbuf outcome = fixture_outcome(folder);

    assert_string_equal(outcome.buf, ref->outcome.buf);
    assert_int_equal(model.len, ref->model.len);
    assert_memory_equal(model.buf, ref->model.buf, model.len);
    strbuf_release(&model);
    strbuf_release(&outcome);
}
