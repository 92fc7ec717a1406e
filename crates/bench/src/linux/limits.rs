//! Limits of the process (setrlimit(2)) that would end it without a word.

/// Turns a write beyond the file size limit (RLIMIT_FSIZE, `ulimit -f`) into a reportable error (EFBIG). Otherwise it
/// would end the program, and the measured figures would be lost.
#[expect(unsafe_code, reason = "no safe wrapper of signal in the libraries that we use")]
pub fn outlive_file_size_limit() {
    // SAFETY: signal(2) with SIG_IGN installs no code of ours, so nothing can run at a bad moment.
    // Where it fails everything stays as it was.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
