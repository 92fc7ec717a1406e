//! The command descriptor blocks of the standards, field by field, and how a unit without
//! protection information, third-party reservations and parameter lists for self-tests must take
//! each: the oracle of the matrix. Written from SPC-2 (RESERVE and RELEASE), SPC-4 and SBC-3, not
//! from the translator's table.
//!
//! A row is the operation code, `@` and the service action where there is one, then the fields from
//! bit 7 of byte 1 on, each `NAME:bits`:
//!
//! - `-` before the name: reserved, obsolete or of a feature that INQUIRY does not claim: refused;
//! - `{1,3-5}`: the values that there are; others are refused;
//! - `<300`: values from that on are refused; 0 stands for 256 where the name is `COUNT`;
//! - `=1`: its value where another field is looked at;
//! - `C` is the CONTROL byte.
//!
//! GROUP NUMBER has the six bits of SBC-4.

/// Limit of transfers and of WRITE SAME in the matrix, in blocks.
pub(crate) const LIMIT: u32 = 300;

/// Name and clause; the row.
pub(crate) const ROWS: &[(&str, &str)] = &[
    ("TEST UNIT READY, SPC-4 6.47", "00 -:8 -:8 -:8 -:8 C"),
    ("REQUEST SENSE, SPC-4 6.39", "03 -:7 DESC:1 -:8 -:8 ALLOCATION:8=252 C"),
    (
        "FORMAT UNIT, SBC-3 5.3",
        "04 -FMTPINFO:2 LONGLIST:1 FMTDATA:1 CMPLST:1 -FORMAT:3 -VENDOR:8 -:8 -:8 C",
    ),
    ("READ (6), SBC-2 5.5", "08 -:3 LBA:21 COUNT:8=1 C"),
    ("WRITE (6), SBC-2 5.24", "0a -:3 LBA:21 COUNT:8=1 C"),
    ("INQUIRY, SPC-4 6.6", "12 -:6 -CMDDT:1 EVPD:1 PAGE:8{0} ALLOCATION:16=96 C"),
    ("MODE SELECT (6), SPC-4 6.11", "15 -:3 PF:1=1 -:3 SP:1 -:8 -:8 LIST:8 C"),
    ("RESERVE (6), SPC-2 7.21", "16 -:3 -3RDPTY:1 -ID:3 -EXTENT:1 -:8 -:8 -:8 C"),
    ("RELEASE (6), SPC-2 7.16", "17 -:3 -3RDPTY:1 -ID:3 -EXTENT:1 -:8 -:8 -:8 C"),
    (
        "MODE SENSE (6), SPC-4 6.13",
        "1a -:4 DBD:1 -:3 PC:2 PAGE:6{0,1,8,10,26,28,63}=8 SUBPAGE:8{0,255} ALLOCATION:8=255 C",
    ),
    (
        "START STOP UNIT, SBC-3 5.25",
        "1b -:7 IMMED:1 -:8 -:4 MODIFIER:4{0} CONDITION:4{0-3,7} -:1 NO_FLUSH:1 LOEJ:1{0} START:1=1 C",
    ),
    (
        "SEND DIAGNOSTIC, SPC-4 6.42",
        "1d -CODE:3 PF:1 -:1 SELFTEST:1 DEVOFFL:1 UNITOFFL:1 -:8 -LIST:16 C",
    ),
    ("READ CAPACITY (10), SBC-2 5.10", "25 -:7 -RELADR:1 ADDRESS:32{0} -:8 -:8 -:7 PMI:1 C"),
    (
        "READ (10), SBC-3 5.11",
        "28 -RDPROTECT:3 DPO:1 FUA:1 -RARC:1 FUA_NV:1 -:1 LBA:32 -:2 GROUP:6 LENGTH:16<301=1 C",
    ),
    (
        "WRITE (10), SBC-3 5.35",
        "2a -WRPROTECT:3 DPO:1 FUA:1 -:1 FUA_NV:1 -:1 LBA:32 -:2 GROUP:6 LENGTH:16<301=1 C",
    ),
    (
        "WRITE AND VERIFY (10), SBC-3 5.39",
        "2e -WRPROTECT:3 DPO:1 -:1 BYTCHK:2{0,1} -:1 LBA:32 -:2 GROUP:6 LENGTH:16<301=1 C",
    ),
    (
        "VERIFY (10), SBC-3 5.31",
        "2f -VRPROTECT:3 DPO:1 -:1 BYTCHK:2{0,1,3} -:1 LBA:32 -:2 GROUP:6 LENGTH:16=1 C",
    ),
    ("PRE-FETCH (10), SBC-3 5.8", "34 -:6 IMMED:1 -:1 LBA:32 -:2 GROUP:6 LENGTH:16=1 C"),
    (
        "SYNCHRONIZE CACHE (10), SBC-3 5.26",
        "35 -:5 SYNC_NV:1 IMMED:1 -:1 LBA:32 -:2 GROUP:6 LENGTH:16=1 C",
    ),
    (
        "READ DEFECT DATA (10), SBC-3 5.17",
        "37 -:8 -:3 PLIST:1 GLIST:1 FORMAT:3{0-6} -:8 -:8 -:8 -:8 ALLOCATION:16=252 C",
    ),
    (
        "WRITE SAME (10), SBC-3 5.45",
        "41 -WRPROTECT:3 -ANCHOR:1 UNMAP:1 -:1 -:1 -:1 LBA:32 -:2 GROUP:6 LENGTH:16{1-300}=1 C",
    ),
    ("UNMAP, SBC-3 5.28", "42 -:7 -ANCHOR:1 -:8 -:8 -:8 -:8 -:2 GROUP:6 LIST:16 C"),
    (
        "SANITIZE OVERWRITE, SBC-4 5.30",
        "48@1 IMMED:1 -ZNR:1 AUSE:1 -:8 -:8 -:8 -:8 -:8 LIST:16{5-516}=5 C",
    ),
    (
        "SANITIZE BLOCK ERASE, SBC-4 5.30",
        "48@2 IMMED:1 -ZNR:1 AUSE:1 -:8 -:8 -:8 -:8 -:8 LIST:16{0} C",
    ),
    (
        "SANITIZE CRYPTOGRAPHIC ERASE, SBC-4 5.30",
        "48@3 IMMED:1 -ZNR:1 AUSE:1 -:8 -:8 -:8 -:8 -:8 LIST:16{0} C",
    ),
    (
        "SANITIZE EXIT FAILURE MODE, SBC-4 5.30",
        "48@31 IMMED:1 -ZNR:1 AUSE:1 -:8 -:8 -:8 -:8 -:8 LIST:16{0} C",
    ),
    (
        "LOG SENSE, SPC-4 6.8",
        "4d -:6 -PPC:1 -SP:1 PC:2{1}=1 PAGE:6{0,13,14,17,47} SUBPAGE:8{0,255} -:8 POINTER:16 \
         ALLOCATION:16=252 C",
    ),
    ("MODE SELECT (10), SPC-4 6.12", "55 -:3 PF:1=1 -:3 SP:1 -:8 -:8 -:8 -:8 -:8 LIST:16 C"),
    (
        "RESERVE (10), SPC-2 7.20",
        "56 -:3 -3RDPTY:1 -:2 -LONGID:1 -EXTENT:1 -:8 -ID:8 -:8 -:8 -:8 -LIST:16 C",
    ),
    (
        "RELEASE (10), SPC-2 7.17",
        "57 -:3 -3RDPTY:1 -:2 -LONGID:1 -EXTENT:1 -:8 -ID:8 -:8 -:8 -:8 -LIST:16 C",
    ),
    (
        "MODE SENSE (10), SPC-4 6.14",
        "5a -:3 LLBAA:1 DBD:1 -:3 PC:2 PAGE:6{0,1,8,10,26,28,63}=8 SUBPAGE:8{0,255} -:8 -:8 -:8 \
         ALLOCATION:16=255 C",
    ),
    ("READ KEYS, SPC-4 6.15.2", "5e@0 -:3 -:8 -:8 -:8 -:8 -:8 ALLOCATION:16=252 C"),
    ("READ RESERVATION, SPC-4 6.15.3", "5e@1 -:3 -:8 -:8 -:8 -:8 -:8 ALLOCATION:16=252 C"),
    ("REPORT CAPABILITIES, SPC-4 6.15.4", "5e@2 -:3 -:8 -:8 -:8 -:8 -:8 ALLOCATION:16=252 C"),
    ("READ FULL STATUS, SPC-4 6.15.5", "5e@3 -:3 -:8 -:8 -:8 -:8 -:8 ALLOCATION:16=252 C"),
    ("REGISTER, SPC-4 6.16.2", "5f@0 -:3 SCOPE:4 TYPE:4 -:8 -:8 LIST:32=24 C"),
    ("RESERVE, SPC-4 6.16.2", "5f@1 -:3 SCOPE:4{0} TYPE:4{1,3,5-8}=1 -:8 -:8 LIST:32=24 C"),
    ("RELEASE, SPC-4 6.16.2", "5f@2 -:3 SCOPE:4{0} TYPE:4{1,3,5-8}=1 -:8 -:8 LIST:32=24 C"),
    ("CLEAR, SPC-4 6.16.2", "5f@3 -:3 SCOPE:4 TYPE:4 -:8 -:8 LIST:32=24 C"),
    ("PREEMPT, SPC-4 6.16.2", "5f@4 -:3 SCOPE:4{0} TYPE:4{1,3,5-8}=1 -:8 -:8 LIST:32=24 C"),
    (
        "PREEMPT AND ABORT, SPC-4 6.16.2",
        "5f@5 -:3 SCOPE:4{0} TYPE:4{1,3,5-8}=1 -:8 -:8 LIST:32=24 C",
    ),
    ("REGISTER AND IGNORE, SPC-4 6.16.2", "5f@6 -:3 SCOPE:4 TYPE:4 -:8 -:8 LIST:32=24 C"),
    (
        "READ (16), SBC-3 5.13",
        "88 -RDPROTECT:3 DPO:1 FUA:1 -RARC:1 FUA_NV:1 -:1 LBA:64 LENGTH:32<301=1 -:2 GROUP:6 C",
    ),
    (
        "COMPARE AND WRITE, SBC-3 5.2",
        "89 -WRPROTECT:3 DPO:1 FUA:1 -:1 FUA_NV:1 -:1 LBA:64 -:8 -:8 -:8 LENGTH:8<65=1 -:2 GROUP:6 C",
    ),
    (
        "WRITE (16), SBC-3 5.37",
        "8a -WRPROTECT:3 DPO:1 FUA:1 -:1 FUA_NV:1 -:1 LBA:64 LENGTH:32<301=1 -:2 GROUP:6 C",
    ),
    (
        "ORWRITE (16), SBC-3 5.6",
        "8b -ORPROTECT:3 DPO:1 FUA:1 -:1 FUA_NV:1 -:1 LBA:64 LENGTH:32<301=1 -:2 GROUP:6 C",
    ),
    (
        "WRITE AND VERIFY (16), SBC-3 5.41",
        "8e -WRPROTECT:3 DPO:1 -:1 BYTCHK:2{0,1} -:1 LBA:64 LENGTH:32<301=1 -:2 GROUP:6 C",
    ),
    (
        "VERIFY (16), SBC-3 5.33",
        "8f -VRPROTECT:3 DPO:1 -:1 BYTCHK:2{0,1,3} -:1 LBA:64 LENGTH:32=1 -:2 GROUP:6 C",
    ),
    ("PRE-FETCH (16), SBC-3 5.9", "90 -:6 IMMED:1 -:1 LBA:64 LENGTH:32=1 -:2 GROUP:6 C"),
    (
        "SYNCHRONIZE CACHE (16), SBC-3 5.27",
        "91 -:5 SYNC_NV:1 IMMED:1 -:1 LBA:64 LENGTH:32=1 -:2 GROUP:6 C",
    ),
    (
        "WRITE SAME (16), SBC-3 5.46",
        "93 -WRPROTECT:3 -ANCHOR:1 UNMAP:1 -:1 -:1 NDOB:1 LBA:64 LENGTH:32{1-300}=1 -:2 GROUP:6 C",
    ),
    ("READ CAPACITY (16), SBC-3 5.16", "9e@16 -:3 ADDRESS:64 ALLOCATION:32=32 -:7 PMI:1 C"),
    ("GET LBA STATUS, SBC-3 5.4", "9e@18 -:3 LBA:64 ALLOCATION:32=24 -:8 C"),
    ("REPORT LUNS, SPC-4 6.33", "a0 -:8 SELECT:8{0-2} -:8 -:8 -:8 ALLOCATION:32=16 -:8 C"),
    (
        "REPORT SUPPORTED OPERATION CODES, SPC-4 6.35",
        "a3@12 -:3 RCTD:1 -:4 OPTIONS:3{0,1,3} OPCODE:8 ACTION:16 ALLOCATION:32=2048 -:8 C",
    ),
    (
        "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS, SPC-4 6.36",
        "a3@13 -:3 REPD:1 -:7 -:8 -:8 -:8 ALLOCATION:32=16 -:8 C",
    ),
    (
        "READ (12), SBC-3 5.12",
        "a8 -RDPROTECT:3 DPO:1 FUA:1 -RARC:1 FUA_NV:1 -:1 LBA:32 LENGTH:32<301=1 -:2 GROUP:6 C",
    ),
    (
        "WRITE (12), SBC-3 5.36",
        "aa -WRPROTECT:3 DPO:1 FUA:1 -:1 FUA_NV:1 -:1 LBA:32 LENGTH:32<301=1 -:2 GROUP:6 C",
    ),
    (
        "WRITE AND VERIFY (12), SBC-3 5.40",
        "ae -WRPROTECT:3 DPO:1 -:1 BYTCHK:2{0,1} -:1 LBA:32 LENGTH:32<301=1 -:2 GROUP:6 C",
    ),
    (
        "VERIFY (12), SBC-3 5.32",
        "af -VRPROTECT:3 DPO:1 -:1 BYTCHK:2{0,1,3} -:1 LBA:32 LENGTH:32=1 -:2 GROUP:6 C",
    ),
    (
        "READ DEFECT DATA (12), SBC-3 5.18",
        "b7 -:3 PLIST:1 GLIST:1 FORMAT:3{0-6} INDEX:32 ALLOCATION:32=252 -:8 C",
    ),
];

