//! Plain columns: with a header, or in an order that is known.

use ssdyno_block::Op;

use super::super::number::{Fault, bytes, time_ps, whole};
use super::header::{Header, Ops, Place, clean};
use super::objects::Objects;
use super::reader::{LineReader, NO_OPERATIONS, ReaderOptions, WHOLE_SECONDS};
use super::sink::Sink;

/// The source of the columns' names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Told {
    /// In the first line.
    #[default]
    ByHeader,
    /// Beforehand: a first line that names columns is passed over.
    Beforehand,
    /// In the first line if it is one of libCacheSim's headers, or else beforehand.
    LibCacheSim,
}

#[derive(Default)]
pub(super) struct Csv {
    told: Told,
    header: Option<Header>,
    /// Lines have exactly this number of columns.
    columns: Option<usize>,
    /// Where objects lie; `None` if there are none.
    objects: Option<Objects>,
    whole_seconds: bool,
    begun: bool,
}

impl Csv {
    fn fixed(columns: &str, ops: Ops) -> Result<Csv, Fault> {
        let header = Header { ops, ..Header::parse(columns)? };
        Ok(Csv {
            told: Told::Beforehand,
            // The formats of Alibaba and Tencent have exactly five columns. A line with more is
            // damaged, and its columns could be shifted, which would still parse as numbers.
            columns: Some(header.last() + 1),
            header: Some(header),
            ..Csv::default()
        })
    }

    /// With a header, or the columns that the options name.
    pub(super) fn plain(options: &ReaderOptions<'_>) -> Result<Csv, Fault> {
        let header = options.columns.map(Header::parse).transpose()?;
        Ok(Csv {
            told: if header.is_some() { Told::Beforehand } else { Told::ByHeader },
            header,
            objects: Some(options.objects),
            ..Csv::default()
        })
    }

    /// README of `alibaba/block-traces`.
    pub(super) fn alibaba() -> Result<Csv, Fault> {
        Csv::fixed("device,op,offset_bytes,length_bytes,time_us", Ops::Words)
    }

    /// README of SNIA IOTTA 27917.
    pub(super) fn tencent() -> Result<Csv, Fault> {
        let columns = "time_s,offset_sectors,length_sectors,op,device";
        Ok(Csv { whole_seconds: true, ..Csv::fixed(columns, Ops::ZeroReads)? })
    }

    /// `traceReader/generalReader/csv.c` and `bin/traceUtils` of libCacheSim.
    pub(super) fn libcachesim(objects: Objects) -> Csv {
        Csv {
            told: Told::LibCacheSim,
            objects: Some(objects),
            whole_seconds: true,
            ..Csv::default()
        }
    }

    /// The first line; whether it is a request, too.
    fn begin(&mut self, line: &str, sink: &mut Sink) -> Result<bool, Fault> {
        self.begun = true;
        match (self.told, &mut self.header) {
            (Told::Beforehand, Some(header)) => {
                header.separate(line);
                let named = header.is_named_by(line);
                if named {
                    sink.skip("names of columns");
                }
                Ok(!named)
            }
            // libCacheSim's tools write files with and without a header. The first line decides,
            // and without a header it is already a request, which must not be lost.
            (Told::LibCacheSim, _) => {
                let header = Header::libcachesim(line);
                let request = header.is_none();
                self.header = Some(header.unwrap_or_else(|| Header::libcachesim_fixed(line)));
                Ok(request)
            }
            _ => {
                self.header = Some(Header::parse(line)?);
                Ok(false)
            }
        }
    }
}

/// The fields of a line that count.
#[derive(Default)]
struct Fields<'a> {
    time: &'a str,
    op: &'a str,
    place: &'a str,
    length: &'a str,
    device: &'a str,
}

impl<'a> Fields<'a> {
    fn of(line: &'a str, header: &Header, columns: Option<usize>) -> Result<Fields<'a>, Fault> {
        let mut fields = Fields::default();
        let (Place::Offset(place, _) | Place::Object(place)) = header.place;
        let mut count = 0;
        // One pass over the line assigns the fields without a vector. Cloud traces have billions of
        // lines, and an allocation per line would dominate the time to read it.
        for (column, field) in line.split(header.delimiter).enumerate() {
            let field = clean(field);
            count = column + 1;
            if header.time.is_some_and(|(at, _)| at == column) {
                fields.time = field;
            } else if header.op == Some(column) {
                fields.op = field;
            } else if place == column {
                fields.place = field;
            } else if header.length.0 == column {
                fields.length = field;
            } else if header.device == Some(column) {
                fields.device = field;
            }
        }
        if count <= header.last() {
            let what = "the line is cut short: a column is missing";
            return Err(Fault::new(what, "each line needs all columns"));
        }
        if let Some(columns) = columns.filter(|&columns| count > columns) {
            let what = format!("the line has {count} columns");
            return Err(Fault::new(what, format!("each line has {columns}")));
        }
        Ok(fields)
    }
}

impl LineReader for Csv {
    fn line(&mut self, line: &str, sink: &mut Sink) -> Result<(), Fault> {
        if !self.begun && !self.begin(line, sink)? {
            return Ok(());
        }
        let Some(header) = &self.header else { return Ok(()) };
        let fields = Fields::of(line, header, self.columns)?;
        let time = match header.time {
            Some((_, exponent)) => time_ps(fields.time, "the time", exponent)?,
            None => 0,
        };
        // If no time has a fraction, all requests of a second start together. The note warns of
        // this burst, which is a property of the recording and not of the load.
        self.whole_seconds &= !fields.time.contains('.');
        let op = if header.op.is_some() { header.ops.read(fields.op)? } else { Op::Read };
        if !sink.wants("", fields.device) {
            return Ok(());
        }
        if op == Op::Flush {
            sink.flush(time);
            return Ok(());
        }
        let length = |header: &Header| bytes(fields.length, "the length", header.length.1);
        match (header.place, self.objects) {
            (Place::Object(_), Some(objects)) => {
                let length = length(header)?;
                let object = whole(fields.place, "the object")?;
                // An object without a size is skipped later. Its place is not computed, because a
                // name that is no sector number would end the trace for a line that is skipped
                // anyway.
                let offset = if length == 0 { 0 } else { objects.place(object, length)? };
                sink.push_object(time, op, offset, length);
                Ok(())
            }
            (Place::Object(_), None) => Ok(()),
            (Place::Offset(_, unit), _) => {
                let offset = bytes(fields.place, "the offset", unit)?;
                sink.push(time, op, offset, length(header)?)
            }
        }
    }

    fn keeps_blanks(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.delimiter == '\t')
    }

    fn untimed(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.time.is_none())
    }

    fn notes(&self) -> Vec<&'static str> {
        let Some(header) = &self.header else { return Vec::new() };
        let mut notes = Vec::new();
        if header.op.is_none() {
            notes.push(NO_OPERATIONS);
        }
        if let (Place::Object(_), Some(objects)) = (header.place, self.objects) {
            notes.push(objects.note());
        }
        if self.whole_seconds {
            notes.push(WHOLE_SECONDS);
        }
        notes
    }
}
