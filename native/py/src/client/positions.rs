//! Converts partitions with their positions between Python and the engine. Owns no behaviour.

use pybroker_client::{Assignment, Start};

/// Positions from Python for the engine.
pub fn assignment(partitions: Vec<(String, i32, i64)>) -> Vec<Assignment> {
    let made = partitions.into_iter().map(|(topic, index, offset)| {
        let topic = topic.into();
        Assignment { topic, index, start: start(offset) }
    });
    made.collect()
}

/// Positions from the engine for Python.
pub fn as_rows(positions: Vec<Assignment>) -> Vec<(String, i32, i64)> {
    let rows = positions.into_iter().map(|a| {
        let (Start::Offset(offset) | Start::Time(offset)) = a.start;
        (a.topic.to_string(), a.index, offset)
    });
    rows.collect()
}

/// A start from an offset, or from -1 or -2.
pub fn start(offset: i64) -> Start {
    if offset < 0 { Start::Time(offset) } else { Start::Offset(offset) }
}
