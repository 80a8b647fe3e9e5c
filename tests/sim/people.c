#include "tests/sim/parts.h"

static struct core_event request(const struct sim *s, enum core_event_kind kind, uint32_t program)
{
    (void)s;
    return (struct core_event){.kind = kind, .program = program, .text = "scripted"};
}

static void ask_of_task(struct sim *s, enum core_event_kind kind, uint32_t program)
{
    struct core_event ev = request(s, kind, program);
    ev.task = (uint32_t)rng_below(&s->rng, s->programs[program - 1].n_tasks);
    sim_tell_surely(s, &ev, 0);
}

static void ask_of_machine(struct sim *s)
{
    struct core_event ev = request(s, CORE_MACHINE, 0);
    ev.machine.cores = (uint32_t)sim_between(s, 1, 8);
    ev.machine.slots = (uint32_t)sim_between(s, 0, 6);
    ev.machine.memory_bytes = sim_between(s, 0, 1) * 64;
    sim_tell_surely(s, &ev, 0);
}

static void fill_disk(struct sim *s, uint32_t program)
{
    struct core_event ev = request(s, CORE_DISK, program);
    ev.disk_full = true;
    sim_tell_surely(s, &ev, 0);
}

void people_ask(struct sim *s)
{
    uint32_t program = 1 + (uint32_t)rng_below(&s->rng, s->n_programs);
    struct core_event ev = request(s, CORE_PAUSE, program);
    switch (rng_below(&s->rng, 13)) {
    case 0:
    case 1: ask_of_task(s, CORE_CANCEL, program); break;
    case 2:
    case 3:
    case 4:
        ask_of_task(s, rng_below(&s->rng, 4) == 0 ? CORE_RETRY_ALL : CORE_RETRY, program);
        break;
    case 5:
        sim_tell_surely(s, &ev, 0);
        ev.kind = CORE_RESUME;
        sim_tell_surely(s, &ev, sim_between(s, 1000, 600000));
        break;
    case 6: ask_of_machine(s); break;
    case 7: fill_disk(s, program); break;
    case 10:
    case 11:
    case 12: amend_ask(s, program); break;
    case 8:
        if (s->full_checks && rng_below(&s->rng, 20) == 0) {
            ev.kind = CORE_STOP;
            sim_tell_surely(s, &ev, 0);
        }
        break;
    default:
        if (s->seed % 2 == 0) {
            struct core_event remove = request(s, CORE_REMOVE, program);
            sim_tell_surely(s, &remove, 0);
        }
        if (rng_below(&s->rng, 8) == 0) {
            ev.kind = CORE_UNBLIND;
            sim_tell_surely(s, &ev, 0);
        }
        break;
    }
}

void people_see_failures(struct sim *s, uint32_t program)
{
    struct sim_program *p = &s->programs[program - 1];
    struct core_event ev = request(s, CORE_RESUME, program);
    p->n_failing++;
    s->n_failing++;
    if (p->n_failing == p->n_repairs) {
        p->broken = p->n_stages;
    }
    ev.accept_failures = (p->n_repairs == 0 && p->n_failing > 3) || sim_chance(s, 50);
    s->n_let_fail += ev.accept_failures;
    sim_tell_surely(s, &ev, sim_between(s, 1000, 600000));
}
