/* Handshakes of TLS 1.3, new or resumed, each followed by one ApiVersions; and the cipher of the suite alone. */
#include "blocking.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

enum { API_VERSIONS = 18, RECORD = 16384, TAG = 16, NONCE = 12 };

static const char suite[] = "TLS_AES_256_GCM_SHA384";

struct sessions {
  SSL_CTX *context;
  SSL_SESSION *newest; /* a ticket is used once */
  long resumed;
};

/* Tickets come behind the handshake, with the first answer. */
static int keep_session(SSL *tls, SSL_SESSION *session) {
  struct sessions *sessions = SSL_get_app_data(tls);
  SSL_SESSION_free(sessions->newest);
  sessions->newest = session;
  return 1;
}

static SSL_CTX *new_context(const struct settings *run) {
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  const char *trusted = property(run, "ssl.ca.location", NULL);
  if (!context || !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) || !SSL_CTX_set_ciphersuites(context, suite))
    fail("OpenSSL has no %s", suite);
  if (!trusted || !SSL_CTX_load_verify_locations(context, trusted, NULL)) fail("-X ssl.ca.location=%s: no PEM file of authorities", trusted ? trusted : "");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keep_session);
  return context;
}

static void *shake_hands(void *argument) {
  struct worker *worker = argument;
  struct sessions *sessions = worker->state;
  bool resumes = strcmp(property(worker->run, "resumed", "no"), "yes") == 0;
  struct message *request = malloc(sizeof *request), *answer = malloc(sizeof *answer);
  for (long done = -1; done < worker->share; done++) { /* the first one fetches a ticket, and is not counted */
    struct connection connection;
    int64_t begun = now_ns();
    open_connection(&connection, worker);
    connection.tls = SSL_new(sessions->context);
    SSL_set_app_data(connection.tls, sessions);
    SSL_set_fd(connection.tls, connection.socket);
    if (resumes && sessions->newest) SSL_set_session(connection.tls, sessions->newest);
    if (SSL_connect(connection.tls) != 1) fail("handshake: %s", ERR_error_string(ERR_get_error(), NULL));
    begin_request(request, API_VERSIONS, 0);
    exchange(&connection, request, answer);
    if (done >= 0) {
      histogram_add(&worker->took, now_ns() - begun);
      sessions->resumed += SSL_session_reused(connection.tls);
    }
    close_connection(&connection);
  }
  free(request);
  free(answer);
  return NULL;
}

void run_handshakes(const struct settings *run) {
  static struct worker workers[MOST_WORKERS];
  static struct sessions sessions[MOST_WORKERS];
  SSL_CTX *context = new_context(run);
  for (int i = 0; i < MOST_WORKERS; i++) {
    sessions[i].context = context;
    workers[i].state = &sessions[i];
  }
  double seconds = run_workers(run, workers, shake_hands);
  long resumed = 0;
  for (int i = 0; i < run->clients; i++) resumed += sessions[i].resumed;
  if (strcmp(property(run, "resumed", "no"), "yes") == 0 && !resumed) fail("no handshake was resumed: the broker gives no tickets");
  print_workers("handshakes", run, workers, seconds);
  json_integer("resumed", resumed);
  json_end();
}

/* What the suite's cipher costs: bytes sealed in records of TLS's size, as a sender does. */
void run_seal(const struct settings *run) {
  unsigned char key[32], nonce[NONCE], *bytes = calloc(1, RECORD), *sealed = malloc(RECORD + TAG);
  RAND_bytes(key, sizeof key);
  RAND_bytes(nonce, sizeof nonce);
  EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
  if (!EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, nonce)) fail("OpenSSL has no AES-256-GCM");
  double user0, system0, user, system;
  own_cpu(&user0, &system0);
  double begun = now_s();
  for (long long left = (long long)run->records * run->size; left > 0; left -= RECORD) {
    int size;
    nonce[0]++;
    EVP_EncryptInit_ex(cipher, NULL, NULL, NULL, nonce);
    EVP_EncryptUpdate(cipher, sealed, &size, bytes, RECORD);
    EVP_EncryptFinal_ex(cipher, sealed + size, &size);
    EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG, sealed + RECORD);
  }
  double seconds = now_s() - begun;
  own_cpu(&user, &system);
  json_begin("seal", run);
  json_number("seconds", seconds);
  json_number("client_user_s", user - user0);
  json_number("client_system_s", system - system0);
  json_end();
}
