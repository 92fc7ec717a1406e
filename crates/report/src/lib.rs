//! The presentation of a result, and its files.
//!
//! From a [`RunResult`](ssdyno_figures::RunResult) alone come the text for the terminal ([`summary_text`]), the page
//! ([`report_html`]), JSON that has no figure which is not finite ([`to_json`]), the series as CSV ([`series_csv`]) and
//! comparisons ([`compare`], by the figures of [`headline_figures`]); a [`RunDirectory`] writes them and the rows. Other kinds of runs make their pages of
//! [`Page`], [`Plot`] and [`html_table`].
//!
//! `lines` has what the terminal and the page share: the rows about jobs, hosts and faults. Content for the terminal
//! only is in `text`; content for the page only is in `html`.
//!
//! Errors: [`ResultError`] for figures that are not finite and for files that cannot be written, naming the figure or the
//! path and what to do.
//!
//! Not here: the shapes themselves (`figures`) and what is computed from requests (`record`); the live view of the
//! terminal, which is in the command line.

mod changes;
mod compare;
mod compare_csv;
mod directory;
mod error;
mod finite;
mod headline;
mod html;
mod intervals;
mod lines;
mod provenance;
mod repeat;
mod repeat_text;
mod series_csv;
mod side_by_side;
mod text;
mod unfair;

pub use changes::AskedKeys;
pub use compare::{compare, compare_asked};
pub use compare_csv::comparison_csv;
pub use directory::RunDirectory;
pub use error::ResultError;
pub use finite::to_json;
pub use headline::{
    FigureKind, HEADLINES, HeadlineFigure, figure_format, figure_text, headline_figures,
};
pub use html::{Axis, Page, Plot, table as html_table};
pub use html::{comparison_html, report_html};
pub use intervals::plus_minus;
pub use repeat::{compare_runs, repeated_figures, spread};
pub use repeat_text::repeated_text;
pub use series_csv::series_csv;
pub use side_by_side::{SortBy, aligned, comparison_text, runs_table, runs_text, verdict};
pub use text::summary_text;
