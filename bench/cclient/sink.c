/* The limit of a broker: a server that receives Produce requests, writes them to a file and acknowledges them.
 *
 * It knows no topic, validates nothing, keeps no index and reads nothing back. It speaks as much of the protocol as
 * librdkafka needs to send it batches: ApiVersions 0, Metadata 1 (every topic has one partition, whose leader is this
 * server), Produce 3-7. One thread a connection; the file of a connection has no name and goes with it. */
#include "load.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PRODUCE = 0, FETCH = 1, METADATA = 3, API_VERSIONS = 18, UNSUPPORTED_VERSION = 35, FRAME_BYTES = 100 << 20 };

static const char *directory;
static uint16_t port;

static uint16_t get16(const char *at) { return be16toh(*(const uint16_t *)memcpy(&(uint16_t){0}, at, 2)); }
static uint32_t get32(const char *at) { return be32toh(*(const uint32_t *)memcpy(&(uint32_t){0}, at, 4)); }
static char *put16(char *at, uint16_t value) { return (char *)memcpy(at, &(uint16_t){htobe16(value)}, 2) + 2; }
static char *put32(char *at, uint32_t value) { return (char *)memcpy(at, &(uint32_t){htobe32(value)}, 4) + 4; }
static char *put64(char *at, uint64_t value) { return (char *)memcpy(at, &(uint64_t){htobe64(value)}, 8) + 8; }
static char *put_string(char *at, const char *text, uint16_t length) {
  return (char *)memcpy(put16(at, length), text, length) + length;
}

static bool all(ssize_t (*step)(int, void *, size_t), int file, char *bytes, size_t left) {
  for (; left > 0;) {
    ssize_t count = step(file, bytes, left);
    if (count <= 0 && errno != EINTR) return false;
    bytes += count > 0 ? count : 0, left -= count > 0 ? (size_t)count : 0;
  }
  return true;
}
static ssize_t put(int file, void *bytes, size_t left) { return write(file, bytes, left); }

static char *answer_versions(char *out, uint16_t version) {
  static const uint16_t served[][3] = {{PRODUCE, 3, 7}, {FETCH, 4, 4}, {METADATA, 0, 1}, {API_VERSIONS, 0, 0}};
  out = put32(put16(out, version ? UNSUPPORTED_VERSION : 0), sizeof served / sizeof *served);
  for (size_t i = 0; i < sizeof served / sizeof *served; i++)
    for (size_t j = 0; j < 3; j++) out = put16(out, served[i][j]);
  return out;
}

static char *answer_metadata(char *out, const char *body) {
  uint32_t topics = get32(body);
  out = put_string(put32(put32(out, 1), 1), "127.0.0.1", 9);
  out = put32(put16(put32(out, port), 0xffff), 1);
  if (topics == UINT32_MAX) topics = 0;
  out = put32(out, topics), body += 4;
  for (; topics > 0; topics--, body += 2 + get16(body)) {
    out = put_string(put16(out, 0), body + 2, get16(body));
    *out++ = 0;
    out = put32(put32(put16(put32(out, 1), 0), 0), 1);
    out = put32(put32(out, 1), 1);
    out = put32(put32(out, 1), 1);
  }
  return out;
}

/* One topic and one partition a request, as librdkafka sends them. */
static char *answer_produce(char *out, const char *body, int file, char *frame, size_t size, uint64_t *offset) {
  body += 2 + (get16(body) == 0xffff ? 0 : get16(body)) + 2 + 4 + 4;
  const char *topic = body + 2, *partition = topic + get16(body) + 4, *records = partition + 8;
  if (!all(put, file, frame, size)) fail("write: %s", strerror(errno));
  out = put_string(put32(out, 1), topic, get16(body));
  out = put16(put32(put32(out, 1), get32(partition)), 0);
  out = put64(put64(put64(out, *offset), UINT64_MAX), 0);
  *offset += get32(records + 57);
  return put32(out, 0);
}

static void *serve(void *socket_of_peer) {
  int peer = (int)(intptr_t)socket_of_peer;
  int file = open(directory, O_TMPFILE | O_WRONLY, 0600);
  if (file < 0) fail("%s: %s", directory, strerror(errno));
  char prefix[4], *frame = malloc(FRAME_BYTES), *answer = malloc(1 << 20);
  uint64_t offset = 0;
  while (all(read, peer, prefix, sizeof prefix)) {
    size_t size = get32(prefix);
    if (size < 14 || size > FRAME_BYTES || !all(read, peer, frame, size)) break;
    uint16_t key = get16(frame), version = get16(frame + 2), client = get16(frame + 8);
    const char *body = frame + 10 + (client == 0xffff ? 0 : client);
    char *end = (char *)memcpy(answer + 4, frame + 4, 4) + 4;
    if (key == API_VERSIONS) end = answer_versions(end, version);
    else if (key == METADATA) end = answer_metadata(end, body);
    else if (key == PRODUCE) end = answer_produce(end, body, file, frame, size, &offset);
    else break;
    put32(answer, (uint32_t)(end - answer - 4));
    if (!all(put, peer, answer, (size_t)(end - answer))) break;
  }
  free(answer), free(frame), close(file), close(peer);
  return NULL;
}

void run_sink(const struct settings *run) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  directory = run->directory;
  if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 50)) fail("listen: %s", strerror(errno));
  getsockname(listener, (struct sockaddr *)&address, &length);
  port = ntohs(address.sin_port);
  printf("ready: plain://127.0.0.1:%d\n", port);
  fflush(stdout);
  for (;;) {
    int peer = accept(listener, NULL, NULL);
    if (peer < 0) fail("accept: %s", strerror(errno));
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)peer)) fail("no thread for a connection");
    pthread_detach(thread);
  }
}
