/* Logins by SCRAM-SHA-512, each on a connection of its own: what a client derives from the password is kept, so that the
 * broker's part is what is measured. RFC 5802; SaslHandshake 1, SaslAuthenticate 1. */
#include "blocking.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

enum { SASL_HANDSHAKE = 17, SASL_AUTHENTICATE = 36, TEXT = 1024, HASH = SHA512_DIGEST_LENGTH };

static const char mechanism[] = "SCRAM-SHA-512";

/* Keys of a salt. */
struct keys {
  char salt[TEXT];
  unsigned char client[HASH], stored[HASH];
};

static void sign(const unsigned char *key, const char *text, unsigned char *signature) {
  unsigned int size;
  if (!HMAC(EVP_sha512(), key, HASH, (const unsigned char *)text, strlen(text), signature, &size)) fail("HMAC failed");
}

static void derive(struct keys *keys, const char *password, const char *salt, int iterations) {
  if (strcmp(keys->salt, salt) == 0) return;
  unsigned char raw[TEXT], salted[HASH];
  int size = EVP_DecodeBlock(raw, (const unsigned char *)salt, (int)strlen(salt));
  for (size_t i = strlen(salt); i > 0 && salt[i - 1] == '='; i--) size--;
  if (size < 1 || !PKCS5_PBKDF2_HMAC(password, (int)strlen(password), raw, size, iterations, EVP_sha512(), HASH, salted)) fail("salt %s", salt);
  sign(salted, "Client Key", keys->client);
  SHA512(keys->client, HASH, keys->stored);
  strcpy(keys->salt, salt);
}

/* The value of an attribute of a SCRAM message. */
static void attribute(const char *message, char name, char *value) {
  const char *at = message;
  while (at && !(at[0] == name && at[1] == '=')) at = (at = strchr(at, ',')) ? at + 1 : NULL;
  if (!at) fail("SCRAM: %s has no %c", message, name);
  size_t size = strcspn(at + 2, ",");
  if (size >= TEXT) fail("SCRAM: too long a %c", name);
  memcpy(value, at + 2, size);
  value[size] = 0;
}

/* Send a token; the broker's is in `token` then. */
static void authenticate(struct connection *connection, struct message *request, struct message *answer, char *token) {
  begin_request(request, SASL_AUTHENTICATE, 1);
  put_integer(request, strlen(token), 4);
  put_bytes(request, token, strlen(token));
  exchange(connection, request, answer);
  const unsigned char *at = answer->bytes;
  if (at[0] || at[1]) fail("login: error %d", at[0] << 8 | at[1]);
  size_t message = (size_t)(at[2] << 8 | at[3]);
  at += 4 + (message == 0xffff ? 0 : message);
  size_t size = (size_t)at[2] << 8 | at[3];
  if (size >= TEXT) fail("login: a token of %zu bytes", size);
  memcpy(token, at + 4, size);
  token[size] = 0;
}

static void log_in(struct worker *worker, struct connection *connection, struct message *request, struct message *answer, long number) {
  const char *user = property(worker->run, "sasl.username", ""), *password = property(worker->run, "sasl.password", "");
  char bare[TEXT], first[TEXT], nonce[TEXT], salt[TEXT], iterations[TEXT], last[2 * TEXT], text[5 * TEXT], token[5 * TEXT];
  unsigned char signature[HASH], proof[2 * HASH];
  begin_request(request, SASL_HANDSHAKE, 1);
  put_integer(request, strlen(mechanism), 2);
  put_bytes(request, mechanism, strlen(mechanism));
  exchange(connection, request, answer);
  if (answer->bytes[0] || answer->bytes[1]) fail("SaslHandshake: error %d", answer->bytes[0] << 8 | answer->bytes[1]);
  snprintf(bare, sizeof bare, "n=%s,r=%p%ld", user, (void *)worker, number);
  snprintf(token, sizeof token, "n,,%s", bare);
  authenticate(connection, request, answer, token);
  snprintf(first, sizeof first, "%.*s", TEXT - 1, token);
  attribute(first, 'r', nonce);
  attribute(first, 's', salt);
  attribute(first, 'i', iterations);
  struct keys *keys = worker->state;
  derive(keys, password, salt, atoi(iterations));
  snprintf(last, sizeof last, "c=biws,r=%s", nonce);
  snprintf(text, sizeof text, "%s,%s,%s", bare, first, last);
  sign(keys->stored, text, signature);
  for (int i = 0; i < HASH; i++) signature[i] ^= keys->client[i];
  EVP_EncodeBlock(proof, signature, HASH);
  snprintf(token, sizeof token, "%s,p=%s", last, (char *)proof);
  authenticate(connection, request, answer, token);
}

static void *work(void *argument) {
  struct worker *worker = argument;
  struct message *request = malloc(sizeof *request), *answer = malloc(sizeof *answer);
  for (long done = -1; done < worker->share; done++) { /* the first one derives the keys, and is not counted */
    struct connection connection;
    int64_t begun = now_ns();
    open_connection(&connection, worker);
    log_in(worker, &connection, request, answer, done);
    if (done >= 0) histogram_add(&worker->took, now_ns() - begun);
    close_connection(&connection);
  }
  free(request);
  free(answer);
  return NULL;
}

void run_logins(const struct settings *run) {
  static struct worker workers[MOST_WORKERS];
  static struct keys keys[MOST_WORKERS];
  for (int i = 0; i < MOST_WORKERS; i++) workers[i].state = &keys[i];
  double seconds = run_workers(run, workers, work);
  print_workers("logins", run, workers, seconds);
  json_end();
}
