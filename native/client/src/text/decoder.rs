//! The texts of Kafka's deserializers, as Java's `toString` prints them.
//!
//! The error texts are those of Kafka's classes.

use std::io::Write;

/// A deserializer of `org.apache.kafka.common.serialization`, by its short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoder {
    /// UTF-8; malformed bytes become U+FFFD.
    String,
    /// The bytes unchanged. Java would print the name of the array's class.
    ByteArray,
    /// Printable ASCII unchanged, other bytes as `\x0A`.
    Bytes,
    /// The name and the bounds of a Java buffer.
    ByteBuffer,
    Boolean,
    Short,
    Integer,
    Long,
    Float,
    Double,
    Uuid,
}

impl Decoder {
    /// The decoder of a short name such as `Integer`.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "String" => Self::String,
            "ByteArray" => Self::ByteArray,
            "Bytes" => Self::Bytes,
            "ByteBuffer" => Self::ByteBuffer,
            "Boolean" => Self::Boolean,
            "Short" => Self::Short,
            "Integer" => Self::Integer,
            "Long" => Self::Long,
            "Float" => Self::Float,
            "Double" => Self::Double,
            "UUID" => Self::Uuid,
            _ => return None,
        })
    }

    /// Whether the text is a JSON number or literal; for a float not always: see `is_finite`.
    pub fn is_bare_in_json(self) -> bool {
        matches!(self, Self::Boolean | Self::Short | Self::Integer | Self::Long | Self::Float | Self::Double)
    }

    /// Append the text of these bytes.
    ///
    /// # Errors
    /// The error text of Kafka's deserializer.
    pub fn write(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::String => write_utf8(bytes, out),
            Self::ByteArray => out.extend_from_slice(bytes),
            Self::Bytes => write_escaped(bytes, out),
            Self::ByteBuffer => {
                let length = bytes.len();
                put(out, format_args!("java.nio.HeapByteBuffer[pos=0 lim={length} cap={length}]"));
            }
            Self::Boolean => match *fixed::<1>(bytes, "BooleanDeserializer")? {
                [0] => out.extend_from_slice(b"false"),
                [1] => out.extend_from_slice(b"true"),
                [other] => return Err(format!("Unexpected byte received by BooleanDeserializer: {}", other as i8)),
            },
            Self::Short => put(out, format_args!("{}", i16::from_be_bytes(*fixed(bytes, "ShortDeserializer")?))),
            Self::Integer => put(out, format_args!("{}", i32::from_be_bytes(*fixed(bytes, "IntegerDeserializer")?))),
            Self::Long => put(out, format_args!("{}", i64::from_be_bytes(*fixed(bytes, "LongDeserializer")?))),
            Self::Float => {
                let number = f32::from_be_bytes(*fixed(bytes, "Deserializer")?);
                write_float(f64::from(number), &format!("{number:e}"), out);
            }
            Self::Double => {
                let number = f64::from_be_bytes(*fixed(bytes, "Deserializer")?);
                write_float(number, &format!("{number:e}"), out);
            }
            Self::Uuid => write_uuid(bytes, out).ok_or_else(|| "Error parsing data into UUID".to_owned())?,
        }
        Ok(())
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

fn fixed<'a, const SIZE: usize>(bytes: &'a [u8], who: &str) -> Result<&'a [u8; SIZE], String> {
    bytes.try_into().map_err(|_| format!("Size of data received by {who} is not {SIZE}"))
}

/// `new String(bytes, UTF_8)`: Java replaces an encoded lone surrogate by one replacement character.
pub(super) fn write_utf8(bytes: &[u8], out: &mut Vec<u8>) {
    if std::str::from_utf8(bytes).is_ok() {
        return out.extend_from_slice(bytes);
    }
    let (mut marked, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let surrogate = *byte == 0xED && bytes.get(at + 1).is_some_and(|next| (0xA0..=0xBF).contains(next));
        marked.push(if surrogate { 0xFF } else { *byte });
        at += match (surrogate, bytes.get(at + 2)) {
            (true, Some(0x80..=0xBF)) => 3,
            (true, _) => 2,
            (false, _) => 1,
        };
    }
    out.extend_from_slice(String::from_utf8_lossy(&marked).as_bytes());
}

fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'\\' | 0..=31 | 127.. => put(out, format_args!("\\x{byte:02X}")),
            printable => out.push(*printable),
        }
    }
}

/// `Double.toString` and `Float.toString`: scientific outside of [1e-3, 1e7). `shortest` has the digits as `1.5e3`.
fn write_float(number: f64, shortest: &str, out: &mut Vec<u8>) {
    if !number.is_finite() {
        let text = if number.is_nan() { "NaN" } else { "Infinity" };
        return put(out, format_args!("{}{text}", if number < 0.0 { "-" } else { "" }));
    }
    let (digits, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if number != 0.0 && !(-3..7).contains(&exponent) {
        let part = if part.is_empty() { "0" } else { part };
        return put(out, format_args!("{sign}{whole}.{part}E{exponent}"));
    }
    let all = format!("{whole}{part}");
    let (before, after) = match usize::try_from(exponent) {
        Ok(exponent) if all.len() <= exponent + 1 => {
            (format!("{all}{}", "0".repeat(exponent + 1 - all.len())), String::new())
        }
        Ok(exponent) => (all[..exponent + 1].to_owned(), all[exponent + 1..].to_owned()),
        Err(_) => ("0".to_owned(), format!("{}{all}", "0".repeat((-exponent - 1) as usize))),
    };
    put(out, format_args!("{sign}{before}.{}", if after.is_empty() { "0" } else { &after }));
}

/// `UUID.fromString(text).toString()`: the groups of the input may be shorter than those of the output.
fn write_uuid(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    const WIDTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = std::str::from_utf8(bytes).ok()?.split('-').collect();
    if groups.len() != WIDTHS.len() || bytes.len() > 36 {
        return None;
    }
    for (number, (group, width)) in groups.iter().zip(WIDTHS).enumerate() {
        let value = u64::from_str_radix(group, 16).ok()? & (u64::MAX >> (64 - 4 * width));
        put(out, format_args!("{}{value:0width$x}", if number == 0 { "" } else { "-" }));
    }
    Some(())
}
