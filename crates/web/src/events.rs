//! The updates pushed to the page: server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::desk::{Desk, SeenBeside};
use crate::series::Seen;
use crate::view::RunView;

/// The shortest interval of state updates, and of series updates.
const STATE_EVERY: Duration = Duration::from_millis(250);
const SERIES_EVERY: Duration = Duration::from_millis(100);

/// A viewer receives the state at least this often, so that both sides notice a dead connection. The page takes a
/// connection for dead after four times as long (`SILENT_MS` in `app.js`).
const ALIVE_EVERY: Duration = Duration::from_secs(2);

/// How long a browser waits before it connects again; by itself it would wait for three seconds.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct StateView {
    sequence: u64,
    server: u64,
    run: Option<RunView>,
}

/// One viewer.
struct Viewer {
    desk: Arc<Desk>,
    changes: watch::Receiver<u64>,
    seen: Option<(u64, Seen)>,
    seen_systems: SeenBeside,
    seen_sources: SeenBeside,
    seen_flash: Option<(u64, u64)>,
    /// The time of the next state update.
    state_due: Option<Instant>,
    is_first: bool,
}

/// Everything that is pushed to one viewer, until it is gone.
pub(crate) fn events(desk: Arc<Desk>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = desk.changes();
    let viewer = Viewer {
        desk,
        changes,
        seen: None,
        seen_systems: SeenBeside::default(),
        seen_sources: SeenBeside::default(),
        seen_flash: None,
        state_due: None,
        is_first: true,
    };
    let first = vec![Event::default().retry(RETRY)];
    let stream = unfold((viewer, first), |(mut viewer, mut waiting)| async move {
        while waiting.is_empty() {
            viewer.collect(&mut waiting).await?;
        }
        let event = waiting.remove(0);
        Some((Ok(event), (viewer, waiting)))
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE_EVERY))
}

impl Viewer {
    /// Waits for something new and adds it to `events`; `None` once nothing will come.
    async fn collect(&mut self, events: &mut Vec<Event>) -> Option<()> {
        if !self.is_first {
            // Without a change the state is still sent every two seconds. A proxy or a sleeping laptop breaks
            // connections silently, and both sides notice it by that.
            let until = self.state_due.unwrap_or_else(|| Instant::now() + ALIVE_EVERY);
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                () = tokio::time::sleep_until(until) => {}
            }
            // The short wait collects changes that come together, such as the reports of
            // many hosts. They then travel in one message.
            tokio::time::sleep(SERIES_EVERY / 2).await;
        }
        let sequence = *self.changes.borrow_and_update();
        let now = Instant::now();
        let due =
            *self.state_due.get_or_insert(if self.is_first { now } else { now + STATE_EVERY });
        // The state is copied before the series and sent after it. When a viewer hears of the
        // end of a run, it already has all of its points.
        let run = (now >= due).then(|| self.desk.view());
        if let Some(news) = self.desk.news(&mut self.seen) {
            events.extend(event(if news.is_whole { "series" } else { "points" }, &news));
        }
        if let Some(run) = run {
            self.state_due = None;
            // The page forgets the flash of another run when it hears of a new one. News of the same run therefore go
            // first, so that the picture is complete when the end is told.
            let known = self.seen_flash.map(|(run, _)| run);
            let server = self.desk.since_unix_ms;
            let flash = self.desk.flash_news(&mut self.seen_flash);
            let (before, after): (Vec<_>, Vec<_>) =
                flash.into_iter().partition(|flash| Some(flash.run) == known);
            events.extend(before.iter().filter_map(|flash| event("flash", flash)));
            events.extend(event("state", &StateView { sequence, server, run }));
            events.extend(after.iter().filter_map(|flash| event("flash", flash)));
            // The page forgets the samples of another run when it hears of a new one,
            // so samples are sent after the state.
            let systems = self.desk.system_news(&mut self.seen_systems);
            events.extend(systems.iter().filter_map(|news| event("system", news)));
            let sources = self.desk.source_news(&mut self.seen_sources);
            events.extend(sources.iter().filter_map(|news| event("metrics", news)));
        }
        self.is_first = false;
        Some(())
    }
}

fn event(name: &str, data: &impl Serialize) -> Option<Event> {
    Event::default().event(name).json_data(data).ok()
}
