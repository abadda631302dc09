/* The same bytes by plain write() to a new file of the same file system: what no broker can beat by much. */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

void run_write(const struct settings *run) {
  char path[4096];
  snprintf(path, sizeof path, "%s/brokerload-XXXXXX", run->directory);
  char *chunk = malloc(CHUNK);
  memset(chunk, 'x', CHUNK);
  int file = mkstemp(path);
  if (file < 0) fail("%s: %s", path, strerror(errno));
  unlink(path);
  double user0, system0, user, system;
  own_cpu(&user0, &system0);
  double begun = now_s();
  for (long left = run->records * run->size; left > 0;) {
    ssize_t count = write(file, chunk, left < CHUNK ? (size_t)left : CHUNK);
    if (count < 0) fail("%s: %s", path, strerror(errno));
    left -= count;
  }
  double elapsed = now_s() - begun;
  own_cpu(&user, &system);
  close(file);
  json_begin("write", run);
  json_number("seconds", elapsed);
  json_number("client_user_s", user - user0);
  json_number("client_system_s", system - system0);
  json_end();
  free(chunk);
}
