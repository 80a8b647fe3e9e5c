/*
 * Verifies the three hashes of a samples line: SHA-256 of the document as Python's
 * json.dumps(indent=2) writes it, of the first request's text, and of str(target). The document is
 * laid out again from the line's own text, because a parsed number may have lost its spelling.
 * Hashes that cannot be recomputed here are not checked, never guessed.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/json/pyjson.h"
#include "truthtable/imported/judge.h"

static const char *const hash_keys[] = {"doc_hash", "prompt_hash", "target_hash"};

/* An error names the key and the first digits of both digests. */
static int compare(const char *key, const char *stored, const char *text, size_t len,
                   struct err *err)
{
    struct digest d = digest_bytes(text, len);
    char hex[DIGEST_HEX_SIZE];
    digest_hex(&d, hex);
    return strcmp(hex, stored) == 0
               ? 0
               : err_set(err, ERR_CORRUPT, "\"%s\" is %.12s…, the line gives %.12s…", key, stored,
                         hex);
}

/* A document with NaN or a number that is too large cannot be laid out again and is not checked. */
static int check_doc(const char *stored, const char *text, size_t len, struct err *err)
{
    struct span doc;
    struct strbuf laid_out = STRBUF_INIT;
    struct pyjson w;
    struct err ignored;
    int rc = 0;
    pyjson_init(&w, &laid_out, 2);
    if (text != NULL && span_member(text, len, "doc", &doc) &&
        pyjson_text(&w, doc.text, doc.len, &ignored) == 0) {
        rc = compare("doc_hash", stored, laid_out.buf, laid_out.len, err);
    }
    strbuf_release(&laid_out);
    return rc;
}

/* str() of a list or of a fraction is not recomputed here. */
static int check_target(const char *stored, const cJSON *target, struct err *err)
{
    char text[32];
    if (cJSON_IsString(target)) {
        return compare("target_hash", stored, target->valuestring, strlen(target->valuestring),
                       err);
    }
    if (cJSON_IsBool(target)) {
        const char *word = cJSON_IsTrue(target) ? "True" : "False";
        return compare("target_hash", stored, word, strlen(word), err);
    }
    if (!cJSON_IsNumber(target) || fabs(target->valuedouble) > (double)JSON_INT_MAX ||
        target->valuedouble != floor(target->valuedouble)) {
        return 0;
    }
    (void)snprintf(text, sizeof(text), "%.0f", target->valuedouble);
    struct err whole = {0};
    if (compare("target_hash", stored, text, strlen(text), &whole) == 0) {
        return 0;
    }
    /* 3 and 3.0 are one number here and two texts in Python */
    (void)snprintf(text, sizeof(text), "%.1f", target->valuedouble);
    return compare("target_hash", stored, text, strlen(text), err);
}

/* The stored hashes are also added to `all`, which must give the results file's task_hashes. */
int judge_hashes(const cJSON *line, const char *text, size_t len, struct digest_stream *all,
                 bool *has_hashes, struct err *err)
{
    const char *stored[3];
    const char *prompt = judge_prompt(line);
    *has_hashes = true;
    for (size_t i = 0; i < 3; i++) {
        const cJSON *v = json_member(line, hash_keys[i]);
        stored[i] = cJSON_IsString(v) ? v->valuestring : NULL;
        if (v != NULL && (stored[i] == NULL || strlen(stored[i]) != DIGEST_HEX_SIZE - 1)) {
            return err_set(err, ERR_SYNTAX, "\"%s\" is not a digest", hash_keys[i]);
        }
        *has_hashes = *has_hashes && stored[i] != NULL;
    }
    int rc = stored[0] == NULL ? 0 : check_doc(stored[0], text, len, err);
    if (rc != 0 ||
        (stored[1] != NULL && prompt != NULL &&
         (rc = compare("prompt_hash", stored[1], prompt, strlen(prompt), err)) != 0) ||
        (stored[2] != NULL &&
         (rc = check_target(stored[2], json_member(line, "target"), err)) != 0)) {
        return rc;
    }
    for (size_t i = 0; i < 3 && *has_hashes; i++) {
        digest_add(all, stored[i], strlen(stored[i]));
    }
    return 0;
}
