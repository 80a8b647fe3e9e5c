/* [instrument.*]: finds the kind of each table and hands it to that kind's check. Instruments
 * are declared and checked here, and computed in truthtable/instruments. */
#include "base/xalloc.h"
#include "prereg/program/instrument.h"
#include "prereg/program/load_instrument.h"

#define INSTRUMENTS_MAX ((size_t)256)

/* An instrument named after a kind is of that kind unless it says otherwise. */
static enum instrument_kind kind_of(struct load *l, const struct toml_node *t)
{
    const char *kinds[INSTRUMENT_KIND_NR + 1] = {NULL};
    for (size_t k = 0; k < INSTRUMENT_KIND_NR; k++) {
        kinds[k] = instrument_kind_name((enum instrument_kind)k);
    }
    if (toml_member(t, "kind") != NULL) {
        size_t kind = INSTRUMENT_KIND_NR;
        (void)load_word(l, t, "kind", kinds, &kind);
        return (enum instrument_kind)kind;
    }
    enum instrument_kind kind = instrument_kind_find(t->key);
    if (kind == INSTRUMENT_KIND_NR) {
        struct strbuf list = STRBUF_INIT;
        for (size_t k = 0; kinds[k] != NULL; k++) {
            strbuf_addf(&list, "%s\"%s\"", k == 0 ? "" : " or ", kinds[k]);
        }
        load_error_key(l, t, "\"kind\" is missing: %s", list.buf);
        strbuf_release(&list);
    }
    return kind;
}

/* The kind decides which check runs; a table of unknown kind is stored so that names stay
 * complete. */
void load_instruments(struct load *l)
{
    static void (*const checks[INSTRUMENT_KIND_NR])(struct load *, const struct toml_node *) = {
        [INSTRUMENT_BAYES] = load_bayes,         [INSTRUMENT_MIXED] = load_mixed,
        [INSTRUMENT_CONNECTOR] = load_connector, [INSTRUMENT_ITEMS] = load_items,
        [INSTRUMENT_ROUTER] = load_router,       [INSTRUMENT_ANCHORS] = load_anchors};
    struct plan_program *p = l->p;
    const struct toml_node *section = load_section(l, "instrument", TOML_TABLE, INSTRUMENTS_MAX);
    if (section == NULL) {
        return;
    }
    p->instruments = arena_array(&p->arena, section->n_items, sizeof(*p->instruments));
    for (size_t i = 0; i < section->n_items; i++) {
        const struct toml_node *t = section->items[i];
        bool discussion_only = false;
        enum instrument_kind kind = kind_of(l, t);
        if (instrument_name_is_taken(t->key)) {
            load_error_key(l, t,
                           "every report gives an instrument of this name without a declaration: "
                           "choose another");
        }
        (void)load_bool(l, t, "discussion_only", &discussion_only);
        if (kind != INSTRUMENT_KIND_NR) {
            checks[kind](l, t);
        }
        p->instruments[p->n_instruments++] = (struct plan_instrument){
            .name = t->key,
            .kind = kind == INSTRUMENT_KIND_NR ? "" : instrument_kind_name(kind),
            .spec = t->json};
    }
}
