#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/text/status_text.h"
#include "tests/unit/check.h"

static const struct term plain = {.columns = 80};
static const struct term utf8 = {.utf8 = true, .columns = 80};
static const struct term coloured = {
    .colour = true, .utf8 = true, .is_terminal = true, .columns = 80};

/* An answer of `status` in the middle of a run, as docs/rpc.md has it. */
static const char summary_text[] =
    "{\"id\":\"first_light-1a2b3c4d\",\"name\":\"first_light\",\"question\":\"Which one?\","
    "\"root\":\"1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f809\","
    "\"state\":\"running\",\"paused_by\":null,\"paused_why\":null,\"sealed\":true,\"open\":["
    "\"measure loss\"],\"unblinded\":"
    "false,"
    "\"n_cells\":3,\"stages\":[\"train\",\"grammar\"],"
    "\"tasks\":{\"planned\":6,\"waiting\":1,\"ready\":0,\"backoff\":1,\"starting\":0,\"running\":1,"
    "\"done\":1,\"blocked\":1,\"never_run\":1},"
    "\"counted\":{\"planned\":6,\"done\":1,\"blocked\":1,\"never_run\":1,\"excluded\":1,\"budget\":"
    "0},"
    "\"causes\":{\"oom\":1,\"dependency\":1},\"attempts\":5,\"garbage_lines\":2,"
    "\"elapsed_ms\":61000,\"eta_ms\":130000,"
    "\"not_running\":[{\"why\":\"dependency\",\"tasks\":1},{\"why\":\"backoff\",\"tasks\":1}],"
    "\"verdict\":null,\"report\":null}";

static const char cells_text[] =
    "[{\"name\":\"arch=dense,seed=1\",\"tasks\":["
    "{\"stage\":\"train\",\"state\":\"done\",\"cause\":null,\"attempts\":1,\"done\":9,\"total\":9},"
    "{\"stage\":\"grammar\",\"state\":\"backoff\",\"cause\":null,\"attempts\":2,\"done\":0,"
    "\"total\":0}]},"
    "{\"name\":\"arch=moe,seed=1\",\"tasks\":["
    "{\"stage\":\"train\",\"state\":\"running\",\"cause\":null,\"attempts\":1,\"done\":45,"
    "\"total\":100},"
    "{\"stage\":\"grammar\",\"state\":\"waiting\",\"cause\":null,\"attempts\":0,\"done\":0,"
    "\"total\":0}]},"
    "{\"name\":\"arch=moe,seed=2\",\"tasks\":["
    "{\"stage\":\"train\",\"state\":\"blocked\",\"cause\":\"oom\",\"attempts\":3,\"done\":0,"
    "\"total\":0},"
    "{\"stage\":\"grammar\",\"state\":\"never_run\",\"cause\":\"dependency\",\"attempts\":0}]}]";

