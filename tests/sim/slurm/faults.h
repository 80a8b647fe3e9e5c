/* What goes wrong, each counted: what never happened proves nothing. */
#ifndef TESTS_SIM_SLURM_FAULTS_H
#define TESTS_SIM_SLURM_FAULTS_H

enum farm_fate {
    FATE_GOOD,
    FATE_CODE,      /* the worker fails: exit.json with a code */
    FATE_SILENT,    /* shim and worker killed: FAILED, no exit.json */
    FATE_STEPD,     /* slurmstepd killed: shown RUNNING for 48 s, its orphan goes on (rule 20) */
    FATE_BAD_START, /* FAILED without a shim */
    FATE_VANISH,    /* the job leaves the queue without a trace; its process is killed */
    FATE_TIME,      /* TIMEOUT, no exit.json */
    FATE_PREEMPT,   /* PREEMPTED with exit.json of code 75 */
    FATE_PREEMPT_AT_ONCE,
    FATE_REQUEUE, /* the site requeues it: SLURM_RESTART_COUNT is 1 */
    FATE_MEMORY,
    FATE_HAND_PENDING, /* scancel by hand before it begins */
    FATE_HAND,
    FATE_ODD_STATE, /* shown with a word that no table has for a while */
    FATE_NR
};

enum farm_fault {
    FAULT_LOST_ANSWER,
    FAULT_NOT_ACCEPTED,
    FAULT_LATE_ACCEPT,
    FAULT_VERY_LATE_ACCEPT, /* behind the grace */
    FAULT_DOUBLED,
    FAULT_FULL,
    FAULT_NOT_MADE,
    FAULT_CONTROLLER_DOWN,
    FAULT_CONTROLLER_LOST, /* jobs of its last seconds */
    FAULT_ID_REUSED,
    FAULT_CANNOT_ASK,
    FAULT_ODD_LINE,
    FAULT_LAG,
    FAULT_NODE_DIED,
    FAULT_NODE_CUT_OFF, /* its processes go on, unseen by Slurm and in no file */
    FAULT_ORPHAN,       /* a process went on after its job had ended in Slurm */
    FAULT_FILE_LATE,
    FAULT_UNLISTED,
    FAULT_CANCEL_FAILED,
    FAULT_FENCED,  /* a shim gave up because its attempt was over */
    FAULT_CLAIMED, /* a second job of one attempt gave up */
    FAULT_REFUSED_RESTART,
    FAULT_RESTART,
    FAULT_AGAIN, /* a batch was submitted again under its name */
    FAULT_EXCLUDED,
    FAULT_NEVER,      /* refused for good, whatever is excluded */
    FAULT_NO_NODE,    /* refused for good because every node is excluded */
    FAULT_UNFIT,      /* a node does not have what the program pins */
    FAULT_CANCELLED,  /* the whole program, by a person */
    FAULT_FOREIGN_ID, /* an id of ours was another's when scancel came */
    FAULT_NR
};

#endif
