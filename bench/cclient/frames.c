#include "frames.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int64_t number_at(const unsigned char *bytes, int size) {
  uint64_t value = bytes[0] & 0x80 ? UINT64_MAX : 0;
  for (int i = 0; i < size; i++) value = value << 8 | bytes[i];
  return (int64_t)value;
}

void put_number_at(unsigned char *bytes, uint64_t value, int size) {
  for (int i = 0; i < size; i++) bytes[i] = (unsigned char)(value >> (8 * (size - 1 - i)));
}

void frame_bytes(struct frame *frame, const void *bytes, size_t size) {
  if (frame->size + size > FRAME) fail("a request of more than %d bytes", FRAME);
  memcpy(frame->bytes + frame->size, bytes, size);
  frame->size += size;
}

void frame_number(struct frame *frame, uint64_t value, int size) {
  unsigned char bytes[8];
  put_number_at(bytes, value, size);
  frame_bytes(frame, bytes, (size_t)size);
}

void frame_string(struct frame *frame, const char *text) {
  size_t length = strlen(text);
  frame_number(frame, length, 2);
  frame_bytes(frame, text, length);
}

void frame_begin(struct frame *frame, int api, int version) {
  frame->size = 4;
  frame_number(frame, (uint64_t)api, 2);
  frame_number(frame, (uint64_t)version, 2);
  frame_number(frame, 7, 4);
  frame_string(frame, "brokerload");
}

void frame_end(struct frame *frame) { put_number_at(frame->bytes, frame->size - 4, 4); }

void link_open(struct link *link, const struct settings *run) {
  struct sockaddr_storage address;
  socklen_t length;
  resolve(run->bootstrap, &address, &length);
  link->socket = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (link->socket < 0 || connect(link->socket, (const struct sockaddr *)&address, length)) fail("connect: %s", strerror(errno));
}

void link_send(struct link *link, const struct frame *frame) {
  link->got = 0;
  link->asked_ns = now_ns();
  if (write(link->socket, frame->bytes, frame->size) != (ssize_t)frame->size) fail("write: %s", strerror(errno));
}

bool link_receive(struct link *link) {
  ssize_t count = read(link->socket, link->answer + link->got, FRAME - link->got);
  if (count == 0) fail("the broker closed a connection, or answered more than %d bytes", FRAME);
  if (count < 0) fail("read: %s", strerror(errno));
  link->got += (size_t)count;
  return link->got >= 4 && link->got >= 4 + (size_t)number_at(link->answer, 4);
}

void link_ask(struct link *link, const struct frame *frame) {
  link_send(link, frame);
  while (!link_receive(link)) continue;
}

int link_last_error(const struct link *link) { return (int)number_at(link->answer + link->got - 2, 2); }
