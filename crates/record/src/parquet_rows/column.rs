//! One column of a row group, from its pages to its place in the file.

use std::collections::HashMap;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

use super::pages;

/// A page as it lies in a file.
#[derive(Clone, Debug)]
pub(super) struct Encoded {
    page: Bytes,
    /// Of the page before it was compressed.
    length: usize,
}

/// A column of small numbers of which few are different: a dictionary of those that occur, which is known
/// when the row group ends.
#[derive(Default)]
pub(super) struct Indexed {
    entries: Vec<u32>,
    index: HashMap<u32, u32>,
    /// Number of rows and an index for each, or one where all are the same.
    pages: Vec<(usize, Vec<u32>)>,
}

impl Indexed {
    /// Adds a page of this number of rows: a value for each, or one if all are equal.
    pub(super) fn add(&mut self, rows: usize, values: &[u32]) {
        // Neighbours are mostly alike: most loads have one length or a few. The value before
        // saves the look into the table for them.
        let mut last = None;
        let indices = values.iter().map(|value| match last {
            Some((known, index)) if known == *value => index,
            _ => {
                let index = self.index_of(*value);
                last = Some((*value, index));
                index
            }
        });
        let indices: Vec<u32> = indices.collect();
        self.pages.push((rows, indices));
    }

    fn index_of(&mut self, value: u32) -> u32 {
        *self.index.entry(value).or_insert_with(|| {
            self.entries.push(value);
            self.entries.len() as u32 - 1
        })
    }

    /// Puts the column, which is number `number`, into the file.
    pub(super) fn close(
        self,
        schema: &SchemaDescriptor,
        number: usize,
        group: &mut SerializedRowGroupWriter<'_, std::fs::File>,
    ) -> Result<(), ParquetError> {
        let Indexed { entries, pages, .. } = self;
        let plain = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        // How many bits an index has follows from the number of entries. That is known only now,
        // so no page could be encoded before.
        let mut column = Column::of_indices(schema, number, entries.len(), plain)?;
        for (rows, indices) in &pages {
            column.add_indices(indices, *rows, entries.len())?;
        }
        // The casts keep the bits: Parquet has unsigned numbers in signed types.
        let bound = |value: Option<&u32>| value.map(|value| *value as i32);
        let (least, most) = (bound(entries.iter().min()), bound(entries.iter().max()));
        column.close(Statistics::int32(least, most, None, Some(0), false), group)
    }
}

/// A column that is being filled. Its pages lie one behind the other as they will in the file.
pub(super) struct Column {
    descriptor: ColumnDescPtr,
    pages: TrackedWrite<Vec<u8>>,
    values: usize,
    encoding: Encoding,
    compression: Compression,
    /// Length of the pages with their headers, had they not been compressed.
    uncompressed: u64,
    /// Where the first page with data begins: behind the dictionary, if there is one.
    data_at: usize,
}

impl Column {
    /// Column `number` of the file, of integers by their differences.
    pub(super) fn of_deltas(schema: &SchemaDescriptor, number: usize) -> Column {
        Column {
            descriptor: schema.column(number),
            pages: TrackedWrite::new(Vec::new()),
            values: 0,
            encoding: Encoding::DELTA_BINARY_PACKED,
            compression: Compression::UNCOMPRESSED,
            uncompressed: 0,
            data_at: 0,
        }
    }

    /// The column with pages that are compressed. The codec is pure Rust, so that other systems can be built
    /// for without a C compiler; every common reader knows it.
    pub(super) fn compressed(self) -> Column {
        Column { compression: Compression::LZ4_RAW, ..self }
    }

    /// Column `number` of the file, of indices into a dictionary of `entries`, which are laid out one
    /// behind the other in `dictionary` (encoding PLAIN).
    pub(super) fn of_indices(
        schema: &SchemaDescriptor,
        number: usize,
        entries: usize,
        dictionary: Vec<u8>,
    ) -> Result<Column, ParquetError> {
        let mut column = Column::of_deltas(schema, number);
        column.encoding = Encoding::RLE_DICTIONARY;
        let length = dictionary.len();
        let page = Page::DictionaryPage {
            buf: dictionary.into(),
            num_values: entries as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        column.write(page, length)?;
        column.data_at = column.pages.bytes_written();
        Ok(column)
    }

    /// A page as it will lie in the file.
    pub(super) fn encode(&self, page: Vec<u8>) -> Encoded {
        let length = page.len();
        let page = match self.compression {
            Compression::LZ4_RAW => lz4_flex::block::compress(&page),
            _ => page,
        };
        Encoded { page: page.into(), length }
    }

    /// Appends a page of this number of values, from this column or from another one that is encoded and compressed in
    /// the same way.
    pub(super) fn add_encoded(
        &mut self,
        values: usize,
        encoded: Encoded,
    ) -> Result<(), ParquetError> {
        self.values += values;
        let page = Page::DataPage {
            buf: encoded.page,
            num_values: values as u32,
            encoding: self.encoding,
            // The columns are neither optional nor repeated, so a page has no levels. The
            // header needs an encoding of levels all the same.
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.write(page, encoded.length)
    }

    /// Appends a page of this number of indices into a dictionary of `entries`: one if all are equal.
    pub(super) fn add_indices(
        &mut self,
        indices: &[u32],
        values: usize,
        entries: usize,
    ) -> Result<(), ParquetError> {
        let mut page = Vec::new();
        pages::indices(indices, values, entries, &mut page);
        let encoded = self.encode(page);
        self.add_encoded(values, encoded)
    }

    /// `length` is that of the page before it was compressed.
    fn write(&mut self, page: Page, length: usize) -> Result<(), ParquetError> {
        let page = CompressedPage::new(page, length);
        let written = SerializedPageWriter::new(&mut self.pages).write_page(page)?;
        self.uncompressed += written.uncompressed_size as u64;
        Ok(())
    }

    /// Puts the column into the file.
    pub(super) fn close(
        self,
        bounds: Statistics,
        group: &mut SerializedRowGroupWriter<'_, std::fs::File>,
    ) -> Result<(), ParquetError> {
        let has_dictionary = self.data_at > 0;
        let pages: Bytes = self.pages.into_inner()?.into();
        let mut encodings = vec![Encoding::RLE, self.encoding];
        encodings.extend(has_dictionary.then_some(Encoding::PLAIN));
        // Offsets count from the start of the column here. `append_column` adds the place of the
        // column in the file.
        let metadata = ColumnChunkMetaData::builder(self.descriptor)
            .set_encodings(encodings)
            .set_compression(self.compression)
            .set_num_values(self.values as i64)
            .set_total_compressed_size(pages.len() as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_data_page_offset(self.data_at as i64)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_statistics(bounds)
            .build()?;
        let closed = ColumnCloseResult {
            bytes_written: pages.len() as u64,
            rows_written: self.values as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        group.append_column(&pages, closed)
    }
}