/// A field of a CDB.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Number of its leftmost bit, from bit 7 of byte 0 on.
    pub(crate) at: usize,
    pub(crate) bits: usize,
    /// It may not be set.
    pub(crate) refused: bool,
    /// Ranges of the values that there are.
    pub(crate) values: Vec<(u64, u64)>,
    pub(crate) usual: u64,
}

impl Field {
    pub(crate) fn max(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// Whether `value` is one that there is.
    pub(crate) fn takes(&self, value: u64) -> bool {
        self.values.iter().any(|&(low, high)| (low..=high).contains(&value))
    }

    /// The required sense key specific data (SPC-4, 4.5.2.4.2): the first byte, its leftmost bit.
    pub(crate) fn pointer(&self) -> (u16, u8) {
        ((self.at / 8) as u16, 7 - (self.at % 8) as u8)
    }

    /// Writes `value` into a CDB.
    pub(crate) fn put(&self, cdb: &mut [u8], value: u64) {
        for bit in 0..self.bits {
            let at = self.at + self.bits - 1 - bit;
            let mask = 0x80 >> (at % 8);
            cdb[at / 8] &= !mask;
            if value >> bit & 1 == 1 {
                cdb[at / 8] |= mask;
            }
        }
    }
}

/// A row, read.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) opcode: u8,
    pub(crate) action: Option<u8>,
    pub(crate) bytes: usize,
    pub(crate) fields: Vec<Field>,
}

