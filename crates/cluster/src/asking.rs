//! Questions to many hosts.

use futures_util::StreamExt as _;
use futures_util::stream;

/// Hosts that are asked at once. Of 1000 that were, the last waited longer than an answer may take: the controller has one
/// thread for all of them.
const AT_ONCE: usize = 64;

/// The results of `questions`, in their order; a bounded number is open at a time.
pub(crate) async fn ask_all<F: Future>(questions: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    // `buffered` keeps the order of the questions, so that callers can `zip` the answers with their hosts.
    // `buffer_unordered` would finish earlier by nothing: a caller needs all answers anyway.
    stream::iter(questions).buffered(AT_ONCE).collect().await
}
