//! Operation codes (SPC-4 annex E.3, SBC-3 table 18) and service actions.

/// TEST UNIT READY (SPC-4, 6.47).
pub const TEST_UNIT_READY: u8 = 0x00;
/// REQUEST SENSE (SPC-4, 6.39).
pub const REQUEST_SENSE: u8 = 0x03;
/// FORMAT UNIT (SBC-3, 5.3).
pub const FORMAT_UNIT: u8 = 0x04;
/// READ (6) (SBC-2, 5.5).
pub const READ_6: u8 = 0x08;
/// WRITE (6) (SBC-2, 5.24).
pub const WRITE_6: u8 = 0x0a;
/// INQUIRY (SPC-4, 6.6).
pub const INQUIRY: u8 = 0x12;
/// MODE SELECT (6) (SPC-4, 6.11).
pub const MODE_SELECT_6: u8 = 0x15;
/// RESERVE (6) (SPC-2, 7.21).
pub const RESERVE_6: u8 = 0x16;
/// RELEASE (6) (SPC-2, 7.16).
pub const RELEASE_6: u8 = 0x17;
/// MODE SENSE (6) (SPC-4, 6.13).
pub const MODE_SENSE_6: u8 = 0x1a;
/// START STOP UNIT (SBC-3, 5.25).
pub const START_STOP_UNIT: u8 = 0x1b;
/// SEND DIAGNOSTIC (SPC-4, 6.42).
pub const SEND_DIAGNOSTIC: u8 = 0x1d;
/// READ CAPACITY (10) (SBC-3, 5.15).
pub const READ_CAPACITY_10: u8 = 0x25;
/// READ (10) (SBC-3, 5.11).
pub const READ_10: u8 = 0x28;
/// WRITE (10) (SBC-3, 5.35).
pub const WRITE_10: u8 = 0x2a;
/// WRITE AND VERIFY (10) (SBC-3, 5.39).
pub const WRITE_AND_VERIFY_10: u8 = 0x2e;
/// VERIFY (10) (SBC-3, 5.31).
pub const VERIFY_10: u8 = 0x2f;
/// PRE-FETCH (10) (SBC-3, 5.8).
pub const PRE_FETCH_10: u8 = 0x34;
/// SYNCHRONIZE CACHE (10) (SBC-3, 5.26).
pub const SYNCHRONIZE_CACHE_10: u8 = 0x35;
/// READ DEFECT DATA (10) (SBC-3, 5.17).
pub const READ_DEFECT_DATA_10: u8 = 0x37;
/// WRITE SAME (10) (SBC-3, 5.45).
pub const WRITE_SAME_10: u8 = 0x41;
/// UNMAP (SBC-3, 5.28).
pub const UNMAP: u8 = 0x42;
/// SANITIZE (SBC-4, 5.30): see [`sanitize_action`].
pub const SANITIZE: u8 = 0x48;
/// LOG SENSE (SPC-4, 6.8).
pub const LOG_SENSE: u8 = 0x4d;
/// MODE SELECT (10) (SPC-4, 6.12).
pub const MODE_SELECT_10: u8 = 0x55;
/// RESERVE (10) (SPC-2, 7.20).
pub const RESERVE_10: u8 = 0x56;
/// RELEASE (10) (SPC-2, 7.17).
pub const RELEASE_10: u8 = 0x57;
/// MODE SENSE (10) (SPC-4, 6.14).
pub const MODE_SENSE_10: u8 = 0x5a;
/// PERSISTENT RESERVE IN (SPC-4, 6.15).
pub const PERSISTENT_RESERVE_IN: u8 = 0x5e;
/// PERSISTENT RESERVE OUT (SPC-4, 6.16).
pub const PERSISTENT_RESERVE_OUT: u8 = 0x5f;
/// READ (16) (SBC-3, 5.13).
pub const READ_16: u8 = 0x88;
/// COMPARE AND WRITE (SBC-3, 5.2).
pub const COMPARE_AND_WRITE: u8 = 0x89;
/// WRITE (16) (SBC-3, 5.37).
pub const WRITE_16: u8 = 0x8a;
/// ORWRITE (16) (SBC-3, 5.6).
pub const ORWRITE_16: u8 = 0x8b;
/// WRITE AND VERIFY (16) (SBC-3, 5.41).
pub const WRITE_AND_VERIFY_16: u8 = 0x8e;
/// VERIFY (16) (SBC-3, 5.33).
pub const VERIFY_16: u8 = 0x8f;
/// PRE-FETCH (16) (SBC-3, 5.9).
pub const PRE_FETCH_16: u8 = 0x90;
/// SYNCHRONIZE CACHE (16) (SBC-3, 5.27).
pub const SYNCHRONIZE_CACHE_16: u8 = 0x91;
/// WRITE SAME (16) (SBC-3, 5.46).
pub const WRITE_SAME_16: u8 = 0x93;
/// SERVICE ACTION IN (16): see [`service_action_in`].
pub const SERVICE_ACTION_IN_16: u8 = 0x9e;
/// REPORT LUNS (SPC-4, 6.33).
pub const REPORT_LUNS: u8 = 0xa0;
/// MAINTENANCE IN: see [`maintenance_in`].
pub const MAINTENANCE_IN: u8 = 0xa3;
/// READ (12) (SBC-3, 5.12).
pub const READ_12: u8 = 0xa8;
/// WRITE (12) (SBC-3, 5.36).
pub const WRITE_12: u8 = 0xaa;
/// WRITE AND VERIFY (12) (SBC-3, 5.40).
pub const WRITE_AND_VERIFY_12: u8 = 0xae;
/// VERIFY (12) (SBC-3, 5.32).
pub const VERIFY_12: u8 = 0xaf;
/// READ DEFECT DATA (12) (SBC-3, 5.18).
pub const READ_DEFECT_DATA_12: u8 = 0xb7;

