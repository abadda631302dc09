//! Imports Arrow arrays and streams by the C data and C stream interfaces, and sends their rows.

#![allow(unsafe_code, reason = "the C data interface is pointers")]

use std::ffi::CStr;
use std::ptr::NonNull;

use arrow_array::StructArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_schema::{ArrowError, DataType};
use pybroker_client::columns::{SentColumns, SentRows};
use pybroker_client::{ClientError, Producer};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::client::client_error::client_error;

/// The result of `__arrow_c_array__`: a schema and an array.
pub type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

/// Sends a record for every row of a record batch.
pub fn send_batch(
    py: Python<'_>,
    producer: &Producer,
    capsules: &Capsules<'_>,
    topic: Option<&str>,
) -> PyResult<SentRows> {
    let columns = SentColumns::of(&import_batch(capsules)?).map_err(client_error)?;
    // The batch is released with the lock held: its owner may be Python.
    py.detach(|| producer.send_columns(std::slice::from_ref(&columns), topic)).map_err(client_error)
}

/// Reads a stream of record batches (the result of `__arrow_c_stream__`) to its end, then sends a record for every row.
pub fn send_stream(
    py: Python<'_>,
    producer: &Producer,
    capsule: &Bound<'_, PyCapsule>,
    topic: Option<&str>,
) -> PyResult<SentRows> {
    let stream: NonNull<FFI_ArrowArrayStream> = pointer(capsule, c"arrow_array_stream")?;
    // SAFETY: by Arrow's PyCapsule interface a capsule of this name contains a stream, which lives as long as the reference to
    // the capsule. The stream is moved out and a released one left behind, as the interface requires of a consumer. One that
    // was released before is rejected. The exporter of a stream guarantees that its arrays match the schema; the reader
    // validates what it can.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) }.map_err(|e| unreadable(&e))?;
    let mut batches = Vec::new();
    for batch in reader {
        let batch = StructArray::from(batch.map_err(|e| unreadable(&e))?);
        batches.push(SentColumns::of(&batch).map_err(client_error)?);
    }
    py.detach(|| producer.send_columns(&batches, topic)).map_err(client_error)
}

/// Imports the content of the capsules. The array is moved out, and its capsule is empty afterwards.
pub fn import_batch((schema, array): &Capsules<'_>) -> PyResult<StructArray> {
    let schema: NonNull<FFI_ArrowSchema> = pointer(schema, c"arrow_schema")?;
    let array: NonNull<FFI_ArrowArray> = pointer(array, c"arrow_array")?;
    // SAFETY: by Arrow's PyCapsule interface capsules of these names contain structures of these types, which live as long
    // as the references to the capsules, beyond this function. No other code accesses them while the lock is held.
    let (schema, array) = unsafe { (schema.as_ref(), &mut *array.as_ptr()) };
    if schema.release().is_none() || array.is_released() {
        return Err(bad("was taken by somebody before".to_owned()));
    }
    // SAFETY: the array is valid and not released. The move leaves a released one behind, as the interface requires of a
    // consumer.
    let array = unsafe { FFI_ArrowArray::from_raw(array) };
    // SAFETY: the exporter of an array guarantees that buffers and lengths match the schema; the checks below cover what can
    // be checked.
    let data = unsafe { from_ffi(array, schema) }.map_err(|e| unreadable(&e))?;
    let DataType::Struct(_) = data.data_type() else {
        return Err(bad(format!("is an array of {}", data.data_type())));
    };
    data.validate().map_err(|e| unreadable(&e))?;
    Ok(StructArray::from(data))
}

fn pointer<T>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> PyResult<NonNull<T>> {
    Ok(capsule.pointer_checked(Some(name))?.cast())
}

fn unreadable(error: &ArrowError) -> PyErr {
    bad(format!("cannot be read: {error}"))
}

fn bad(found: String) -> PyErr {
    let (column, wanted) = ("(the batch)".to_owned(), "a record batch, or a struct array with a field for each column");
    client_error(ClientError::BadColumn { column, found, wanted })
}
