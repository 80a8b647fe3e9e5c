/*
 * The section "Amendments and unblindings": the chain of amendments, every value they changed, and
 * every time scores were opened before the verdict. Amendments are shown whatever their standing;
 * post hoc changes are marked in words and tone. Keys are named, but not vouched for.
 */
#include <string.h>

#include "base/xalloc.h"
#include "prereg/amend/access_level.h"
#include "prereg/amend/amend_known.h"
#include "prereg/amend/amendment.h"
#include "truthtable/report/amendment_standing.h"
#include "truthtable/report/document/fmt.h"
#include "truthtable/report/sections/json_columns.h"
#include "truthtable/report/sections/row_columns.h"
#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

#define VALUE_CHARS  ((size_t)160) /* of a value in the table; the amendment's file has it whole */
#define DIGEST_CHARS ((size_t)12)
#define ARROW        "\xe2\x86\x92"

/* What was known when the amendment was made: the daemon's access level, and known results of
 * checks. */
static const char *level_words(struct arena *a, const cJSON *amendment)
{
    const char *name = member_text(amendment, "level");
    const size_t n_known = member_count(amendment, AMENDMENT_KNOWN);
    const char *words = name == NULL ? FMT_NONE : access_level_words(access_level_from_name(name));
    return n_known == 0
               ? words
               : arena_printf(a, "%s; %s", words,
                              fmt_plural(a, (int64_t)n_known, "result of an apparatus check",
                                         "results of apparatus checks"));
}

/* Who signed the amendment and whether the signature holds. The lock's own key is not spelled out
 * again. */
static const char *signer_of(struct arena *a, const struct report_model *m, size_t i)
{
    const struct signature_seen *s = &m->trust.amendments[i];
    if (s->state == SIGNATURE_NONE) {
        return "not signed";
    }
    const char *locks = m->trust.lock.fingerprint;
    bool same = locks != NULL && strcmp(locks, s->fingerprint) == 0;
    const char *key = same ? "the lock's key" : s->fingerprint;
    switch (s->state) {
    case SIGNATURE_HOLDS: return arena_printf(a, "%s; it holds", key);
    case SIGNATURE_FAILS: return arena_printf(a, "%s: DOES NOT HOLD", key);
    case SIGNATURE_NONE:
    case SIGNATURE_UNCHECKED: break;
    }
    return arena_printf(a, "%s; not checked", key);
}

/* Whether any change of the amendment is post hoc. */
static bool is_post_hoc(const cJSON *amendment)
{
    const cJSON *change = NULL;
    cJSON_ArrayForEach(change, member(amendment, "changes"))
    {
        if (amendment_change_is_post_hoc(amendment, change)) {
            return true;
        }
    }
    return false;
}

/* An amendment, or one of its changes. */
struct chain_row {
    struct json_row json;
    const char *known;
    struct row_cell signer;
    const char *head;
    const char *path;
    const char *from;
    const char *to;
    struct row_cell standing;
};

/* The amendments, one row each, in the order of the chain. */
static void add_list(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        JSON_COUNT("No.", "number"),
        JSON_TEXT("When", "time"),
        ROW_TEXT("What was known then", struct chain_row, known),
        JSON_TEXT("Reason, as given", "reason"),
        ROW_TONED("Signed by", struct chain_row, signer),
        ROW_TEXT("Head after it", struct chain_row, head),
    };
    struct doc_table *t = doc_table(d, "amendments",
                                    "The amendments, each a link of the chain that leads from the "
                                    "root to the head. What was known is as the daemon that owns "
                                    "the data knew it; whose the keys are was not checked here.",
                                    columns, ARRAY_LEN(columns));
    const cJSON *amendment = NULL;
    size_t i = 0;
    cJSON_ArrayForEach(amendment, m->amendments)
    {
        const bool fails = m->trust.amendments[i].state == SIGNATURE_FAILS;
        const struct chain_row row = {
            .json = {.of = amendment},
            .known = level_words(&d->arena, amendment),
            .signer = {.text = signer_of(&d->arena, m, i++), .tone = fails ? TONE_BAD : TONE_PLAIN},
            .head = fmt_cut(&d->arena, words_member(amendment, "head"), DIGEST_CHARS),
        };
        doc_row(d, t, &row)->tone = is_post_hoc(amendment) ? TONE_WARN : TONE_PLAIN;
    }
}

