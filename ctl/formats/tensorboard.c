/* tensorboard: an event file for each cell, CELL/events.out.tfevents.SECONDS.preregd. A file is a
 * sequence of TFRecords, each the protobuf of an Event; both are written by hand here. Values are
 * float32, as TensorBoard's scalars are. Points carry no time: their wall time is when their task
 * ended. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/formats/writers.h"

/* ---- protobuf: what an Event needs of it ---- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void add_varint(struct strbuf *sb, uint64_t v)
{
    while (v >= 0x80) {
        strbuf_addc(sb, (char)(unsigned char)(v | 0x80));
        v >>= 7;
    }
    strbuf_addc(sb, (char)(unsigned char)v);
}

static void add_tag(struct strbuf *sb, unsigned field, enum wire wire)
{
    add_varint(sb, (uint64_t)field << 3 | (uint64_t)wire);
}

/* Little-endian, as protobuf and TFRecord have their numbers. */
static void add_little(struct strbuf *sb, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        strbuf_addc(sb, (char)(unsigned char)(v >> (8 * i)));
    }
}

static void add_bytes(struct strbuf *sb, unsigned field, const char *data, size_t len)
{
    add_tag(sb, field, WIRE_BYTES);
    add_varint(sb, len);
    strbuf_add(sb, data, len);
}

/* Event.wall_time = 1 */
static void add_wall_time(struct strbuf *event, struct wall_time t)
{
    const double seconds = (double)t.ms / 1000;
    uint64_t bits = 0;
    memcpy(&bits, &seconds, sizeof(bits));
    add_tag(event, 1, WIRE_64);
    add_little(event, bits, 8);
}

/* ---- TFRecord ---- */

/* CRC-32C (Castagnoli), bit by bit: an export has some megabytes. */
static uint32_t crc32c(const char *data, size_t len)
{
    uint32_t crc = 0xffffffffU;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
        }
    }
    return ~crc;
}

/* Masked, since a CRC of data that holds its own CRC is a weak one. */
static void add_masked_crc(struct strbuf *sb, const char *data, size_t len)
{
    const uint32_t crc = crc32c(data, len);
    add_little(sb, (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8U), 4);
}

/* Length, its CRC, the data, their CRC. */
static void add_tf_record(struct strbuf *file, const struct strbuf *event)
{
    const size_t start = file->len;
    add_little(file, event->len, 8);
    add_masked_crc(file, file->buf + start, 8);
    strbuf_add(file, event->buf, event->len);
    add_masked_crc(file, event->buf, event->len);
}

/* ---- events ---- */

/* Event.file_version = 3: the first of a file. */
static void add_version(struct strbuf *file, struct wall_time t)
{
    struct strbuf event = STRBUF_INIT;
    add_wall_time(&event, t);
    add_bytes(&event, 3, "brain.Event:2", sizeof("brain.Event:2") - 1);
    add_tf_record(file, &event);
    strbuf_release(&event);
}

struct scalar {
    const char *tag;
    struct wall_time time;
    int64_t step;
    double value;
};

/* Event.step = 2, Event.summary = 5; Summary.value = 1; Value.tag = 1, Value.simple_value = 2. */
static void add_scalar(struct strbuf *file, const struct scalar *s)
{
    struct strbuf value = STRBUF_INIT;
    struct strbuf summary = STRBUF_INIT;
    struct strbuf event = STRBUF_INIT;
    const float simple = (float)s->value;
    uint32_t bits = 0;
    memcpy(&bits, &simple, sizeof(bits));
    add_bytes(&value, 1, s->tag, strlen(s->tag));
    add_tag(&value, 2, WIRE_32);
    add_little(&value, bits, 4);
    add_bytes(&summary, 1, value.buf, value.len);
    add_wall_time(&event, s->time);
    add_tag(&event, 2, WIRE_VARINT);
    add_varint(&event, (uint64_t)s->step);
    add_bytes(&event, 5, summary.buf, summary.len);
    add_tf_record(file, &event);
    strbuf_release(&event);
    strbuf_release(&summary);
    strbuf_release(&value);
}

/* A task's curves as STAGE/NAME, its metrics as final/STAGE.NAME at step 0. */
static void add_task(struct strbuf *file, const struct receipt_source *s, size_t cell, size_t stage)
{
    const char *name = s->program->stages[stage].name;
    const struct source_task *t = source_task(s, cell, stage);
    const struct wall_time time = t->ended.ms != 0 ? t->ended : s->ended;
    struct source_curves curves;
    const cJSON *metric = NULL;
    source_read_curves(s, cell, stage, &curves);
    for (size_t i = 0; i < curves.n; i++) {
        const struct curve_points *c = &curves.items[i].points;
        char *tag = xasprintf("%s/%s", name, curves.items[i].name);
        for (size_t k = 0; k < c->n; k++) {
            add_scalar(file, &(struct scalar){tag, time, (int64_t)c->xs[k], c->ys[k]});
        }
        free(tag);
    }
    source_curves_release(&curves);
    cJSON_ArrayForEach(metric, json_member(t->result, "metrics"))
    {
        const struct evidence_value v = evidence_value_of(metric);
        if (v.state == VALUE_KNOWN) {
            char *tag = xasprintf("final/%s.%s", name, metric->string);
            add_scalar(file, &(struct scalar){tag, time, 0, v.value});
            free(tag);
        }
    }
}

int write_tensorboard(const struct receipt_source *s, const struct format_output *out,
                      struct err *err)
{
    const struct plan_program *p = s->program;
    int rc = 0;
    if (s->program_folder == NULL) {
        format_note(out, "a receipt holds no curves: name the program itself to have them");
    }
    format_note(out, "values are float32, and every point has the time at which its task ended");
    for (size_t c = 0; rc == 0 && c < p->n_cells; c++) {
        struct strbuf file = STRBUF_INIT;
        char *folder = format_cell_name(p->cells[c].name);
        char *name = xasprintf("%s/events.out.tfevents.%lld.preregd", folder,
                               (long long)(s->ended.ms / 1000));
        add_version(&file, s->ended);
        for (size_t k = 0; k < p->n_stages; k++) {
            add_task(&file, s, c, k);
        }
        rc = format_put(out, name, &file, err);
        free(name);
        free(folder);
        strbuf_release(&file);
    }
    return rc;
}
