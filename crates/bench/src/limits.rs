//! Limits of the process (setrlimit(2)) that would end it without a word.

/// Makes writing beyond the limit of file sizes (RLIMIT_FSIZE, `ulimit -f`) an error that can be told
/// (EFBIG) instead of the end of the program: what was measured is then still printed.
#[expect(unsafe_code, reason = "no safe wrapper of signal in the libraries that we use")]
pub fn outlive_file_size_limit() {
    // SAFETY: signal(2) with SIG_IGN installs no code of ours, so nothing can run at a bad moment.
    // Where it fails everything stays as it was.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