/* "plan.measure.mmlu.metric" without the plan, which nearly all begin with. */
static const char *path_of(struct arena *a, const cJSON *change)
{
    struct strbuf text = STRBUF_INIT;
    amendment_path_text(change, &text);
    bool in_plan = strncmp(text.buf, "plan.", 5) == 0;
    const char *kept = arena_strdup(a, text.buf + (in_plan ? 5 : 0));
    strbuf_release(&text);
    return kept;
}

/* A value before or after a change, cut for the table; "nothing" where there was none. */
static const char *value_of(struct arena *a, const cJSON *change, const char *key)
{
    const cJSON *v = member(change, key);
    return v == NULL ? "nothing" : fmt_cut(a, words_value(a, v), VALUE_CHARS);
}

/* Every change of every amendment, one row each. */
static void add_changes(struct doc *d, const struct report_model *m)
{
    static const struct doc_column columns[] = {
        JSON_COUNT("No.", "number"),
        ROW_TEXT("Value", struct chain_row, path),
        ROW_TEXT("From", struct chain_row, from),
        ROW_TEXT(ARROW " To", struct chain_row, to),
        ROW_FLAG("Standing", "post_hoc", struct chain_row, standing),
    };
    struct doc_table *t = doc_table(d, "amendment-changes", "What they changed, value by value.",
                                    columns, ARRAY_LEN(columns));
    const cJSON *amendment = NULL;
    cJSON_ArrayForEach(amendment, m->amendments)
    {
        const cJSON *change = NULL;
        cJSON_ArrayForEach(change, member(amendment, "changes"))
        {
            const bool post_hoc = amendment_change_is_post_hoc(amendment, change);
            const struct chain_row row = {
                .json = {.of = amendment},
                .path = path_of(&d->arena, change),
                .from = value_of(&d->arena, change, "from"),
                .to = value_of(&d->arena, change, "to"),
                .standing = {.text = post_hoc ? "POST HOC" : "in advance", .flag = post_hoc},
            };
            doc_row(d, t, &row)->tone = post_hoc ? TONE_WARN : TONE_PLAIN;
        }
    }
}

/* What preregd recorded. Files can be read without it, and the section says so. */
static void add_unblindings(struct doc *d, const struct report_model *m)
{
    const cJSON *list = member(m->provenance, "unblindings");
    doc_subsection(d, "Unblindings");
    if (m->imported != NULL) {
        doc_paragraph(d, "There was no seal to open: the records came from elsewhere.");
        return;
    }
    if (cJSON_GetArraySize(list) == 0) {
        doc_paragraph(d, "None through preregd. Reading the files oneself is possible and leaves "
                         "no trace here.");
        return;
    }
    struct doc_list *out = doc_list(d);
    const cJSON *v = NULL;
    cJSON_ArrayForEach(v, list)
    {
        doc_item(d, out, NULL, words_value(&d->arena, v))->tone = TONE_WARN;
    }
}

/* A program without amendments says so: the plan that ran is the one that was locked. */
void section_amendments(struct doc *d, const struct report_model *m)
{
    doc_section(d, "amendments", "Amendments and unblindings");
    if (m->program->supersedes != NULL) {
        doc_paragraph(d, "This program says that it supersedes the program whose root is %s.",
                      m->program->supersedes);
    }
    if (cJSON_GetArraySize(m->amendments) == 0) {
        doc_paragraph(d, "No amendment: the plan that was locked is the plan that was run.");
    } else {
        add_list(d, m);
        add_changes(d, m);
    }
    add_unblindings(d, m);
}
