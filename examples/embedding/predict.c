/* The same in C. Usage: predict_c <workload> */
#include <lockstep/lockstep.h>
#include <stdio.h>

int main(int count, char** words) {
  const char* arguments[] = {"simulate",   "--workload",     count == 2 ? words[1] : "",
                             "--topology", "Spectrum-X:g=8", "--json"};
  lockstep_result* result = lockstep_run(6, arguments);
  if (result == NULL || lockstep_exit_code(result) != 0) {
    fputs(result == NULL ? "no memory\n" : lockstep_messages(result, NULL), stderr);
    lockstep_free(result);
    return 1;
  }
  fputs(lockstep_output(result, NULL), stdout);
  lockstep_free(result);
  fprintf(stderr, "%s\n", lockstep_version());
  return 0;
}
