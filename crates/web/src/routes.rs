//! The addresses of the page.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ssdyno_cluster::OPEN_METRICS_TYPE;
use ssdyno_figures::{Comparison, FigureComparison, Verdict};
use ssdyno_report::{compare, comparison_html, figure_text};
use ssdyno_session::reference::schema_of;
use ssdyno_session::{Failure, RunSpec};
use ssdyno_task::Task;

use crate::answer::Refused;
use crate::desk::{Desk, RunRequest};
use crate::events::events;
use crate::folders::{FolderList, path_of, result_of};
use crate::guard::{Guard, METRICS, guard};
use crate::presets::presets;

static ASSETS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/assets");

/// Bytes of a request at most: a spec is some kilobytes.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// A report has its styles and scripts in it. It comes from a folder that anybody may have written, so it gets an origin of
/// its own and reaches nothing.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-popups; default-src 'none'; style-src 'unsafe-inline'; \
                             script-src 'unsafe-inline'; img-src data:; font-src data:";

/// What every handler sees.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) desk: Arc<Desk>,
    pub(crate) guard: Guard,
    pub(crate) folders: Arc<FolderList>,
}

type Answer<T> = Result<T, Refused>;

/// All addresses.
pub(crate) fn router(page: Page) -> Router {
    let guarded = page.guard.clone();
    Router::new()
        .route("/", get(index))
        .route("/assets/{name}", get(asset))
        .route("/events", get(|State(page): State<Page>| async move { events(page.desk) }))
        .route("/api/runs", get(runs).post(start))
        .route("/api/check", post(check))
        .route("/api/stop", post(stop))
        .route("/api/compare", get(compared))
        .route("/api/presets", get(|| async { Json(presets()) }))
        .route("/api/schema", get(|| async { Json(schema_of::<RunSpec>()) }))
        .route("/api/schema/task", get(|| async { Json(schema_of::<Task>()) }))
        .route(METRICS, get(metrics))
        .route("/compare.html", get(compared_page))
        .route("/runs/{folder}/{file}", get(result_file))
        .fallback(|| async { Refused::absent("there is nothing at this address") })
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .layer(middleware::from_fn_with_state(guarded, guard))
        .with_state(page)
}

#[derive(Deserialize)]
struct Entrance {
    token: Option<String>,
}

/// The page; with the token in the address a cookie, and the address without it. A redirect would not do: a browser that
/// followed a link from another site sends no cookie after it.
async fn index(
    State(page): State<Page>,
    Query(entrance): Query<Entrance>,
    headers: HeaderMap,
) -> Response {
    // The token leaves the address bar at once: it would stay in the history of
    // the browser, and in every screenshot.
    if entrance.token.is_some_and(|token| page.guard.is_token(&token)) {
        let cookie = [(header::SET_COOKIE, page.guard.set_cookie())];
        return (cookie, Html(include_str!("welcome.html"))).into_response();
    }
    if !page.guard.has_cookie(&headers) {
        let text = include_str!("entrance.html");
        return (StatusCode::FORBIDDEN, Html(text)).into_response();
    }
    let Some(text) = ASSETS.get_file("index.html").and_then(|file| file.contents_utf8()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let text = text
        .replace("{{token}}", &page.guard.token)
        .replace("{{version}}", env!("CARGO_PKG_VERSION"));
    Html(text).into_response()
}

async fn asset(Path(name): Path<String>) -> Answer<Response> {
    let absent = || Refused::absent(format!("there is no file `{name}`"));
    // `index.html` contains a place for the token. It is sent only by
    // `index`, after the cookie was checked.
    let file = ASSETS.get_file(&name).filter(|_| name != "index.html").ok_or_else(absent)?;
    Ok(([(header::CONTENT_TYPE, kind_of(&name))], file.contents()).into_response())
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "csv" => "text/csv; charset=utf-8",
        _ => "application/octet-stream",
    }
}

async fn runs(State(page): State<Page>) -> Answer<Json<Value>> {
    let runs = away(move || {
        let current = page.desk.folder_under_way();
        page.folders.entries(page.desk.results(), current.as_deref())
    });
    let runs = runs.await?;
    Ok(Json(json!({ "runs": runs })))
}

async fn check(
    State(page): State<Page>,
    request: Result<Json<RunRequest>, JsonRejection>,
) -> Answer<Response> {
    let Json(request) = request?;
    let checked = away(move || page.desk.check(&request)).await??;
    Ok(Json(checked).into_response())
}

async fn start(
    State(page): State<Page>,
    request: Result<Json<RunRequest>, JsonRejection>,
) -> Answer<Json<Value>> {
    let Json(request) = request?;
    let id = away(move || page.desk.start(&request)).await??;
    Ok(Json(json!({ "id": id })))
}

