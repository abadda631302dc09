/* Requests on plain sockets, where a client library's threads would be most of what is timed. Versions are those before the compact
 * encodings, which every broker has. */
#ifndef FRAMES_H
#define FRAMES_H

#include "load.h"

enum { FRAME = 1024 };

/* A request that is built once and sent often; its bytes may be changed in place. */
struct frame {
  unsigned char bytes[FRAME];
  size_t size;
};

/* A connection with one request in flight, and its answer. */
struct link {
  int socket;
  size_t got;
  int64_t asked_ns;
  unsigned char answer[FRAME];
};

/* Parts of a frame: begin, fields, end. */
void frame_begin(struct frame *frame, int api, int version);
void frame_number(struct frame *frame, uint64_t value, int bytes);
void frame_bytes(struct frame *frame, const void *bytes, size_t size);
void frame_string(struct frame *frame, const char *text);
void frame_end(struct frame *frame);

/* A number of the answer, or of a frame, at an offset from the begin of its size. */
int64_t number_at(const unsigned char *bytes, int size);
void put_number_at(unsigned char *bytes, uint64_t value, int size);

/* Connects to the run's bootstrap server. */
void link_open(struct link *link, const struct settings *run);
void link_send(struct link *link, const struct frame *frame);
/* Reads once: whether the whole answer is there. */
bool link_receive(struct link *link);
/* Sends and waits for the answer. */
void link_ask(struct link *link, const struct frame *frame);
/* The error that ends an answer. */
int link_last_error(const struct link *link);

#endif
