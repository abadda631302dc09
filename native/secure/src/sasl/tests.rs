//! RFC vectors, and servers that send invalid tokens.

use proptest::prelude::*;

use super::*;

const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
/// RFC 7677, section 3.
const SERVER_FIRST: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
const SERVER_FINAL: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

fn scram(username: &str) -> Credentials {
    let password = Secret::new("pencil".to_owned());
    Credentials::Scram { hash: Hash::Sha256, username: username.to_owned(), password, is_token: false }
}

fn begun(username: &str) -> (Exchange, String) {
    let (exchange, first) = scram(username).begin_with(NONCE, "broker", 0).unwrap();
    (exchange, String::from_utf8(first).unwrap())
}

fn sent(step: Result<Step, SaslError>) -> String {
    match step {
        Ok(Step::Send(token)) => String::from_utf8(token).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_exchange_of_rfc_7677_is_said_word_for_word() {
    let (mut exchange, first) = begun("user");
    assert_eq!(first, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
    assert_eq!(
        sent(exchange.step(SERVER_FIRST.as_bytes())),
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    );
    assert_eq!(exchange.step(SERVER_FINAL.as_bytes()), Ok(Step::Done));
    assert_eq!(exchange.step(b""), Err(SaslError::Endless { mechanism: "SCRAM-SHA-256" }));
}

#[test]
fn a_server_without_the_password_is_found_out() {
    for last in ["v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", "v=", "v=!", "v=AAAA"] {
        let (mut exchange, _) = begun("user");
        sent(exchange.step(SERVER_FIRST.as_bytes()));
        assert_eq!(exchange.step(last.as_bytes()), Err(SaslError::WrongSignature), "{last}");
    }
}

#[test]
fn a_server_that_skips_its_proof_is_refused() {
    let (mut exchange, _) = begun("user");
    assert_eq!(exchange.step(b""), Err(SaslError::Malformed { what: "first message" }));
    let (mut exchange, _) = begun("user");
    sent(exchange.step(SERVER_FIRST.as_bytes()));
    assert_eq!(exchange.step(b""), Err(SaslError::Malformed { what: "final message" }));
    let (mut exchange, _) = begun("user");
    sent(exchange.step(SERVER_FIRST.as_bytes()));
    let refused = SaslError::Refused { detail: "invalid-proof".to_owned() };
    assert_eq!(exchange.step(b"e=invalid-proof"), Err(refused));
}

#[test]
fn iterations_are_bounded_on_both_sides() {
    for requested in [0_u64, 1, 4095, 262_145, 2_147_483_648, u64::MAX] {
        let (mut exchange, _) = begun("user");
        let first = format!("r={NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i={requested}");
        let refused = SaslError::Iterations { requested, least: 4096, most: 262_144 };
        assert_eq!(exchange.step(first.as_bytes()), Err(refused));
    }
}

#[test]
fn another_exchanges_nonce_is_refused() {
    for nonce in ["", "rOprNGfwEbeRWgbNEkqO", "rOprNGfwEbeRWgbNEkq", "xOprNGfwEbeRWgbNEkqOabc"] {
        let (mut exchange, _) = begun("user");
        let first = format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        assert_eq!(exchange.step(first.as_bytes()), Err(SaslError::ForeignNonce), "{nonce}");
    }
}

#[test]
fn a_name_cannot_add_an_attribute() {
    assert_eq!(begun("a,r=forged=").1, "n,,n=a=2Cr=3Dforged=3D,r=rOprNGfwEbeRWgbNEkqO");
}

#[test]
fn a_delegation_token_says_that_it_is_one() {
    let password = Secret::new("hmac".to_owned());
    let token = Credentials::Scram { hash: Hash::Sha512, username: "id".to_owned(), password, is_token: true };
    let (_, first) = token.begin_with("abc", "broker", 0).unwrap();
    assert_eq!(first, b"n,,n=id,r=abc,tokenauth=true");
    assert_eq!(token.mechanism(), "SCRAM-SHA-512");
}

#[test]
fn plain_ends_with_an_empty_token() {
    let plain = Credentials::Plain { username: "alice".to_owned(), password: Secret::new("s3cret".to_owned()) };
    let (mut exchange, first) = plain.begin("broker", 0).unwrap();
    assert_eq!(first, b"\0alice\0s3cret");
    assert_eq!(exchange.step(b"go on"), Err(SaslError::Endless { mechanism: "PLAIN" }));
    assert_eq!(exchange.step(b""), Ok(Step::Done));
}

#[test]
fn a_bearer_token_is_sent_until_it_runs_out() {
    let cell = Arc::new(TokenCell::default());
    let credentials = Credentials::OauthBearer(Arc::clone(&cell));
    assert!(matches!(credentials.begin("broker", 0), Err(SaslError::NoToken { .. })));
    let extensions = vec![("logicalCluster".to_owned(), "lkc-1".to_owned())];
    cell.set(Some(Bearer::new(Secret::new("e.y.J".to_owned()), Some(1_000), extensions)));
    let (mut exchange, first) = credentials.begin("broker", 999).unwrap();
    assert_eq!(first, b"n,,\x01auth=Bearer e.y.J\x01logicalCluster=lkc-1\x01\x01");
    assert_eq!(exchange.step(b""), Ok(Step::Done));
    assert!(matches!(credentials.begin("broker", 1_000), Err(SaslError::NoToken { .. })));
}

#[test]
fn a_refused_bearer_token_is_acknowledged_once() {
    let cell = Arc::new(TokenCell::default());
    cell.set(Some(Bearer::new(Secret::new("t".to_owned()), None, Vec::new())));
    let (mut exchange, _) = Credentials::OauthBearer(cell).begin("broker", 0).unwrap();
    assert_eq!(exchange.step(b"{\"status\":\n\"invalid_token\"}"), Ok(Step::Send(vec![1])));
    assert_eq!(exchange.failure(), Some("{\"status\": \"invalid_token\"}"));
    assert!(matches!(exchange.step(b"more"), Err(SaslError::Refused { .. })));
}

/// Returns each token unchanged, and ends with an empty one; the first token is the host.
#[derive(Debug)]
struct Echo;

impl TokenMaker for Echo {
    fn mechanism(&self) -> &'static str {
        "ECHO"
    }

    fn begin(&self, host: &str) -> Result<(Box<dyn TokenSteps>, Vec<u8>), SaslError> {
        match host {
            "" => Err(SaslError::Failed { detail: "no host".to_owned() }),
            _ => Ok((Box::new(Self), host.as_bytes().to_vec())),
        }
    }
}

impl TokenSteps for Echo {
    fn step(&mut self, token: &[u8]) -> Result<Step, SaslError> {
        Ok(if token.is_empty() { Step::Done } else { Step::Send(token.to_vec()) })
    }
}

#[test]
fn tokens_that_others_make_go_through_with_the_servers_host() {
    let credentials = Credentials::Library(Arc::new(Echo));
    assert_eq!(credentials.mechanism(), "ECHO");
    let (mut exchange, first) = credentials.begin("broker", 0).unwrap();
    assert_eq!(first, b"broker");
    assert_eq!(exchange.step(b"more"), Ok(Step::Send(b"more".to_vec())));
    assert_eq!((exchange.step(b""), exchange.failure()), (Ok(Step::Done), None));
    let failed = credentials.begin("", 0).unwrap_err();
    assert_eq!(failed.to_string(), "no host");
}

#[test]
fn no_debug_output_has_a_secret() {
    let cell = Arc::new(TokenCell::default());
    cell.set(Some(Bearer::new(Secret::new("s3cret".to_owned()), None, Vec::new())));
    let password = Secret::new("s3cret".to_owned());
    let plain = Credentials::Plain { username: "alice".to_owned(), password: password.clone() };
    let scram = Credentials::Scram { hash: Hash::Sha256, username: "alice".to_owned(), password, is_token: false };
    let begun = scram.begin("broker", 0).unwrap();
    let text = format!("{plain:?} {scram:?} {:?} {:?}", begun.0, Credentials::OauthBearer(cell));
    assert!(!text.contains("s3cret") && text.contains("alice"), "{text}");
}

proptest! {
    #[test]
    fn no_token_of_a_server_panics(tokens: Vec<Vec<u8>>, texts: Vec<String>) {
        let (mut exchange, _) = begun("user");
        for token in tokens.iter().map(Vec::as_slice).chain(texts.iter().map(String::as_bytes)) {
            let _ = exchange.step(token);
        }
    }

    #[test]
    fn no_first_message_of_a_server_succeeds_without_its_last(salt: Vec<u8>, rest in "[ -~]{0,40}") {
        let (mut exchange, _) = begun("user");
        let first = format!("r={NONCE}x,s={},i=4096", scram::encoded(&salt));
        sent(exchange.step(first.as_bytes()));
        prop_assert!(exchange.step(rest.as_bytes()).is_err());
    }
}
