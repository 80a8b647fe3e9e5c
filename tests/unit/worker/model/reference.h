/* The fixed case that the float and the double build of the model are compared on. */
#ifndef TESTS_UNIT_WORKER_MODEL_REFERENCE_H
#define TESTS_UNIT_WORKER_MODEL_REFERENCE_H

/* Loss, then every gradient and every parameter after three AdamW updates, sampled: n numbers to
 * free(). */
double *reference_numbers(int mixture, unsigned long *n);

#endif
