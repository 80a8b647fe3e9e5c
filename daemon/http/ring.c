/* Messages in a circle of fixed size. Dropping one raises the floor: who is below it is sent
 * everything again, by the caller. */
#include "daemon/http/ring.h"

#include <assert.h>
#include <stdlib.h>

#include "base/xalloc.h"

struct shared_text *shared_text_make(struct strbuf *text)
{
    struct shared_text *t = xcalloc(1, sizeof(*t));
    t->refs = 1;
    t->len = text->len;
    t->data = strbuf_detach(text);
    return t;
}

struct shared_text *shared_text_ref(struct shared_text *t)
{
    t->refs++;
    return t;
}

void shared_text_unref(struct shared_text *t)
{
    if (t != NULL && --t->refs == 0) {
        free(t->data);
        free(t);
    }
}

void ring_init(struct ring *r, uint64_t floor)
{
    *r = (struct ring){.floor = floor};
}

static void drop_first(struct ring *r)
{
    struct shared_text *t = r->items[r->first].text;
    r->floor = r->items[r->first].no;
    r->bytes -= t->len;
    shared_text_unref(t);
    r->first = (r->first + 1) % RING_MESSAGES_MAX;
    r->n--;
}

void ring_release(struct ring *r)
{
    while (r->n > 0) {
        drop_first(r);
    }
}

void ring_push(struct ring *r, uint64_t no, struct shared_text *text)
{
    assert(no > r->floor);
    assert(r->n == 0 || no > r->items[(r->first + r->n - 1) % RING_MESSAGES_MAX].no);
    while (r->n == RING_MESSAGES_MAX || (r->n > 0 && r->bytes + text->len > RING_BYTES_MAX)) {
        drop_first(r);
    }
    const size_t at = (r->first + r->n++) % RING_MESSAGES_MAX;
    r->items[at].no = no;
    r->items[at].text = text;
    r->bytes += text->len;
}

bool ring_reaches(const struct ring *r, uint64_t no)
{
    return no >= r->floor;
}

struct shared_text *ring_next(const struct ring *r, uint64_t no, uint64_t *its_no)
{
    for (size_t i = 0; i < r->n; i++) {
        const size_t at = (r->first + i) % RING_MESSAGES_MAX;
        if (r->items[at].no > no) {
            *its_no = r->items[at].no;
            return r->items[at].text;
        }
    }
    return NULL;
}
