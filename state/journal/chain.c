/* Computes hashes of rows by cutting the member "hash" out of their text, and compares them with
 * what the rows say. The only place in the tree where a row is hashed. */
#include "state/journal/chain.h"

#include <assert.h>
#include <string.h>

#include "base/json/json.h"

#define HASH_KEY "\"hash\":\""
#define KEY_LEN  (sizeof(HASH_KEY) - 1)
#define HEX_LEN  ((size_t)(DIGEST_HEX_SIZE - 1))

/* The member `"hash":"HASH",` of a text of canonical form. */
struct hash_member {
    const char *at; /* NULL: it has none */
    size_t len;
};

/* Other members cannot hold the same bytes: in a string the quotes are escaped, and an object with
 * the hash of its own row would be a fixed point of SHA-256. */
static struct hash_member find_member(const char *text, size_t len, const char *hash)
{
    const size_t hash_len = strlen(hash);
    const char *end = text + len;
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), HASH_KEY, KEY_LEN)) != NULL;
         at += KEY_LEN) {
        const char *value = at + KEY_LEN;
        if ((size_t)(end - value) >= hash_len + 2 && memcmp(value, hash, hash_len) == 0 &&
            memcmp(value + hash_len, "\",", 2) == 0) {
            return (struct hash_member){at, KEY_LEN + hash_len + 2};
        }
    }
    return (struct hash_member){NULL, 0};
}

/* SHA-256 over the hash before and the text without the member. */
static struct digest hash_without(const struct digest *prev, const char *text, size_t len,
                                  const struct hash_member *m)
{
    char hex[DIGEST_HEX_SIZE];
    const size_t before = (size_t)(m->at - text);
    struct digest_stream s;
    digest_start(&s);
    digest_hex(prev, hex);
    digest_add(&s, hex, HEX_LEN);
    digest_add(&s, text, before);
    digest_add(&s, m->at + m->len, len - before - m->len);
    return digest_finish(&s);
}

/* Whether the text, of canonical form, has the hash that it says; *out is what it has. */
static bool text_follows(const struct digest *prev, const char *text, size_t len, const char *hash,
                         struct digest *out)
{
    char hex[DIGEST_HEX_SIZE];
    const struct hash_member m = find_member(text, len, hash);
    if (m.at == NULL) {
        return false;
    }
    *out = hash_without(prev, text, len, &m);
    digest_hex(out, hex);
    return strcmp(hex, hash) == 0;
}

enum journal_fault journal_extend(struct journal_chain *chain, const struct journal_line *line,
                                  struct journal_link *link, struct strbuf *scratch,
                                  struct err *err)
{
    assert(chain != NULL && line != NULL && line->text != NULL && line->json != NULL);
    assert(link != NULL && scratch != NULL);
    *link = (struct journal_link){0};
    if (json_get_string(line->json, "hash", &link->said, err) != 0 ||
        json_get_int(line->json, "seq", 1, JSON_INT_MAX, &link->seq, err) != 0) {
        return JOURNAL_MEMBER;
    }
    strbuf_clear(scratch);
    if (json_canonical(line->json, scratch, err) != 0) {
        return JOURNAL_MEMBER;
    }
    link->is_canonical =
        scratch->len == line->len && memcmp(scratch->buf, line->text, line->len) == 0;
    if (link->seq != chain->n_rows + 1) {
        return JOURNAL_NUMBER;
    }
    if (!text_follows(&chain->head, scratch->buf, scratch->len, link->said, &link->hash)) {
        return JOURNAL_HASH;
    }
    chain->n_rows++;
    chain->head = link->hash;
    return JOURNAL_HOLDS;
}

bool journal_follows(const struct digest *prev, const char *text, size_t len, const char *hash,
                     struct strbuf *scratch)
{
    assert(prev != NULL && text != NULL && hash != NULL && scratch != NULL);
    struct digest found;
    struct err ignored;
    cJSON *json = NULL;
    if (text_follows(prev, text, len, hash, &found)) {
        return true;
    }
    bool same = false;
    if (json_parse(text, len, &json, &ignored) == 0) {
        strbuf_clear(scratch);
        same = json_canonical(json, scratch, &ignored) == 0 &&
               text_follows(prev, scratch->buf, scratch->len, hash, &found);
    }
    cJSON_Delete(json);
    return same;
}

int journal_seal(struct journal_chain *chain, cJSON *row, struct strbuf *out, struct err *err)
{
    assert(chain != NULL && row != NULL && out != NULL);
    assert(json_member(row, "seq") == NULL && json_member(row, "hash") == NULL);
    char hex[DIGEST_HEX_SIZE];
    const size_t from = out->len;
    digest_hex(&(struct digest){{0}}, hex); /* holds the place of the hash */
    json_put_int(row, "seq", chain->n_rows + 1);
    json_put_string(row, "hash", hex);
    int rc = json_canonical(row, out, err);
    if (rc != 0) {
        return rc;
    }
    char *text = out->buf + from;
    const size_t len = out->len - from;
    if (len > JOURNAL_LINE_MAX) {
        text[0] = '\0';
        out->len = from;
        return err_set(err, ERR_RANGE, "a row of %zu bytes is too long for the journal", len);
    }
    const struct hash_member m = find_member(text, len, hex);
    assert(m.at != NULL);
    chain->head = hash_without(&chain->head, text, len, &m);
    chain->n_rows++;
    digest_hex(&chain->head, hex);
    memcpy(text + (m.at - text) + KEY_LEN, hex, HEX_LEN);
    return 0;
}
