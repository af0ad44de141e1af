/* The C interface of Lockstep: command lines in, documents out. Stable within a major version:
 * functions are added, never changed. */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOCKSTEP_API_VERSION 1

/* How a command line ended and what it said. */
typedef struct lockstep_result lockstep_result;

/* Runs "lockstep ARGUMENT..." (without the program's name) in this process and thread, and keeps
 * what it prints. Nothing reaches the process's own streams, except what threads of the command may
 * say. Several threads may call it at once. Returns NULL only where memory is lacking; free the
 * result with lockstep_free(). Every element of `arguments` is a string that ends in a zero. */
lockstep_result* lockstep_run(size_t count, const char* const* arguments);

/* 0 done, 1 a check that was asked for failed, 2 bad input, 3 a needed part is missing, 70 a bug.
 */
int lockstep_exit_code(const lockstep_result* result);

/* What went to standard output: with --json, one JSON document. It ends in a zero, and lives as
 * long as the result; `size`, unless NULL, is set to the bytes before that zero. */
const char* lockstep_output(const lockstep_result* result, size_t* size);

/* Warnings and the error, in the same way. */
const char* lockstep_messages(const lockstep_result* result, size_t* size);

/* NULL is fine. */
void lockstep_free(lockstep_result* result);

/* "0.1.0" */
const char* lockstep_version(void);

#ifdef __cplusplus
}
#endif

#endif
