//! Messages as CBOR (RFC 8949): the types that the library has anyway, readable in every language, and with names, so that
//! a version with one more key can be read.

use std::marker::PhantomData;

use bytes::{Buf, BufMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Writes `T` and reads `U`.
#[derive(Debug)]
pub(crate) struct CborCodec<T, U>(PhantomData<fn(T) -> U>);

impl<T, U> Default for CborCodec<T, U> {
    fn default() -> Self {
        CborCodec(PhantomData)
    }
}

impl<T, U> Codec for CborCodec<T, U>
where
    T: Serialize + Send + 'static,
    U: DeserializeOwned + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        CborCodec::default()
    }

    fn decoder(&mut self) -> Self {
        CborCodec::default()
    }
}

impl<T: Serialize, U> Encoder for CborCodec<T, U> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let written = ciborium::into_writer(&item, to.writer());
        written.map_err(|error| Status::internal(format!("cannot write a message: {error}")))
    }
}

impl<T, U: DeserializeOwned> Decoder for CborCodec<T, U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // The whole message is copied into one piece first. The CBOR reader takes a few bytes at a time, and each
        // read of a buffer in several parts searches for the right part again.
        let bytes = from.copy_to_bytes(from.remaining());
        let read = ciborium::from_reader(&bytes[..]).map(Some);
        // A message that cannot be read is the fault of the sender, not of this program: `invalid_argument` keeps
        // it apart from `internal` in the log of the other end.
        read.map_err(|error| Status::invalid_argument(format!("cannot read a message: {error}")))
    }
}
