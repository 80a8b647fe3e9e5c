/* rerun CELL: trains and scores one cell again from the lock (ctl/rerun.c), compares it with
 * what was accepted, and prints the comparison. The daemon is not asked. Exit code 3: something
 * differs. */
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/ask.h"
#include "ctl/ctl.h"
#include "ctl/local_answers.h"
#include "ctl/receipt/rerun_file.h"
#include "ctl/rerun.h"
#include "ctl/text/out.h"

#define VALUE_BYTES 100

/* Announces a stage on stderr: a long training should at least show where it is. */
static void say_begins(const char *stage)
{
    terminal_printf(stderr, "preregctl: %s runs again\n", stage);
}

/* The number of entries with "same": true. */
static size_t count_same(const cJSON *list)
{
    const cJSON *o;
    size_t n = 0;
    cJSON_ArrayForEach(o, list)
    {
        n += answer_bool(o, "same");
    }
    return n;
}

/* A value on one line, cut at VALUE_BYTES. */
static void add_value(struct strbuf *sb, const cJSON *value)
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;
    if (value == NULL || cJSON_IsNull(value) || json_line(value, &text, &ignored) != 0) {
        strbuf_clear(&text);
        strbuf_adds(&text, "nothing");
    }
    /* cut at a whole character */
    const bool cut = text.len > VALUE_BYTES;
    if (cut) {
        text.len = text_whole_chars(text.buf, VALUE_BYTES);
        text.buf[text.len] = '\0';
    }
    out_line(sb, text.buf);
    strbuf_adds(sb, cut ? "..." : "");
    strbuf_release(&text);
}

/* The entries that are not the same, with both values. */
static void add_differing(struct strbuf *sb, const cJSON *list, const char *key)
{
    const cJSON *o;
    cJSON_ArrayForEach(o, list)
    {
        if (!answer_bool(o, "same")) {
            strbuf_adds(sb, "  ");
            out_line(sb, answer_text(o, key, "?")); /* a worker's word */
            strbuf_adds(sb, "\n    accepted  ");
            add_value(sb, json_member(o, "accepted"));
            strbuf_adds(sb, "\n    again     ");
            add_value(sb, json_member(o, "rerun"));
            strbuf_addc(sb, '\n');
        }
    }
}

/* A member of an environment in words. */
static const char *place_words(const char *member)
{
    static const char *const words[][2] = {{"blas", "BLAS"},
                                           {"core", "core of BLAS"},
                                           {"threads", "number of threads"},
                                           {"arithmetic", "version of the arithmetic"},
                                           {"instructions", "instruction set"}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(member, words[i][0]) == 0) {
            return words[i][1];
        }
    }
    return member;
}

/* How the machine differs from the one that made the accepted result. */
static void add_places(struct strbuf *sb, const cJSON *stage)
{
    const cJSON *environment = json_member(stage, "environment");
    const cJSON *name;
    cJSON_ArrayForEach(name, json_member(environment, "differs"))
    {
        strbuf_addf(sb, "  another %s\n    accepted  ", place_words(name->valuestring));
        add_value(sb, json_member(json_member(environment, "accepted"), name->valuestring));
        strbuf_adds(sb, "\n    again     ");
        add_value(sb, json_member(json_member(environment, "rerun"), name->valuestring));
        strbuf_addc(sb, '\n');
    }
}

/* One stage: how much is the same, then every difference in result and environment. */
static void add_stage(struct strbuf *sb, const struct term *t, const cJSON *stage)
{
    const cJSON *metrics = json_member(stage, "metrics");
    const cJSON *artifacts = json_member(stage, "artifacts");
    const bool same = answer_bool(stage, "same");
    out_styled(sb, t, same ? STYLE_GREEN : STYLE_RED, same ? "same   " : "DIFFERS");
    strbuf_addf(sb, "  %s: %zu of ", answer_text(stage, "stage", "?"), count_same(metrics));
    strbuf_add_count(sb, cJSON_GetArraySize(metrics), "metric", "metrics");
    strbuf_addf(sb, ", %zu of ", count_same(artifacts));
    strbuf_add_count(sb, cJSON_GetArraySize(artifacts), "artifact\n", "artifacts\n");
    add_differing(sb, metrics, "name");
    add_differing(sb, artifacts, "path");
    add_places(sb, stage);
}

