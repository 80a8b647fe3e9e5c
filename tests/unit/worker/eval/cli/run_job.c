#include <math.h>

#include "base/files/file.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/eval/cli/run_job.h"
#include "worker/model/model.h"
#include "worker/model/store.h"

#define N_SUMS 2000

/* A description of the user's own, which differs from the shipped one in its metrics. */
#define OWN_TASK                                                                                   \
    "{\"task\":\"own\",\"about\":\"of the user\",\"kind\":\"choice\",\"version\":\"1\",\"split\":" \
    "\"test\",\"metrics\":[\"acc\"],\"forms\":[{\"context\":\"{query}\",\"choices\":\"{choices}"   \
    "\","                                                                                          \
    "\"gold\":\"{gold}\"}]}\n"

static const char *const subjects[] = {"anatomy", "astronomy", "marketing"};

static void make_model(const char *folder, uint64_t seed, double sd, bool broken,
                       bool other_tokenizer)
{
    const struct model_config cfg = {.layers = 1,
                                     .width = 16,
                                     .heads = 2,
                                     .kv_heads = 2,
                                     .ffn = 32,
                                     .vocab = 257,
                                     .context = 64,
                                     .tie_embeddings = true,
                                     .rope_theta = 10000.0,
                                     .norm_eps = 1e-5};
    struct err err = {0};
    struct weights w = {0};
    struct tokenizer *tok = NULL;
    char *inner = path_join(folder, MODEL_FOLDER);
    assert_int_equal(dir_make(inner, 0777, &err), 0);
    assert_int_equal(weights_init(&w, &cfg, &err), 0);
    weights_randomise(&w, seed, sd);
    if (broken)
        w.params[0] = NAN;
    assert_int_equal(tokenizer_open(TOKENIZER_BYTES, &tok, &err), 0);
    struct store_info info = {.tokenizer_spec = xstrdup("bytes"),
                              .tokenizer = tokenizer_digest(tok)};
    if (other_tokenizer)
        info.tokenizer.bytes[0] ^= 1;
    assert_int_equal(store_save(inner, &w, &info, &err), 0);
    store_info_release(&info);
    tokenizer_free(tok);
    weights_release(&w);
    free(inner);
}

int run_set_up(void **state)
{
    if (scratch_enter(state) != 0)
        return -1;
    make_model("model-a", 1, 0.5, false, false);
    make_model("model-b", 2, 0.5, false, false);
    /* Small weights: what it read last is what it says next, for ever. */
    make_model("model-loop", 1, 0.02, false, false);
    make_model("model-nan", 1, 0.5, true, false);
    make_model("model-tok", 1, 0.5, false, true);
    struct strbuf items = STRBUF_INIT;
    for (int i = 0; i < N_ITEMS; i++)
        strbuf_addf(&items,
                    "{\"query\":\"item %d asks for a letter:\",\"choices\":[\"a%d\",\"b\",\"c c\"],"
                    "\"gold\":%d}\n",
                    i, i * 7 % 10, i % 3);
    scratch_put(".", "data/choices.jsonl", items.buf);
    strbuf_release(&items);
    scratch_put(".", "data/bad.jsonl",
                "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n"
                "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":5}\n");
    scratch_put(".", "data/faulty.jsonl",
                "{\"query\":\"q\",\"choices\":[\"a\",\"b\"],\"gold\":0}\n"
                "{\"query\":\" \",\"choices\":[\"a\",\"b\"],\"gold\":1}\n");
    struct strbuf sums = STRBUF_INIT;
    for (int i = 0; i < N_SUMS; i++)
        strbuf_addf(&sums, "{\"question\":\"%d+1?\",\"answer\":\"#### %d\"}\n", i, i + 1);
    scratch_put(".", "data/manysums.jsonl", sums.buf);
    strbuf_release(&sums);
    scratch_put(".", "data/key.jsonl",
                "{\"item\":0,\"gold\":[0,1,2]}\n{\"item\":1,\"gold\":null}\n"
                "{\"line\":3,\"gold\":0}\n{\"line\":4,\"gold\":[1,2]}\n");
    scratch_put(".", "data/badkey.jsonl", "{\"item\":0,\"gold\":9}\n");
    scratch_put(".", "data/pages.jsonl",
                "{\"page\":\"one two three\"}\n{\"page\":\"four five\"}\n");
    scratch_put(".", "data/words.jsonl",
                "{\"text\":\"one two three\"}\n{\"text\":\"four five\"}\n"
                "{\"text\":\"six seven eight\"}\n");
    scratch_put(".", "data/own.jsonl", OWN_TASK);
    struct strbuf rows = STRBUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        char *name = xasprintf("data/subjects/test/%s_test.csv", subjects[i]);
        strbuf_clear(&rows);
        for (size_t k = 0; k < 3 + i; k++)
            strbuf_addf(&rows, "\"What is it, %zu?\",one,two,three,four,%c\n", k,
                        "ABCD"[k * i % 4]);
        scratch_put(".", name, rows.buf);
        free(name);
    }
    strbuf_release(&rows);
    scratch_put(".", "data/sums.jsonl",
                "{\"question\":\"1+1?\",\"answer\":\"#### 2\"}\n"
                "{\"question\":\"1+2?\",\"answer\":\"#### 3\"}\n");
    return 0;
}

