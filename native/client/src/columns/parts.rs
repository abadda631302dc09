//! Columns of byte strings and texts, in all of Arrow's layouts: with offsets, as views, and dictionary-encoded.
//!
//! Every read of a buffer is checked. An invalid offset, view or dictionary key is an error of its row, never a read
//! out of bounds.

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, ArrayRef, GenericByteViewArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

/// The maximum length of a value that is stored inside its view.
const INLINE: usize = 12;
const VIEW: usize = 16;

/// The offsets of the rows.
#[derive(Debug, Clone)]
pub enum Ends {
    Narrow(OffsetBuffer<i32>),
    Wide(OffsetBuffer<i64>),
}

impl Ends {
    #[inline(always)]
    /// The range of the bytes of `row`.
    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        match self {
            Self::Narrow(ends) => ends[row] as usize..ends[row + 1] as usize,
            Self::Wide(ends) => ends[row] as usize..ends[row + 1] as usize,
        }
    }
}

/// A column of byte strings or of texts, in one of the layouts.
#[derive(Debug)]
pub struct Parts {
    layout: Layout,
    nulls: Option<NullBuffer>,
}

#[derive(Debug)]
enum Layout {
    Offsets { ends: Ends, data: Buffer },
    Views { views: ScalarBuffer<u128>, data: Vec<Buffer> },
    Codes { codes: Vec<usize>, words: Box<Parts>, count: usize },
}

/// Whether a column has texts, in any layout.
pub fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, words) => is_text(words),
        _ => false,
    }
}

impl Parts {
    /// Wrap a column; `None` if it has neither byte strings nor texts.
    pub fn of(array: &ArrayRef) -> Option<Self> {
        let layout = match array.data_type() {
            DataType::Binary => narrow(array.as_binary::<i32>()),
            DataType::Utf8 => narrow(array.as_string::<i32>()),
            DataType::LargeBinary => wide(array.as_binary::<i64>()),
            DataType::LargeUtf8 => wide(array.as_string::<i64>()),
            DataType::BinaryView => views(array.as_binary_view()),
            DataType::Utf8View => views(array.as_string_view()),
            DataType::Dictionary(_, _) => {
                let coded = array.as_any_dictionary();
                let count = coded.values().len();
                let words = Box::new(Self::of(coded.values())?);
                // With an empty dictionary every row is null, and no key is read.
                let codes = if count == 0 { vec![0; array.len()] } else { coded.normalized_keys() };
                Layout::Codes { codes, words, count }
            }
            _ => return None,
        };
        Some(Self { layout, nulls: array.nulls().cloned() })
    }

    /// The bytes of a row; `None` for null. The error is the reason why the row is invalid.
    #[inline(always)]
    pub fn get(&self, row: usize) -> Result<Option<&[u8]>, String> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(None);
        }
        let found = match &self.layout {
            Layout::Offsets { ends, data } => data.get(ends.range(row)),
            Layout::Views { views, data } => view(views, data, row),
            Layout::Codes { codes, words, count } => match codes.get(row) {
                Some(code) if code < count => return words.get(*code),
                _ => None,
            },
        };
        found.map(Some).ok_or_else(|| "the array's offsets lead outside its data".to_owned())
    }
}

fn narrow<T: arrow_array::types::ByteArrayType<Offset = i32>>(array: &arrow_array::GenericByteArray<T>) -> Layout {
    Layout::Offsets { ends: Ends::Narrow(array.offsets().clone()), data: array.values().clone() }
}

fn wide<T: arrow_array::types::ByteArrayType<Offset = i64>>(array: &arrow_array::GenericByteArray<T>) -> Layout {
    Layout::Offsets { ends: Ends::Wide(array.offsets().clone()), data: array.values().clone() }
}

fn views<T: ByteViewType>(array: &GenericByteViewArray<T>) -> Layout {
    Layout::Views { views: array.views().clone(), data: array.data_buffers().to_vec() }
}

/// Arrow's columnar format, "Variable-size Binary View Layout": a length, then the bytes, or four of them, a buffer's number
/// and an offset in that buffer.
fn view<'a>(views: &'a ScalarBuffer<u128>, data: &'a [Buffer], row: usize) -> Option<&'a [u8]> {
    let view = views.inner().as_slice().get(row * VIEW..(row + 1) * VIEW)?;
    let number = |at: usize| Some(u32::from_le_bytes(view.get(at..at + 4)?.try_into().ok()?) as usize);
    let length = number(0)?;
    if length <= INLINE {
        return view.get(4..4 + length);
    }
    let (buffer, offset) = (number(8)?, number(12)?);
    data.get(buffer)?.get(offset..offset.checked_add(length)?)
}