async fn stop(State(page): State<Page>) -> Json<Value> {
    page.desk.stop();
    Json(json!({}))
}

/// What Prometheus reads.
async fn metrics(State(page): State<Page>) -> Answer<Response> {
    let text = away(move || page.desk.metrics()).await?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS_TYPE)], text.to_string()).into_response())
}

#[derive(Deserialize)]
struct Pair {
    first: String,
    second: String,
}

/// A comparison with its values as text.
#[derive(Serialize)]
struct ComparisonView {
    first: String,
    second: String,
    figures: Vec<FigureView>,
    verdict: Verdict,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct FigureView {
    #[serde(flatten)]
    figure: FigureComparison,
    low: Option<f64>,
    high: Option<f64>,
    first_text: String,
    second_text: String,
}

impl FigureView {
    fn of(figure: FigureComparison) -> FigureView {
        let interval = figure.interval.as_ref();
        FigureView {
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            first_text: figure_text(&figure.figure, figure.first, figure.first_is_lower_bound),
            second_text: figure_text(&figure.figure, figure.second, figure.second_is_lower_bound),
            figure,
        }
    }
}

async fn compared(
    State(page): State<Page>,
    Query(pair): Query<Pair>,
) -> Answer<Json<ComparisonView>> {
    let view = move || {
        let base = page.desk.results();
        let (first, second) = (result_of(base, &pair.first)?, result_of(base, &pair.second)?);
        let compared = compare(&first, &second);
        // The most important notes come first: what cannot be compared, then what changed, then warnings.
        // Each `splice` puts its notes before the earlier ones.
        let mut notes = compared.notes;
        notes.splice(0..0, compared.warnings.iter().map(|one| format!("warning: {}", one.line())));
        let changed = compared.changed_provenance.iter().chain(&compared.changed);
        notes.splice(0..0, changed.map(|change| format!("changed: {change}")));
        let unlike = compared.not_comparable.into_iter();
        notes.splice(0..0, unlike.map(|why| format!("not comparable: {why}")));
        let figures = compared.figures.into_iter().map(FigureView::of).collect();
        let verdict = compared.verdict;
        let Pair { first, second } = pair;
        Ok::<_, Refused>(ComparisonView { first, second, figures, verdict, notes })
    };
    Ok(Json(away(view).await??))
}

async fn compared_page(State(page): State<Page>, Query(pair): Query<Pair>) -> Answer<Response> {
    let view = move || {
        let base = page.desk.results();
        let results = [result_of(base, &pair.first)?, result_of(base, &pair.second)?];
        let Pair { first, second } = pair;
        let comparison = Comparison { first, second, ..compare(&results[0], &results[1]) };
        Ok::<_, Refused>(comparison_html(&results, &[comparison], &[]))
    };
    let html = away(view).await??;
    Ok(([(header::CONTENT_SECURITY_POLICY, REPORT_POLICY)], Html(html)).into_response())
}

/// A file of a result; large ones go out as they are read.
async fn result_file(
    State(page): State<Page>,
    Path((folder, file)): Path<(String, String)>,
) -> Answer<Response> {
    let path = path_of(page.desk.results(), &folder, &file)?;
    let cannot = |error: std::io::Error| {
        Refused::from(Failure::failed(format!("cannot read {file}: {error}")))
    };
    let opened = tokio::fs::File::open(&path).await.map_err(cannot)?;
    let bytes = opened.metadata().await.map_err(cannot)?.len();
    // The policy gives the report an origin of its own. A report from a folder that anybody
    // may have written can then not call this server.
    let headers = [
        (header::CONTENT_TYPE, kind_of(&file).to_owned()),
        (header::CONTENT_SECURITY_POLICY, REPORT_POLICY.to_owned()),
        (header::CONTENT_LENGTH, bytes.to_string()),
    ];
    Ok((headers, Body::from_stream(chunks(opened))).into_response())
}

/// Bytes of a file that are in memory at once.
const CHUNK_BYTES: usize = 256 << 10;

fn chunks(
    file: tokio::fs::File,
) -> impl futures_util::Stream<Item = std::io::Result<Vec<u8>>> + Send + 'static {
    futures_util::stream::try_unfold(file, |mut file| async move {
        use tokio::io::AsyncReadExt as _;
        // A file of rows may have gigabytes. It is sent piece by piece, so the server
        // never holds more than one piece in memory.
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let read = (&mut file).take(CHUNK_BYTES as u64).read_to_end(&mut chunk).await?;
        Ok((read > 0).then_some((chunk, file)))
    })
}

/// Does what may wait away from the threads that carry the connections.
async fn away<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Answer<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::failed(format!("the server failed: {error}")).into())
}