void run_write_task(const struct job *job)
{
    static const char *const data[] = {"choices", "bad",   "faulty", "sums", "manysums", "key",
                                       "badkey",  "pages", "words",  "own",  "skewed"};
    char *here = path_absolute(NULL, ".");
    struct strbuf task = STRBUF_INIT;
    strbuf_addf(&task,
                "{\"protocol\":1,\"attempt\":\"x\",\"threads\":%d,\"params\":%s,\"inputs\":"
                "{\"train\":\"%s/%s\"},\"data\":{",
                job->threads == 0 ? 1 : job->threads, job->params, here,
                job->model == NULL ? "model-a" : job->model);
    for (size_t i = 0; i < ARRAY_LEN(data); i++)
        strbuf_addf(&task, "%s\"%s\":{\"path\":\"%s/data/%s.jsonl\"}", i == 0 ? "" : ",", data[i],
                    here, data[i]);
    strbuf_addf(&task, ",\"subjects\":{\"path\":\"%s/data/subjects\"}", here);
    strbuf_adds(&task, "},\"resume\":[");
    if (job->resume != NULL)
        strbuf_addf(&task, "\"%s/%s\"", here, job->resume);
    strbuf_adds(&task, "]");
    if (job->try_items > 0)
        strbuf_addf(&task, ",\"try\":{\"steps\":1,\"items\":%d}", job->try_items);
    strbuf_adds(&task, "}");
    char *path = path_join(job->folder, "task.json");
    scratch_put(".", path, task.buf);
    free(path);
    free(here);
    strbuf_release(&task);
}

struct end run_job(const struct job *job)
{
    static const char *const env[] = {"PREREG_TASK=task.json", "PREREG_EVENTS=events.jsonl",
                                      "PATH=/usr/bin:/bin", NULL};
    static const char program[] = TEST_BIN_DIR "/prereg-eval";
    const char *argv[] = {"timeout", "--preserve-status", "-s", "TERM", job->term_after, program,
                          NULL};
    struct proc_spec spec = {.argv = job->term_after == NULL ? &argv[5] : argv,
                             .env = env,
                             .cwd = job->folder,
                             .timeout_ms = job->kill_after_ms,
                             .max_out_bytes = 4096};
    struct proc_result result;
    struct err err = {0};
    struct end end = {0};
    run_write_task(job);
    if (proc_run(&spec, &result, &err) != 0 && err.code != ERR_TIMEOUT)
        fail_msg("%s", err.msg);
    assert_int_equal(result.out.len, 0); /* nothing on standard output, ever */
    end.code = result.code;
    end.signal = result.signal;
    (void)snprintf(end.said, sizeof(end.said), "%s", result.err.buf);
    proc_result_release(&result);
    return end;
}

void run_read_text(const char *folder, const char *name, struct strbuf *out)
{
    struct err err = {0};
    char *path = path_join(folder, name);
    strbuf_clear(out);
    if (file_read(path, 1u << 24, out, &err) != 0)
        fail_msg("%s", err.msg);
    free(path);
}

void run_assert_same_file(const char *a, const char *b, const char *name)
{
    struct strbuf x = STRBUF_INIT;
    struct strbuf y = STRBUF_INIT;
    run_read_text(a, name, &x);
    run_read_text(b, name, &y);
    assert_string_equal(x.buf, y.buf);
    strbuf_release(&x);
    strbuf_release(&y);
}

cJSON *run_read_metric(const char *folder, const char *name)
{
    struct err err = {0};
    cJSON *result = NULL;
    char *path = path_join(folder, "result.json");
    if (json_read_file(path, 1u << 20, &result, &err) != 0)
        fail_msg("%s", err.msg);
    const cJSON *found = json_member(json_member(result, "metrics"), name);
    cJSON *metric = found == NULL ? NULL : json_copy(found);
    cJSON_Delete(result);
    free(path);
    return metric;
}

void run_assert_event(const char *folder, const char *part)
{
    struct strbuf events = STRBUF_INIT;
    run_read_text(folder, "events.jsonl", &events);
    if (strstr(events.buf, part) == NULL)
        fail_msg("no '%s' among the events", part);
    strbuf_release(&events);
}
