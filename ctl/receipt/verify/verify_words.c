/* The words of an answer: the sentence of docs/receipts.md, and what this receipt does not show,
 * chosen by its facts. Nothing is listed as shown here that a step did not establish. */
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "prereg/lock/imported.h"

#define SENTENCE                                                                                   \
    "Nothing proves that no data existed before the lock: a run by hand or a second state folder " \
    "leaves no trace here."

/* What the receipt cannot show about the records. */
static void about_records(const struct verifying *v, cJSON *list)
{
    if (v->imported) {
        json_push_string(list, "Nothing was run by preregd: the records are those of the imported "
                               "files.");
        if (imported_lock(v->lock)) {
            json_push_string(list, "The plan was locked when its records already existed: this is "
                                   "not a pre-registration.");
        }
        return;
    }
    json_push_string(list, "That the workers which the lock pins gave these results: only running "
                           "a cell again shows it (`preregctl rerun`).");
    if (v->reruns->child != NULL) {
        json_push_string(
            list, v->is_vouched ? "That the rerun files state the true results: they are the word "
                                  "of their writer and of the signers of SHA256SUMS."
                                : "That the rerun files state the true results: they are the word "
                                  "of their writer, for whom no signature vouches.");
    }
    json_push_string(list,
                     "Hosts, processors, kernels, memory and times of attempts are the daemon's "
                     "word; the BLAS and threads that a result states were compared.");
    json_push_string(list,
                     "That no person read a sealed score in the files: reading leaves no trace.");
    if (v->works.rests_on != NULL) {
        char text[400];
        (void)snprintf(text, sizeof(text),
                       "That all names of a work ([[same_work]]) ask the same: %.300s.",
                       v->works.rests_on);
        json_push_string(list, text);
    }
    if (v->other_workers) {
        json_push_string(list,
                         "That the workers were those of the lock: attempts ran others, which the "
                         "plan allows ([pin] workers = \"record\").");
    }
    if (v->lacks_again) {
        json_push_string(list, "That the apparatus was the same after the last evaluation: the "
                               "checks were not run again, as by versions that did not do so.");
    }
    if (v->history.unverified) {
        json_push_string(list, "UNVERIFIED HISTORY: the journal may be incomplete: rows of it were "
                               "lost, broken, or rebuilt from the cells' files.");
    }
    if (v->history.status.unblinded) {
        json_push_string(list, "That the plan's later steps were blind: the scores were opened "
                               "before the end, as the journal says.");
    }
}

/* What it cannot show about who made it, and when. */
static void about_maker(const struct verifying *v, cJSON *list)
{
    if (!v->is_signed) {
        json_push_string(list, "Who made the plan: lock and amendments do not all carry the "
                               "signature of an allowed signer.");
    }
    if (!v->is_vouched) {
        json_push_string(list, "Who made the records: as long as no allowed signer signed "
                               "SHA256SUMS, anyone can make another set of these files, journal, "
                               "records, verdict and sums together, that follows as well.");
    }
    if (!v->is_stamped) {
        json_push_string(list, "When it was made: the times are its maker's word.");
    } else {
        json_push_string(list, "That the first attempt started after the time stamp: when attempts "
                               "started is their maker's word.");
    }
}

/* What remains when the scores were counted again from their items. */
static void about_items(const struct verifying *v, cJSON *list)
{
    const struct receipt_items *it = &v->items;
    char text[400];
    json_push_string(list, "That the items are what the models answered: only running a cell again "
                           "shows it.");
    json_push_string(list, "The data and the workers: only their digests are here.");
    if (it->n_uncounted > 0) {
        (void)snprintf(text, sizeof(text),
                       "That %zu %s of counted measures %s from items: %s not counted again (the "
                       "first: %.200s).",
                       it->n_uncounted, text_plural((int64_t)it->n_uncounted, "score", "scores"),
                       text_plural((int64_t)it->n_uncounted, "follows", "follow"),
                       text_plural((int64_t)it->n_uncounted, "it was", "they were"),
                       it->uncounted.buf);
        json_push_string(list, text);
    }
    if (it->n_without > 0) {
        (void)snprintf(text, sizeof(text), "How the scores of %zu %s were made: %s no items.",
                       it->n_without, text_plural((int64_t)it->n_without, "result", "results"),
                       it->n_without == 1 ? "it names" : "they name");
        json_push_string(list, text);
    }
    if (it->not_computed != NULL) {
        (void)snprintf(text, sizeof(text), "The instruments were not computed again: %.300s.",
                       it->not_computed);
        json_push_string(list, text);
    }
    json_push_string(list, "The report is covered only by the sums and was not written again; it "
                           "does not bind, and neither do the instruments.");
}

/* In the order of importance: maker, records, then what no receipt contains. */
static cJSON *not_shown(const struct verifying *v)
{
    cJSON *list = json_array();
    about_maker(v, list);
    about_records(v, list);
    if (v->items.present) {
        about_items(v, list);
    } else {
        json_push_string(list, "The items behind the scores, the data and the workers: only their "
                               "digests are here.");
        json_push_string(list, "Report and instruments are covered only by the sums and were not "
                               "recomputed; they do not bind.");
    }
    return list;
}

void verify_words(struct verifying *v, bool holds)
{
    cJSON *o = v->out->json;
    json_put_string(o, "sentence", holds ? SENTENCE : NULL);
    json_put(o, "established", holds ? json_copy(v->established) : json_array());
    json_put(o, "claimed", holds ? json_copy(v->claimed) : json_array());
    json_put(o, "not_shown", holds ? not_shown(v) : json_array());
}
