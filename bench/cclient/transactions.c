/* Transactions of some records each, by one producer or by many at once: each begins, sends, waits until its records are acknowledged,
 * and commits. What is timed of each is the commit alone: EndTxn from the call to its answer. */
#include "histogram.h"
#include "load.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 60000, MOST_PRODUCERS = 1000 };

struct producer {
  const struct settings *run;
  rd_kafka_t *client;
  rd_kafka_topic_t *topic;
  long transactions, failed, aborted;
  struct histogram commits;
  pthread_t thread;
};

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client;
  struct producer *producer = opaque;
  if (message->err) producer->failed++;
}

static void check(rd_kafka_error_t *error, const char *what) {
  if (error) fail("%s: %s", what, rd_kafka_error_string(error));
}

static void begin(struct producer *producer, const struct settings *run, int number) {
  char id[128];
  snprintf(id, sizeof id, "%s-%d", run->topic, number);
  const char *defaults[] = {"transactional.id", id, "linger.ms", "5", "batch.num.messages", "1000000", "batch.size", "1000000", NULL};
  producer->run = run;
  producer->client = new_client(run, RD_KAFKA_PRODUCER, defaults, delivered);
  producer->topic = know_topic(producer->client, run);
  check(rd_kafka_init_transactions(producer->client, TIMEOUT_MS), "init_transactions");
}

/* The records of one transaction, spread over as many partitions as the run has. */
static void send_records(struct producer *producer, const char *value) {
  const struct settings *run = producer->run;
  for (long i = 0; i < run->each;) {
    int partition = (int)(i % run->depth);
    if (rd_kafka_producev(producer->client, RD_KAFKA_V_RKT(producer->topic), RD_KAFKA_V_PARTITION(partition),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE((void *)(uintptr_t)value, (size_t)run->size),
                          RD_KAFKA_V_OPAQUE(producer), RD_KAFKA_V_END) == 0)
      i++;
    else if (rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL)
      rd_kafka_poll(producer->client, 1);
    else
      fail("produce to %s: %s", run->topic, rd_kafka_err2str(rd_kafka_last_error()));
  }
  rd_kafka_resp_err_t error = rd_kafka_flush(producer->client, TIMEOUT_MS);
  if (error) fail("flush: %s", rd_kafka_err2str(error));
}

static void *work(void *argument) {
  struct producer *producer = argument;
  const struct settings *run = producer->run;
  char *value = malloc((size_t)run->size);
  unsigned state = 1;
  for (long i = 0; i < run->size; i++) value[i] = (char)('A' + (state = state * 1103515245 + 12345) / 65536 % 26);
  for (long done = 0; done < producer->transactions; done++) {
    check(rd_kafka_begin_transaction(producer->client), "begin_transaction");
    send_records(producer, value);
    int64_t begun = now_ns();
    /* Spread evenly: of ten percent each tenth. */
    if ((done + 1) * run->aborted_percent / 100 != done * run->aborted_percent / 100) {
      check(rd_kafka_abort_transaction(producer->client, TIMEOUT_MS), "abort_transaction");
      producer->aborted++;
    } else {
      check(rd_kafka_commit_transaction(producer->client, TIMEOUT_MS), "commit_transaction");
      histogram_add(&producer->commits, now_ns() - begun);
    }
  }
  free(value);
  return NULL;
}

void run_transactions(const struct settings *run) {
  if (run->clients < 1 || run->clients > MOST_PRODUCERS || run->each < 1 || run->records % ((long)run->clients * run->each))
    fail("transactions: %ld records are no whole transactions of %ld by each of %d producers", run->records, run->each, run->clients);
  static struct producer producers[MOST_PRODUCERS];
  for (int i = 0; i < run->clients; i++) begin(&producers[i], run, i);
  double user0, system0, user, system;
  own_cpu(&user0, &system0);
  double begun = now_s();
  for (int i = 0; i < run->clients; i++) {
    producers[i].transactions = run->records / run->each / run->clients;
    if (pthread_create(&producers[i].thread, NULL, work, &producers[i])) fail("no thread");
  }
  static struct histogram commits;
  long failed = 0, aborted = 0;
  for (int i = 0; i < run->clients; i++) {
    pthread_join(producers[i].thread, NULL);
    histogram_merge(&commits, &producers[i].commits);
    failed += producers[i].failed;
    aborted += producers[i].aborted;
  }
  double elapsed = now_s() - begun;
  own_cpu(&user, &system);
  if (failed) fail("%ld of %ld records failed", failed, run->records);
  json_begin("transactions", run);
  json_integer("clients", run->clients);
  json_integer("transactions", run->records / run->each);
  json_integer("aborted", aborted);
  json_number("seconds", elapsed);
  json_number("commit_p50_ms", histogram_ms(&commits, .5));
  json_number("commit_p99_ms", histogram_ms(&commits, .99));
  json_number("client_user_s", user - user0);
  json_number("client_system_s", system - system0);
  json_end();
}
