//! Failures as HTTP responses.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use ssdyno_session::{ErrorBody, Failure, FailureKind};

use crate::current::BUSY;

/// A failure, with its status.
pub(crate) struct Refused(StatusCode, Failure);

#[derive(Serialize)]
struct ErrorObject {
    error: ErrorBody,
}

/// An answer with a failure in it.
pub(crate) fn failure_response(status: StatusCode, failure: &Failure) -> impl IntoResponse + use<> {
    (status, Json(ErrorObject { error: failure.body() }))
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        failure_response(self.0, &self.1).into_response()
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        // The page reads the body, and scripts read the status. A mistake in the request is 422,
        // because the request itself was well-formed HTTP.
        let status = match failure.kind {
            FailureKind::Usage => StatusCode::UNPROCESSABLE_ENTITY,
            FailureKind::Failed if failure.key.as_deref() == Some(BUSY) => StatusCode::CONFLICT,
            FailureKind::Unwritable => StatusCode::INSUFFICIENT_STORAGE,
            FailureKind::Undecided => StatusCode::UNPROCESSABLE_ENTITY,
            FailureKind::Failed | FailureKind::Interrupted => StatusCode::BAD_GATEWAY,
        };
        Refused(status, failure)
    }
}

impl From<JsonRejection> for Refused {
    fn from(rejection: JsonRejection) -> Refused {
        Refused(rejection.status(), Failure::usage(rejection.body_text()))
    }
}

impl Refused {
    /// There is no such thing.
    pub(crate) fn absent(what: impl Into<String>) -> Refused {
        Refused(StatusCode::NOT_FOUND, Failure::usage(what))
    }
}
