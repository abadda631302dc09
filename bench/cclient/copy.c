/* The bytes of one file to another through a TCP connection: sendfile on one side, recv and write() on the other.
 * What a follower that catches up cannot go faster than. */
#include "load.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

static int listener(struct sockaddr_in *address) {
  int server = socket(AF_INET, SOCK_STREAM, 0);
  socklen_t length = sizeof *address;
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (server < 0 || bind(server, (struct sockaddr *)address, length) || listen(server, 1) ||
      getsockname(server, (struct sockaddr *)address, &length))
    fail("no listener on loopback");
  return server;
}

static void fill(int file, long bytes) {
  static char block[CHUNK];
  for (long left = bytes; left > 0;) {
    ssize_t done = write(file, block, left < CHUNK ? (size_t)left : CHUNK);
    if (done < 1) fail("the source could not be written");
    left -= done;
  }
}

/* The other process: connects, receives, writes; ends with status 0 when all came. */
static void receive(const struct sockaddr_in *address, const char *path, long bytes) {
  char *buffer = malloc(CHUNK);
  int client = socket(AF_INET, SOCK_STREAM, 0), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (client < 0 || file < 0 || connect(client, (const struct sockaddr *)address, sizeof *address)) _exit(1);
  for (long left = bytes; left > 0;) {
    ssize_t got = recv(client, buffer, CHUNK, 0);
    if (got < 1) _exit(1);
    for (ssize_t at = 0, done; at < got; at += done)
      if ((done = write(file, buffer + at, (size_t)(got - at))) < 1) _exit(1);
    left -= got;
  }
  _exit(0);
}

void run_copy(const struct settings *run) {
  char source[PATH_MAX], target[PATH_MAX];
  snprintf(source, sizeof source, "%s/source", run->directory);
  snprintf(target, sizeof target, "%s/target", run->directory);
  long bytes = run->records * run->size;
  int file = open(source, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0) fail("%s could not be made", source);
  fill(file, bytes);
  sync(); /* what is not yet on the disk would slow down who writes more */
  struct sockaddr_in address;
  int server = listener(&address);
  double begun = now_s();
  pid_t child = fork();
  if (child < 0) fail("no process for the other side");
  if (child == 0) receive(&address, target, bytes);
  int peer = accept(server, NULL, NULL);
  off_t at = 0;
  while (at < bytes)
    if (sendfile(peer, file, &at, (size_t)(bytes - at)) < 1) fail("sendfile ended after %ld of %ld bytes", (long)at, bytes);
  int status;
  waitpid(child, &status, 0);
  double elapsed = now_s() - begun;
  unlink(source), unlink(target);
  if (status) fail("the receiver ended with status %d", status);
  json_begin("copy", run);
  json_number("seconds", elapsed);
  json_end();
}
