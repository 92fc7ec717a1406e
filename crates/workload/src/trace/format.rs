//! The forms a trace may have.

use std::fmt;
use std::str::FromStr;

use crate::WorkloadError;

ssdyno_block::named! {
    /// The forms a trace may have. Fields are separated as each format says; lines end with LF or
    /// CR LF; empty lines and lines that begin with `#` are passed over.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Format: name {
        /// DiskSim ASCII: `time_ms devno blkno size flags`, in sectors of 512 B; flags hexadecimal,
        /// bit 0 set for a read (DiskSim 4.0 manual, "Input traces").
        DiskSim = "disksim",
        /// MQSim ASCII: `time_ns devno lba size type`, in sectors of 512 B; type 0 write, 1 read.
        MqSim = "mqsim",
        /// MSR Cambridge (SNIA IOTTA 388): `Timestamp,Hostname,DiskNumber,Type,Offset,Size,Response`;
        /// time in units of 100 ns since 1601, offset and size in bytes.
        Msr = "msr",
        /// The default text of `blkparse`: `maj,min cpu sequence time_s pid action rwbs sector + n`.
        Blkparse = "blkparse",
        /// fio iolog, version 2 (no times, but `wait`) or 3 (times in us, as fio 3.31 and later write
        /// them; its manual gives no unit).
        Fio = "fio",
        /// Comma-, semicolon- or tab-separated with a header that names the columns and their units:
        /// `time_{s,ms,us,ns,ps}` or `issue_…` (may be missing), `op`, `offset_{bytes,sectors}`,
        /// `length_{bytes,sectors}`, and perhaps `device`; others are passed over. So what `run --csv`
        /// writes is a trace.
        Csv = "csv",
        /// Alibaba's block traces of 2020: `device_id,opcode,offset,length,timestamp`; R or W, offset and
        /// length in bytes, time in us since 1970 (README of `alibaba/block-traces`).
        Alibaba = "alibaba",
        /// Tencent's block traces of 2018 (SNIA IOTTA 27917): `Timestamp,Offset,Size,IOType,VolumeID`; time
        /// in s since 1970, offset and size in sectors of 512 B, type 0 read, 1 write.
        Tencent = "tencent",
        /// libCacheSim's text: time in s, object, size in bytes, optionally the operation (the code of the SCSI
        /// command) and the time of the object's next use; columns in the order of a header, or in this order.
        LibCacheSim = "libcachesim",
        /// libCacheSim's oracleGeneral: binary records of 24 bytes, little-endian and without gaps:
        /// time in s (u32), object (u64), size in bytes (u32), position of its next use (i64, from 1;
        /// -1 for none). It has no operations.
        OracleGeneral = "oraclegeneral",
        /// VMware's vSCSI traces, as libCacheSim reads them: binary records of 32 (version 1) or 40 bytes
        /// (version 2), little-endian: SCSI command, length in bytes, block of 512 B, time in us.
        Vscsi = "vscsi",
    }
}

impl Format {
    /// Whether it is made of records of a fixed length, not of lines.
    pub const fn is_binary(self) -> bool {
        // Binary formats have no line numbers and cannot skip to the next line. A damaged record
        // therefore ends the trace, and errors name the byte.
        matches!(self, Format::OracleGeneral | Format::Vscsi)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Format, WorkloadError> {
        Format::named(text).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            let what = format!("`{text}` is not a trace format");
            WorkloadError::of_key("format", what, format!("use one of {names}"))
        })
    }
}
