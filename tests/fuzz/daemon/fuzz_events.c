/* events.jsonl from a worker that writes anything: however the bytes are cut in two, the same is
 * taken in, nothing twice and nothing beyond the text. */
#include <stdint.h>
#include <stdlib.h>

#include "base/layout/layout.h"
#include "daemon/program/events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct events_said whole;
    struct events_said first;
    struct events_said rest;
    if (size > LAYOUT_EVENTS_LINE_MAX) {
        return 0; /* a line that may be too long is another matter: unit test */
    }
    size_t cut = size == 0 ? 0 : data[0] * size / 256;
    events_take(text, size, &whole);
    events_take(text, cut, &first);
    if (whole.n_bytes > size || first.n_bytes > cut) {
        abort();
    }
    events_take(text + first.n_bytes, size - first.n_bytes, &rest);
    if (first.n_bytes + rest.n_bytes != whole.n_bytes ||
        first.malformed + rest.malformed != whole.malformed ||
        (first.progressed || rest.progressed) != whole.progressed ||
        (rest.progressed ? rest.done : first.done) != whole.done) {
        abort();
    }
    return 0;
}