impl Row {
    fn read(&(name, text): &(&'static str, &str)) -> Row {
        let mut words = text.split_whitespace();
        let (opcode, action) = match words.next().unwrap().split_once('@') {
            Some((opcode, action)) => (opcode, Some(action.parse().unwrap())),
            None => (text.split_whitespace().next().unwrap(), None),
        };
        let mut row = Row {
            name,
            opcode: u8::from_str_radix(opcode, 16).unwrap(),
            action,
            bytes: 0,
            fields: Vec::new(),
        };
        let mut at = 8;
        for word in words {
            // Vendor specific; reserved; NACA; obsolete (SAM-5, table 25).
            let control = ["-VENDOR:2", "-:3", "-NACA:1", "-:2"];
            let one = [word];
            for word in if word == "C" { &control[..] } else { &one[..] } {
                let field = read_field(word, at);
                at += field.bits;
                row.fields.push(field);
            }
            // The service action follows the three reserved bits of byte 1.
            if at == 11 && row.action.is_some() {
                at = 16;
            }
        }
        row.bytes = at / 8;
        row
    }

    /// The command with nothing special.
    pub(crate) fn usual(&self) -> Vec<u8> {
        let mut cdb = vec![0; self.bytes];
        cdb[0] = self.opcode;
        cdb[1] = self.action.unwrap_or(0);
        for field in &self.fields {
            field.put(&mut cdb, field.usual);
        }
        cdb
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// `-NAME:bits{values}=usual`.
fn read_field(word: &str, at: usize) -> Field {
    let (name, rest) = word.split_once(':').unwrap();
    let split = |text: &str| text.find(['{', '<', '=']).unwrap_or(text.len());
    let bits = rest[..split(rest)].parse().unwrap();
    let max = u64::MAX >> (64 - bits);
    let number = |text: &str| text.parse::<u64>().unwrap();
    let values = match (rest.split_once('{'), rest.split_once('<')) {
        (Some((_, list)), _) => {
            let ranges = list.split_once('}').unwrap().0.split(',');
            let range = |text: &str| text.split_once('-').map(|(a, b)| (number(a), number(b)));
            ranges.map(|text| range(text).unwrap_or_else(|| (number(text), number(text)))).collect()
        }
        (_, Some((_, limit))) => vec![(0, number(limit.split('=').next().unwrap()) - 1)],
        _ => vec![(0, max)],
    };
    let refused = name.starts_with('-');
    Field {
        name: name.trim_start_matches('-').to_owned(),
        at,
        bits,
        refused,
        values: if refused { vec![(0, 0)] } else { values },
        usual: rest.split_once('=').map_or(0, |(_, usual)| number(usual)),
    }
}

/// All of them.
pub(crate) fn rows() -> Vec<Row> {
    ROWS.iter().map(Row::read).collect()
}
