//! Access control: which clients may send which requests.
//!
//! A browser opens pages of many origins, and each may send requests to loopback. So a request must name this server in
//! `Host` (a name that an attacker's DNS turns into 127.0.0.1 is refused), must have the session's token, in a cookie that
//! is sent from pages of this origin alone, and must repeat the token in a header where it changes something: a form of
//! another origin cannot set one.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, ORIGIN};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ssdyno_session::{Failure, FailureKind};

use crate::answer::failure_response;

/// The header that repeats the token.
const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-ssdyno-token");

/// Where the metrics are, the one address that takes a bearer token.
pub(crate) const METRICS: &str = "/metrics";

/// The page may load its own files and nothing else.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// The session's token, and the names of this server.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) token: Arc<str>,
    /// `HOST:PORT`, as `Host` may say it; at port 80 also `HOST`.
    names: Arc<[String]>,
    cookie: Arc<str>,
}

impl Guard {
    /// Of a server that listens at `address`, one of loopback.
    pub(crate) fn new(address: SocketAddr) -> Result<Guard, Failure> {
        let mut bytes = [0u8; 24];
        getrandom::fill(&mut bytes)
            .map_err(|error| Failure::failed(format!("no random numbers for a token: {error}")))?;
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let port = address.port();
        // The listener may have another address of loopback, such as 127.0.0.2.
        let own = match address.ip() {
            IpAddr::V6(own) => format!("[{own}]"),
            IpAddr::V4(own) => own.to_string(),
        };
        let hosts = ["127.0.0.1", "localhost", "[::1]", &own];
        let mut names: Vec<String> = hosts.iter().map(|host| format!("{host}:{port}")).collect();
        // Browsers leave out the port of the scheme (RFC 9110, 4.2.3).
        if port == 80 {
            names.extend(hosts.map(str::to_owned));
        }
        // Cookies are shared by all ports of a host. Without the port in the name, a second server on
        // this machine would overwrite the cookie of the first.
        let cookie = format!("ssdyno_{port}");
        Ok(Guard { token: token.into(), names: names.into(), cookie: cookie.into() })
    }

    /// The header that gives a browser the cookie.
    pub(crate) fn set_cookie(&self) -> String {
        // `SameSite=Strict`: a link on another site does not carry the cookie.
        // `HttpOnly`: a script in a report cannot read it.
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.token)
    }

    /// Whether `text` is the token. It takes the same time wherever they differ.
    pub(crate) fn is_token(&self, text: &str) -> bool {
        // The comparison looks at all bytes. A comparison that stops at the first difference would
        // let its duration reveal the token byte by byte.
        let differ = text.bytes().zip(self.token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
        text.len() == self.token.len() && differ == 0
    }

    /// Whether a request with these headers has the cookie.
    pub(crate) fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).map(str::trim);
        pairs.any(|pair| {
            pair.split_once('=')
                .is_some_and(|(name, value)| name == &*self.cookie && self.is_token(value))
        })
    }

    fn has_header(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(TOKEN_HEADER).and_then(|value| value.to_str().ok());
        given.is_some_and(|given| self.is_token(given))
    }

    /// Whether it has the token as a program sends it that knows no cookies, such as Prometheus (RFC 6750, clause 2.1).
    fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let pair = given.and_then(|given| given.split_once(' '));
        pair.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer") && self.is_token(token.trim())
        })
    }

    /// Why a request is refused.
    fn refusal(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<(StatusCode, Failure)> {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let refused = |what: &str| Failure::new(FailureKind::Usage, what).with_key("token");
        let is_mine = |name: &str| self.names.iter().any(|mine| mine == name);
        // DNS rebinding: a page of another origin lets its own name point to 127.0.0.1. The browser
        // then sends that name, and this test refuses it.
        if !text(HOST).is_some_and(is_mine) {
            let what =
                "this server does not have that name: open the address that `ssdyno ui` printed";
            return Some((StatusCode::MISDIRECTED_REQUEST, refused(what)));
        }
        let origin = text(ORIGIN);
        // Browsers send `Origin` with every request that changes something. Programs send
        // none, and for them the token alone counts.
        if origin.is_some_and(|origin| !origin.strip_prefix("http://").is_some_and(is_mine)) {
            let what = "requests from pages of other origins are refused";
            return Some((StatusCode::FORBIDDEN, refused(what)));
        }
        let changes = !matches!(*method, Method::GET | Method::HEAD);
        let is_public = path == "/" || path.starts_with("/assets/");
        let is_let_in = self.has_header(headers)
            || self.has_cookie(headers)
            || (path == METRICS && self.has_bearer(headers));
        // A request that changes something needs the header, not only the cookie. A form on another
        // site can send a cookie, but it cannot set a header.
        if (changes && !self.has_header(headers)) || !(is_public || is_let_in) {
            let what = "the session's token is missing or wrong: open the address that `ssdyno ui` printed";
            return Some((StatusCode::FORBIDDEN, refused(what)));
        }
        None
    }
}