/* Whether every stage that ran is the same, however many were left out. */
static bool is_same(const cJSON *file)
{
    const cJSON *stages = json_member(file, "stages");
    return (int)count_same(stages) == cJSON_GetArraySize(stages);
}

/* Whether RERUN_LEVEL_ELSEWHERE rests on PREREG_CPU alone: no stage ran on another processor. */
static bool is_same_processor(const cJSON *file)
{
    const cJSON *stage;
    bool same = strcmp(answer_text(file, "level", ""), RERUN_LEVEL_ELSEWHERE) == 0;
    cJSON_ArrayForEach(stage, json_member(file, "stages"))
    {
        const cJSON *both = json_member(stage, "environment");
        const char *was = answer_text(json_member(both, "accepted"), "cpu", "");
        same = same && was[0] != '\0' &&
               strcmp(was, answer_text(json_member(both, "rerun"), "cpu", "")) == 0;
    }
    return same;
}

/* The level of assurance that the rerun establishes, or why there is none. */
static void add_level(struct strbuf *sb, const struct term *t, const cJSON *file)
{
    const cJSON *name;
    const char *level = answer_text(file, "level", NULL);
    if (level != NULL) {
        out_styled(sb, t, STYLE_GREEN, level);
        strbuf_addf(sb, "  every stage of this cell gave the same again%s\n",
                    is_same_processor(file) ? ", by other instructions of the same processor" : "");
    } else if (!is_same(file)) {
        strbuf_adds(sb, "not \"" RERUN_LEVEL "\": something else came out\n");
    } else {
        strbuf_adds(sb, "the same as far as it ran; not \"" RERUN_LEVEL "\" without");
        cJSON_ArrayForEach(name, json_member(file, "left_out"))
        {
            strbuf_addf(sb, " %s", name->valuestring);
        }
        strbuf_addc(sb, '\n');
    }
}

/* The comparison stage by stage, the level, and where the files are. */
static void say(const struct rerun_made *made)
{
    struct term t = term_of_stdout();
    struct strbuf sb = STRBUF_INIT;
    const cJSON *stage;
    strbuf_addf(&sb, "%s of %s, again\n\n", answer_text(made->file, "cell", "?"),
                answer_text(made->file, "program", "?"));
    cJSON_ArrayForEach(stage, json_member(made->file, "stages"))
    {
        add_stage(&sb, &t, stage);
    }
    strbuf_addc(&sb, '\n');
    add_level(&sb, &t, made->file);
    strbuf_addf(&sb, "%s\n", made->path);
    if (made->kept != NULL) {
        strbuf_addf(&sb, "%s\n", made->kept);
    }
    out_text(&sb);
    strbuf_release(&sb);
}

/* The members of the rerun file, and its path. */
static int say_json(const struct rerun_made *made, struct err *err)
{
    cJSON *answer = json_copy(made->file);
    cJSON_DeleteItemFromObjectCaseSensitive(answer, "schema");
    json_put_bool(answer, "same", is_same(made->file));
    json_put_string(answer, "file", made->path);
    json_put_string(answer, "kept", made->kept);
    int rc = out_json(answer, err);
    cJSON_Delete(answer);
    return rc;
}

/* Without its cells there is nothing to compare with. What else is wrong is found later. */
static int check_kept(const struct ctl_options *o, struct err *err)
{
    struct local_program p;
    struct err ignored;
    int rc = local_program_find(o, o->program, &p, &ignored) != 0
                 ? 0
                 : local_check_cells(p.folder, "there is nothing to compare a cell with", err);
    local_program_release(&p);
    return rc;
}

int cmd_rerun(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct rerun_source src;
    struct rerun_made made = {0};
    const struct rerun_ask ask = {.state = o->state, .program = o->program, .cell = o->args[0]};
    const struct rerun_spec spec = {
        .stage = o->stage, .out = o->out, .keep = o->keep, .begins = o->json ? NULL : say_begins};
    int rc = check_kept(o, err);
    if (rc != 0) {
        return rc;
    }
    if ((rc = rerun_source_open(&src, &ask, err)) != 0 ||
        (rc = rerun_run(&src, &spec, &made, err)) != 0) {
        goto out;
    }
    /* a difference is an answer, not an error */
    *code = is_same(made.file) ? EXIT_OK : EXIT_LOCK;
    if (o->json) {
        rc = say_json(&made, err);
    } else {
        say(&made);
    }
out:
    rerun_made_release(&made);
    rerun_source_release(&src);
    return rc;
}
