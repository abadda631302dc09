/* brokerload: one round of one load on any broker of Kafka's protocol; prints one line of JSON.
 *
 *   brokerload produce   -b HOST:PORT -t TOPIC -n RECORDS -s SIZE [-p PARTITION] [-X key=value ...]
 *   brokerload consume   -b HOST:PORT -t TOPIC -n RECORDS [-p PARTITION] [-X key=value ...]
 *   brokerload roundtrip -b HOST:PORT -t TOPIC -n RECORDS -s SIZE -r RECORDS_PER_SECOND [-p PARTITION] [-X key=value ...]
 *   brokerload connections -b HOST:PORT -n CONNECTIONS -c AT_A_TIME
 *   brokerload commit    -b HOST:PORT -t TOPIC -n COMMITS -c AT_A_TIME [-p PARTITION]
 *   brokerload quiet     -b HOST:PORT -n MILLISECONDS -c QUIET -r REQUESTS_PER_SECOND -q FILE [-f FILE -k CLIENTS -P IN_FLIGHT] [-O]
 *   brokerload write     -d DIRECTORY -n RECORDS -s SIZE
 *   brokerload sink      -d DIRECTORY
 *   brokerload steady    -b HOST:PORT -t TOPIC -n RECORDS -s SIZE -r RECORDS_PER_SECOND [-p PARTITION] [-X key=value ...]
 *   brokerload copy      -d DIRECTORY -n RECORDS -s SIZE
 *   brokerload seal      -n RECORDS -s SIZE
 *   brokerload handshakes -b HOST:PORT -n HANDSHAKES -c AT_A_TIME -X ssl.ca.location=FILE [-X resumed=yes]
 *   brokerload logins    -b HOST:PORT -n LOGINS -c AT_A_TIME -X sasl.username=USER -X sasl.password=PASSWORD
 *   brokerload transactions -b HOST:PORT -t TOPIC -n RECORDS -s SIZE -e RECORDS_OF_EACH [-c PRODUCERS] [-P PARTITIONS] [-a ABORTED_PERCENT]
 *   brokerload ends      -b HOST:PORT -t TOPIC -n TRANSACTIONS -s SIZE [-p PARTITION]
 *
 * The topic must exist. sink is a server, the limit of what produce can reach; it runs until it is killed; SIGTERM ends steady before its
 * last record. -X sets a property of librdkafka over the load's own. */
#include "load.h"

#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("brokerload: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double now_s(void) { return (double)now_ns() / 1e9; }

void own_cpu(double *user_s, double *system_s) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  *user_s = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6;
  *system_s = (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec / 1e6;
}

void json_begin(const char *load, const struct settings *run) {
  printf("{\"load\": \"%s\", \"records\": %ld, \"size\": %ld, \"librdkafka\": \"%s\"", load, run->records, run->size, rd_kafka_version_str());
}

void json_number(const char *name, double value) { printf(", \"%s\": %.6f", name, value); }
void json_integer(const char *name, long long value) { printf(", \"%s\": %lld", name, value); }
void json_end(void) { puts("}"), fflush(stdout); }

void resolve(const char *bootstrap, struct sockaddr_storage *address, socklen_t *length) {
  char host[256];
  const char *colon = strrchr(bootstrap, ':');
  if (!colon || (size_t)(colon - bootstrap) >= sizeof host) fail("bootstrap server %s: no host:port", bootstrap);
  memcpy(host, bootstrap, (size_t)(colon - bootstrap));
  host[colon - bootstrap] = 0;
  struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
  int error = getaddrinfo(host, colon + 1, &hints, &found);
  if (error) fail("bootstrap server %s: %s", bootstrap, gai_strerror(error));
  memcpy(address, found->ai_addr, found->ai_addrlen);
  *length = found->ai_addrlen;
  freeaddrinfo(found);
}

static void usage(void) { fail("usage: brokerload produce|consume|roundtrip|connections|commit|quiet|write|sink|steady|copy|seal|handshakes|logins|transactions|ends -b HOST:PORT -t TOPIC -n RECORDS -s SIZE (see brokerload.c)"); }

static void add_property(struct settings *run, char *pair) {
  char *value = strchr(pair, '=');
  if (!value || run->property_count == 64) fail("-X %s: must read key=value, at most 64 of them", pair);
  *value = 0;
  run->properties[run->property_count][0] = pair;
  run->properties[run->property_count++][1] = value + 1;
}

static struct settings read_settings(int count, char **words) {
  struct settings run = {.rate = 1000, .clients = 8, .storm_clients = 1, .depth = 1, .directory = "."};
  for (int option; (option = getopt(count, words, "b:t:d:p:n:s:r:c:q:f:k:P:e:a:OX:")) != -1;) {
    switch (option) {
      case 'b': run.bootstrap = optarg; break;
      case 't': run.topic = optarg; break;
      case 'd': run.directory = optarg; break;
      case 'p': run.partition = atoi(optarg); break;
      case 'n': run.records = atol(optarg); break;
      case 's': run.size = atol(optarg); break;
      case 'r': run.rate = atof(optarg); break;
      case 'c': run.clients = atoi(optarg); break;
      case 'q': run.quiet_file = optarg; break;
      case 'f': run.storm_file = optarg; break;
      case 'k': run.storm_clients = atoi(optarg); break;
      case 'P': run.depth = atoi(optarg); break;
      case 'e': run.each = atol(optarg); break;
      case 'a': run.aborted_percent = atoi(optarg); break;
      case 'O': run.newcomers = true; break;
      case 'X': add_property(&run, optarg); break;
      default: usage();
    }
  }
  return run;
}

int main(int count, char **words) {
  static const struct {
    const char *name;
    void (*run)(const struct settings *);
    bool needs_server, needs_topic, needs_size, serves;
  } loads[] = {{"produce", run_produce, true, true, true, false},     {"consume", run_consume, true, true, false, false},
               {"roundtrip", run_roundtrip, true, true, true, false}, {"connections", run_connections, true, false, false, false},
               {"commit", run_commit, true, true, false, false},      {"write", run_write, false, false, true, false},
               {"quiet", run_quiet, true, false, false, false},       {"sink", run_sink, false, false, false, true},
               {"steady", run_steady, true, true, true, false},       {"copy", run_copy, false, false, true, false},
               {"seal", run_seal, false, false, true, false},         {"handshakes", run_handshakes, true, false, false, false},
               {"logins", run_logins, true, false, false, false},     {"transactions", run_transactions, true, true, true, false},
               {"ends", run_ends, true, true, true, false}};
  if (count < 2) usage();
  struct settings run = read_settings(count - 1, words + 1);
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
    if (strcmp(words[1], loads[i].name)) continue;
    if ((run.records < 1 && !loads[i].serves) || (loads[i].needs_server && !run.bootstrap) || (loads[i].needs_topic && !run.topic) ||
        (loads[i].needs_size && run.size < 1) || run.rate <= 0)
      usage();
    loads[i].run(&run);
    /* librdkafka's threads may still be ending their connections; nothing is lost by not waiting. */
    _exit(0);
  }
  usage();
}