/// Service actions of [`SERVICE_ACTION_IN_16`].
pub mod service_action_in {
    /// READ CAPACITY (16) (SBC-3, 5.16).
    pub const READ_CAPACITY_16: u8 = 0x10;
    /// GET LBA STATUS (SBC-3, 5.4).
    pub const GET_LBA_STATUS: u8 = 0x12;
}

/// Service actions of [`SANITIZE`] (SBC-4, 5.30.1).
pub mod sanitize_action {
    /// OVERWRITE.
    pub const OVERWRITE: u8 = 0x01;
    /// BLOCK ERASE.
    pub const BLOCK_ERASE: u8 = 0x02;
    /// CRYPTOGRAPHIC ERASE.
    pub const CRYPTOGRAPHIC_ERASE: u8 = 0x03;
    /// EXIT FAILURE MODE.
    pub const EXIT_FAILURE_MODE: u8 = 0x1f;
}

/// Service actions of [`MAINTENANCE_IN`].
pub mod maintenance_in {
    /// REPORT SUPPORTED OPERATION CODES (SPC-4, 6.35).
    pub const REPORT_SUPPORTED_OPERATION_CODES: u8 = 0x0c;
    /// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-4, 6.36).
    pub const REPORT_SUPPORTED_TASK_MANAGEMENT_FUNCTIONS: u8 = 0x0d;
}

/// Service actions of [`PERSISTENT_RESERVE_IN`] (SPC-4, table 218).
pub mod persistent_reserve_in {
    /// READ KEYS.
    pub const READ_KEYS: u8 = 0;
    /// READ RESERVATION.
    pub const READ_RESERVATION: u8 = 1;
    /// REPORT CAPABILITIES.
    pub const REPORT_CAPABILITIES: u8 = 2;
}

/// Service actions of [`PERSISTENT_RESERVE_OUT`] (SPC-4, table 230).
pub mod persistent_reserve_out {
    /// REGISTER.
    pub const REGISTER: u8 = 0;
    /// RESERVE.
    pub const RESERVE: u8 = 1;
    /// RELEASE.
    pub const RELEASE: u8 = 2;
    /// CLEAR.
    pub const CLEAR: u8 = 3;
    /// PREEMPT.
    pub const PREEMPT: u8 = 4;
    /// PREEMPT AND ABORT.
    pub const PREEMPT_AND_ABORT: u8 = 5;
    /// REGISTER AND IGNORE EXISTING KEY.
    pub const REGISTER_AND_IGNORE_EXISTING_KEY: u8 = 6;
}