/// Lets a request through, or refuses it.
pub(crate) async fn guard(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let refusal = guard.refusal(request.method(), request.uri().path(), request.headers());
    let mut response = match refusal {
        Some((status, failure)) => failure_response(status, &failure).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    // A handler may set a policy of its own: a report needs its inline scripts.
    // `or_insert` leaves that one in place.
    let mut set = |name: &'static str, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set("content-security-policy", POLICY);
    set("x-content-type-options", "nosniff");
    set("referrer-policy", "no-referrer");
    set("cross-origin-resource-policy", "same-origin");
    set("cache-control", "no-store");
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        all.iter().map(pair).collect()
    }

    fn guard_at(address: &str) -> Guard {
        Guard::new(address.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_server_has_the_name_that_it_prints() {
        let status = |address: &str, host: &str| {
            let refusal = guard_at(address).refusal(&Method::GET, "/", &headers(&[("host", host)]));
            refusal.map(|(status, _)| status.as_u16())
        };
        for (address, host, expected) in [
            ("127.0.0.2:17850", "127.0.0.2:17850", None),
            ("127.0.0.1:17850", "127.0.0.2:17850", Some(421)),
            ("[::1]:80", "[::1]", None),
            ("127.0.0.1:80", "localhost", None),
            ("127.0.0.1:80", "127.0.0.1:80", None),
            ("127.0.0.2:80", "127.0.0.2", None),
            ("127.0.0.1:7800", "localhost", Some(421)),
            ("127.0.0.1:80", "evil.example", Some(421)),
        ] {
            assert_eq!(status(address, host), expected, "{host} at {address}");
        }
        let guard = guard_at("127.0.0.1:80");
        let all = [
            ("host", "127.0.0.1"),
            ("origin", "http://127.0.0.1"),
            ("x-ssdyno-token", &*guard.token),
        ];
        assert!(guard.refusal(&Method::POST, "/api/stop", &headers(&all)).is_none());
    }

    #[test]
    fn only_the_session_changes_anything() {
        let guard = guard_at("127.0.0.1:7800");
        let cookie = format!("a=b; ssdyno_7800={}", guard.token);
        let (host, token) = (("host", "127.0.0.1:7800"), ("x-ssdyno-token", &*guard.token));
        let cookie = ("cookie", cookie.as_str());
        let status = |method: Method, path: &str, all: &[(&'static str, &str)]| {
            guard.refusal(&method, path, &headers(all)).map(|(status, _)| status.as_u16())
        };
        assert_eq!(status(Method::GET, "/", &[host]), None);
        assert_eq!(status(Method::GET, "/api/runs", &[host]), Some(403));
        assert_eq!(status(Method::GET, "/api/runs", &[host, cookie]), None);
        assert_eq!(status(Method::POST, "/api/runs", &[host, token]), None);
        // A form of another page: the browser may send the cookie, and nothing else.
        assert_eq!(status(Method::POST, "/api/runs", &[host, cookie]), Some(403));
        let evil = ("origin", "http://evil.example");
        assert_eq!(status(Method::POST, "/api/runs", &[host, cookie, token, evil]), Some(403));
        assert_eq!(status(Method::GET, "/api/runs", &[host, cookie, evil]), Some(403));
        let sandboxed = ("origin", "null");
        assert_eq!(status(Method::POST, "/api/runs", &[host, cookie, token, sandboxed]), Some(403));
        let own = ("origin", "http://127.0.0.1:7800");
        assert_eq!(status(Method::POST, "/api/runs", &[host, token, own]), None);
        // DNS that turns another name into 127.0.0.1.
        let rebound = ("host", "evil.example:7800");
        assert_eq!(status(Method::GET, "/", &[rebound, cookie, token]), Some(421));
        assert_eq!(status(Method::GET, "/", &[cookie, token]), Some(421));
        assert_eq!(status(Method::GET, "/", &[("host", "localhost:7801")]), Some(421));
        let wrong = ("x-ssdyno-token", &guard.token[1..]);
        assert_eq!(status(Method::POST, "/api/stop", &[host, wrong]), Some(403));
        assert_ne!(guard_at("127.0.0.1:7800").token, guard.token);
    }

    #[test]
    fn a_bearer_token_reads_the_metrics_and_nothing_else() {
        let guard = guard_at("127.0.0.1:7800");
        let host = ("host", "127.0.0.1:7800");
        let status = |method: Method, path: &str, text: String, host: (&'static str, &str)| {
            let headers = headers(&[host, ("authorization", &text)]);
            guard.refusal(&method, path, &headers).map(|(status, _)| status.as_u16())
        };
        let token = &guard.token;
        let get = |text: String| status(Method::GET, "/metrics", text, host);
        assert_eq!(get(format!("Bearer {token}")), None);
        assert_eq!(get(format!("bearer {token}")), None);
        let wrong = [
            token.to_string(),
            format!("Basic {token}"),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            format!("Bearer {}", &token[1..]),
            format!("Bearer {token}0"),
            format!("Bearer g{}", &token[1..]),
        ];
        for text in wrong {
            assert_eq!(get(text.clone()), Some(403), "{text}");
        }
        let good = format!("Bearer {token}");
        assert_eq!(status(Method::GET, "/api/runs", good.clone(), host), Some(403));
        assert_eq!(status(Method::POST, "/metrics", good.clone(), host), Some(403));
        let rebound = ("host", "evil.example:7800");
        assert_eq!(status(Method::GET, "/metrics", good, rebound), Some(421));
        let none = guard.refusal(&Method::GET, "/metrics", &headers(&[host]));
        assert_eq!(none.map(|(status, _)| status.as_u16()), Some(403));
    }
}