static cJSON *parse(const char *text)
{
    cJSON *v = NULL;
    struct err err = {0};
    if (json_parse(text, strlen(text), &v, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return v;
}

static void test_whole(void **state)
{
    (void)state;
    cJSON *summary = parse(summary_text);
    cJSON *cells = parse(cells_text);
    struct strbuf sb = STRBUF_INIT;
    status_program(&sb, &utf8, summary, cells, 0);
    assert_string_equal(
        sb.buf,
        "first_light-1a2b3c4d  running  1 min 1 s  root 1a2b3c4d5e6f7081…\n"
        "Which one?\n"
        "\n"
        "cell               train      grammar\n"
        "arch=dense,seed=1  ✔          ↻ (2)\n"
        "arch=moe,seed=1    ▶ 45%      ·\n"
        "arch=moe,seed=2    ✖ oom (3)  – dependency\n"
        "\n"
        "1 of 6 tasks done · 1 running · 1 in backoff · 1 waiting · 1 blocked · 1 never run "
        "(oom 1, dependency 1) · 2 min 10 s left\n"
        "counted: 1 of 6 done · 1 excluded of 0 allowed · not all scores are sealed\n"
        "NOT sealed, though the table reads it: measure loss\n"
        "not running: 1 wait for an earlier stage · 1 wait before the next attempt\n"
        "workers wrote 2 lines that are not events (`preregctl explain TASK`)\n");
    strbuf_release(&sb);
    cJSON_Delete(summary);
    cJSON_Delete(cells);
}

/* What [run] had to do with the losses: known, and not. */
static void test_narrower(void **state)
{
    static const struct {
        const char *counted;
        const char *line;
    } cases[] = {
        {"\"excluded\":1,\"narrower\":0", "1 excluded of 2 allowed · scores"},
        {"\"excluded\":0,\"narrower\":1",
         "0 excluded of 2 allowed · 1 lost under narrower [run] limits, not excluded · scores"},
        {"\"excluded\":1,\"narrower\":null", "up to 1 excluded of 2 allowed · scores"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].counted);
        struct strbuf sb = STRBUF_INIT;
        char *text = xasprintf("{\"id\":\"b-2\",\"counted\":{\"planned\":6,%s,\"budget\":2}}",
                               cases[i].counted);
        cJSON *summary = parse(text);
        status_program(&sb, &utf8, summary, NULL, 0);
        if (strstr(sb.buf, cases[i].line) == NULL) {
            fail_msg("%s is not in %s", cases[i].line, sb.buf);
        }
        strbuf_release(&sb);
        cJSON_Delete(summary);
        free(text);
    }
}

static void test_amended_and_superseded(void **state)
{
    (void)state;
    cJSON *summary = parse("{\"id\":\"b-2\",\"state\":\"running\",\"root\":\"22\",\"head\":\"33\","
                           "\"amendments\":2,\"supersedes\":\"11\",\"supersedes_program\":\"a-1\","
                           "\"superseded_by\":[\"c-3\",\"d-4\"]}");
    struct strbuf sb = STRBUF_INIT;
    status_program(&sb, &utf8, summary, NULL, 0);
    assert_non_null(strstr(sb.buf, "amended 2 times, head 33 (`preregctl diff`)\nsupersedes a-1\n"
                                   "superseded by c-3\nsuperseded by d-4\n"));
    cJSON_DeleteItemFromObjectCaseSensitive(summary, "supersedes_program");
    json_put_null(summary, "supersedes_program"); /* it is not here */
    strbuf_clear(&sb);
    status_program(&sb, &utf8, summary, NULL, 0);
    assert_non_null(strstr(sb.buf, "supersedes 11\n"));
    strbuf_release(&sb);
    cJSON_Delete(summary);
}

static void test_without_utf8(void **state)
{
    (void)state;
    cJSON *summary = parse(summary_text);
    cJSON *cells = parse(cells_text);
    struct strbuf sb = STRBUF_INIT;
    status_program(&sb, &plain, summary, cells, 2);
    for (size_t i = 0; i < sb.len; i++) {
        assert_true((unsigned char)sb.buf[i] < 128);
    }
    assert_non_null(strstr(sb.buf, "arch=moe,seed=1    > 45%  .\n"));
    assert_null(strstr(sb.buf, "seed=2"));
    assert_non_null(strstr(sb.buf, "and 1 more cell ("));
    strbuf_release(&sb);
    cJSON_Delete(summary);
    cJSON_Delete(cells);
}

static void test_colour_only_where_asked(void **state)
{
    (void)state;
    cJSON *summary = parse(summary_text);
    cJSON *cells = parse(cells_text);
    struct strbuf sb = STRBUF_INIT;
    status_program(&sb, &coloured, summary, cells, 0);
    assert_non_null(strstr(sb.buf, "\033[32m✔\033[0m"));
    assert_non_null(strstr(sb.buf, "\033[31m✖ oom (3)\033[0m"));
    strbuf_clear(&sb);
    status_program(&sb, &utf8, summary, cells, 0);
    assert_null(strchr(sb.buf, '\033'));
    strbuf_release(&sb);
    cJSON_Delete(summary);
    cJSON_Delete(cells);
}

static void test_paused_and_finished(void **state)
{
    (void)state;
    cJSON *summary = parse(summary_text);
    struct strbuf sb = STRBUF_INIT;
    cJSON_ReplaceItemInObjectCaseSensitive(summary, "paused_by", cJSON_CreateString("no_space"));
    cJSON_ReplaceItemInObjectCaseSensitive(summary, "paused_why", cJSON_CreateString("4 MiB free"));
    cJSON_ReplaceItemInObjectCaseSensitive(summary, "eta_ms", cJSON_CreateNull());
    status_program(&sb, &utf8, summary, NULL, 0);
    assert_non_null(strstr(sb.buf, "paused (no_space): 4 MiB free"));
    assert_non_null(strstr(sb.buf, "time left unknown yet"));
    assert_null(strstr(sb.buf, "arch="));
    assert_non_null(strstr(sb.buf, "continues by itself when there is room again"));

    cJSON_ReplaceItemInObjectCaseSensitive(summary, "paused_by", cJSON_CreateString("user"));
    cJSON_ReplaceItemInObjectCaseSensitive(summary, "paused_why", cJSON_CreateNull());
    (void)cJSON_AddStringToObject(summary, "history", "checking");
    strbuf_clear(&sb);
    status_program(&sb, &utf8, summary, NULL, 0);
    assert_non_null(strstr(sb.buf, "paused (user); `preregctl resume"));
    assert_non_null(strstr(sb.buf, "its journal is being checked"));
    (void)cJSON_AddStringToObject(summary, "history_why", "read j: Input/output error");
    strbuf_clear(&sb);
    status_program(&sb, &utf8, summary, NULL, 0);
    assert_non_null(strstr(sb.buf, "its journal cannot be checked, verdict and report wait for "
                                   "that: read j: Input/output error\n"));

    cJSON_ReplaceItemInObjectCaseSensitive(summary, "paused_by", cJSON_CreateString("failures"));
    cJSON_ReplaceItemInObjectCaseSensitive(summary, "paused_why", cJSON_CreateString("no torch"));
    strbuf_clear(&sb);
    status_program(&sb, &utf8, summary, NULL, 0);
    assert_non_null(strstr(sb.buf, "paused (failures): no torch\n"));
    assert_non_null(strstr(sb.buf, "`preregctl resume first_light-1a2b3c4d` tries"));
    assert_non_null(strstr(sb.buf, "resume --accept-failures first_light-1a2b3c4d`"));
    cJSON_ReplaceItemInObjectCaseSensitive(summary, "paused_by", cJSON_CreateString("data"));
    strbuf_clear(&sb);
    status_program(&sb, &utf8, summary, NULL, 0);
    assert_non_null(strstr(sb.buf, "continues by itself"));
    assert_null(strstr(sb.buf, "resume"));

    cJSON_ReplaceItemInObjectCaseSensitive(summary, "paused_by", cJSON_CreateNull());
    cJSON_ReplaceItemInObjectCaseSensitive(summary, "state", cJSON_CreateString("finishing"));
    cJSON_ReplaceItemInObjectCaseSensitive(summary, "paused_why",
                                           cJSON_CreateString("prior: locked"));
    strbuf_clear(&sb);
    status_program(&sb, &utf8, summary, NULL, 0);
    assert_non_null(strstr(sb.buf, "no verdict: prior: locked"));

    cJSON_ReplaceItemInObjectCaseSensitive(summary, "state", cJSON_CreateString("finished"));
    cJSON_ReplaceItemInObjectCaseSensitive(
        summary, "verdict",
        parse("{\"kind\":\"void\",\"outcome\":null,\"exit_code\":7,\"path\":\"/s/verdict.json\"}"));
    cJSON_ReplaceItemInObjectCaseSensitive(summary, "report", cJSON_CreateString("/s/report.html"));
    strbuf_clear(&sb);
    status_program(&sb, &utf8, summary, NULL, 0);
    assert_non_null(strstr(sb.buf, "verdict: VOID  (/s/verdict.json)"));
    assert_non_null(strstr(sb.buf, "report:  /s/report.html"));
    assert_null(strstr(sb.buf, " left"));
    strbuf_release(&sb);
    cJSON_Delete(summary);
}

/* An answer with nothing in it draws something and does not fall over. */
static void test_empty_answer(void **state)
{
    (void)state;
    cJSON *nothing = json_object();
    cJSON *no_cells = json_array();
    struct strbuf sb = STRBUF_INIT;
    status_program(&sb, &utf8, nothing, no_cells, 0);
    status_list(&sb, &utf8, NULL);
    status_daemon(&sb, &utf8, nothing);
    assert_non_null(strstr(sb.buf, "0 of 0 tasks done"));
    strbuf_release(&sb);
    cJSON_Delete(nothing);
    cJSON_Delete(no_cells);
}

/* Attempts that Slurm has take no slot here, and are named only where there are some. */
static void test_daemon_line(void **state)
{
    (void)state;
    cJSON *ping = parse("{\"pid\":7,\"version\":\"0.1.0\",\"state\":\"/s\",\"queued\":400,"
                        "\"slots\":{\"total\":2,\"used\":1}}");
    struct strbuf sb = STRBUF_INIT;
    status_daemon(&sb, &utf8, ping);
    assert_non_null(strstr(sb.buf, "1 of 2 slots used, 400 attempts in Slurm\n"));
    cJSON_ReplaceItemInObjectCaseSensitive(ping, "queued", cJSON_CreateNumber(0));
    strbuf_clear(&sb);
    status_daemon(&sb, &utf8, ping);
    assert_non_null(strstr(sb.buf, "1 of 2 slots used\n"));
    strbuf_release(&sb);
    cJSON_Delete(ping);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_narrower),
        cmocka_unit_test(test_amended_and_superseded),
        cmocka_unit_test(test_without_utf8),
        cmocka_unit_test(test_colour_only_where_asked),
        cmocka_unit_test(test_paused_and_finished),
        cmocka_unit_test(test_empty_answer),
        cmocka_unit_test(test_daemon_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
