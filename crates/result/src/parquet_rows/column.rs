//! One column of a row group, from its pages to its place in the file.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

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

    /// Appends a page of so many values.
    pub(super) fn add(&mut self, values: usize, page: Vec<u8>) -> Result<(), ParquetError> {
        self.values += values;
        let length = page.len();
        let page = match self.compression {
            Compression::LZ4_RAW => lz4_flex::block::compress(&page),
            _ => page,
        };
        let page = Page::DataPage {
            buf: page.into(),
            num_values: values as u32,
            encoding: self.encoding,
            // Of columns that are neither optional nor repeated there are no levels.
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.write(page, length)
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
