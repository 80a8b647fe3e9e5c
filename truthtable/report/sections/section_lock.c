/*
 * The section "The lock": when and with what the program was locked, root and head, signature, git
 * commit and time stamp. The signature is checked against the key that it names; everything that
 * needs a judgment of trust is left to `preregctl verify`.
 */

#include "truthtable/report/sections/sections.h"
#include "truthtable/report/verdict_words.h"

/* What the lock says of itself, and whether its signature holds. That it is by a key to be trusted,
 * and a stamp by an authority to be believed, is for `preregctl verify` to establish: it knows whom
 * its user trusts. */

/* Holds, fails or not checked, with the command that checks it. */
static void add_signature(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    const struct signature_seen *s = &m->trust.lock;
    struct arena *a = &d->arena;
    if (s->state == SIGNATURE_NONE) {
        doc_item(d, list, "signature", "none")->tone = TONE_WARN;
        return;
    }
    doc_item(d, list, "signed by the SSH key", s->fingerprint)->code = true;
    switch (s->state) {
    case SIGNATURE_HOLDS:
        (void)doc_item(d, list, "the signature",
                       "holds over this lock, by that key. Whose key it is was not checked here: "
                       "preregctl lock --verify --allowed-signers FILE GRID.TOML");
        break;
    case SIGNATURE_FAILS:
        doc_item(d, list, "the signature", arena_printf(a, "DOES NOT HOLD: %s", s->why))->tone =
            TONE_BAD;
        break;
    case SIGNATURE_UNCHECKED:
    case SIGNATURE_NONE:
        doc_item(d, list, "the signature",
                 arena_printf(a,
                              "NOT CHECKED (%s). To check it: preregctl lock --verify "
                              "--allowed-signers FILE GRID.TOML",
                              s->why))
            ->tone = TONE_WARN;
        break;
    }
}

/* An unclean working tree means that the commit does not hold what was locked. */
static void add_git(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    const cJSON *git = member(m->lock->json, "git");
    const char *commit = member_text(git, "commit");
    if (commit == NULL) {
        (void)doc_item(d, list, "git commit", "none on record");
        return;
    }
    doc_item(d, list, "git commit", commit)->code = true;
    const bool clean = cJSON_IsTrue(member(git, "clean"));
    doc_item(d, list, "git working tree",
             clean ? "clean: the commit holds what was locked"
                   : "NOT CLEAN: changes were there that the commit does not hold")
        ->tone = clean ? TONE_PLAIN : TONE_WARN;
}

/* A response is noted, not verified. */
static void add_stamp(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    struct doc_item *item =
        doc_item(d, list, "time stamp (RFC 3161)",
                 m->trust.stamp_response
                     ? "an authority's response is beside the lock. It was not checked here: "
                       "preregctl lock --verify --ca CERTIFICATES.pem GRID.TOML"
                 : m->trust.stamp_request ? "requested; no response is beside the lock"
                                          : "none");
    item->tone = m->trust.stamp_response ? TONE_PLAIN : TONE_WARN;
}

/* Signatures over a receipt are in the receipt, which is made of this report. */
static void add_release(struct doc *d, const struct report_model *m, struct doc_list *list)
{
    struct arena *a = &d->arena;
    const char *roles = NULL;
    for (size_t i = 0; i < ROLE_NR; i++) {
        if (m->program->release.required[i]) {
            roles = roles == NULL ? release_roles[i]
                                  : arena_printf(a, "%s, %s", roles, release_roles[i]);
        }
    }
    if (roles != NULL) {
        (void)doc_item(d, list, "release requires the signatures of reviewers",
                       arena_printf(a,
                                    "%s. They sign a receipt (preregctl sign --role), which holds "
                                    "this report: preregctl verify says who did",
                                    roles));
    }
}

/* Every digest in full, to be compared by hand. */
void section_lock(struct doc *d, const struct report_model *m)
{
    const cJSON *tool = member(m->lock->json, "tool");
    doc_section(d, "lock", "The lock");
    struct doc_list *list = doc_facts(d);
    (void)doc_item(d, list, "locked at, by its own clock", words_member(m->lock->json, "time"));
    (void)doc_item(d, list, "locked with",
                   arena_printf(&d->arena, "%s %s", words_member(tool, "name"),
                                words_member(tool, "version")));
    doc_item(d, list, "root (the locked program)", m->lock->root)->code = true;
    doc_item(d, list, "head (root and amendments)", m->lock->head)->code = true;
    add_signature(d, m, list);
    add_git(d, m, list);
    add_stamp(d, m, list);
    add_release(d, m, list);
}
