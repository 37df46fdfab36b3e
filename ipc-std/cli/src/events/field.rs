//! Fields of events by name, and conditions on them: `--where`.
use core::cmp::Ordering;

use ipc_proto::Guid;
use nettrace::{Label, Metadata, Str, ThreadEntry, TraceEvent, Value};

use crate::args::comparison::Comparison;

/// Returns the field of a payload, by its name or by a path of names. Without such a field, the name can be that of a
/// property that every event has.
pub(crate) fn value<'e>(
    event: &TraceEvent<'e>,
    metadata: Option<&Metadata<'e>>,
    payload: &'e [u8],
    name: &str,
) -> Option<Value<'e>> {
    metadata.and_then(|metadata| metadata.fields.values(payload).field(name)).or_else(|| {
        let number = |number: u32| Value::UInt(number.into());
        match (name, metadata) {
            ("provider", Some(metadata)) => Some(Value::Text(metadata.provider)),
            ("id", Some(metadata)) => Some(number(metadata.event_id)),
            ("version", Some(metadata)) => Some(number(metadata.version)),
            ("name", Some(metadata)) => Some(Value::Text(metadata.name)),
            ("level", Some(metadata)) => Some(number(metadata.level)),
            ("time_ns", _) => Some(Value::Int(event.nanoseconds())),
            ("thread_id", _) => event.known_thread_id().map(Value::UInt),
            ("thread_name", _) => thread_name(event).map(Value::Text),
            ("process_id", _) => event.process_id().map(Value::UInt),
            ("activity_id", _) => {
                Some(Value::Guid(event.activity_id())).filter(|id| *id != Value::Guid(Guid::NIL))
            }
            ("processor", _) => event.processor().map(number),
            _ => label(event, name.strip_prefix("labels.")?),
        }
    })
}

/// The maximum number of properties of a thread, or of labels of an event, that are searched: a trace can repeat a long
/// list with each event.
pub(super) const ENTRIES_LIMIT: usize = 64;

/// Returns the name of the event's thread, if it has one.
pub(super) fn thread_name<'e>(event: &TraceEvent<'e>) -> Option<Str<'e>> {
    event.thread()?.entries.take(ENTRIES_LIMIT).find_map(|entry| match entry {
        ThreadEntry::Name(name) => Some(name).filter(|name| !name.is_empty()),
        _ => None,
    })
}

/// Returns the value of a label.
fn label<'e>(event: &TraceEvent<'e>, name: &str) -> Option<Value<'e>> {
    event.labels().take(ENTRIES_LIMIT).find_map(|label| match label {
        Label::Text(key, value) if key == *name => Some(Value::Text(value)),
        Label::Number(key, value) if key == *name => Some(Value::Int(value)),
        _ => None,
    })
}

/// Returns a text whose capital and small letters are equal. Each character is folded on its own. [`str::to_lowercase`]
/// depends on where a word ends, so that a part of a word could fold differently than the word.
fn fold_case(text: impl Iterator<Item = char>) -> String {
    // To capital letters first, because some small letters have the same capital letter.
    text.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// A condition: `FIELD OP VALUE`.
#[derive(Debug, Clone)]
pub(crate) struct FieldCondition {
    field: String,
    /// `None` is `~`: whether the field contains the value.
    comparison: Option<Comparison>,
    text: String,
    /// The value as [`fold_case`] returns it, for `~` and GUIDs.
    folded: String,
    integer: Option<i128>,
    number: Option<f64>,
}

impl FieldCondition {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let at = text.find(['=', '!', '<', '>', '~']).unwrap_or(text.len());
        let (field, rest) = text.split_at(at);
        let comparison = Comparison::split(rest);
        let (comparison, value) = if let Some((comparison, value)) = comparison {
            (Some(comparison), value)
        } else if let Some(value) = rest.strip_prefix('=') {
            (Some(Comparison::Equal), value)
        } else if let Some(value) = rest.strip_prefix('~') {
            (None, value)
        } else {
            return Err("the operator is missing: use = != < <= > >= or ~ (contains)".to_owned());
        };
        let (symbol, field, value) = (rest.strip_suffix(value).unwrap_or(rest), field.trim(), value.trim());
        if field.is_empty() {
            return Err("the name of the field is missing".to_owned());
        }
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let integer = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from),
            None => value.parse().ok(),
        };
        let is_text = quoted.is_some();
        let value = quoted.unwrap_or(value);
        let number = value.parse().ok().filter(|number: &f64| !number.is_nan());
        if comparison.is_some_and(Comparison::is_order) && !is_text && integer.is_none() && number.is_none() {
            return Err(format!("{symbol} needs a number, or a text or time in quotes: {symbol} \"abc\""));
        }
        Ok(Self {
            field: field.to_owned(),
            comparison,
            text: value.to_owned(),
            folded: fold_case(value.chars()),
            integer,
            number,
        })
    }

    /// Returns the name of the field.
    pub(crate) fn field(&self) -> &str {
        &self.field
    }

    /// Returns whether the event has a value of the condition's type in the field, for which the condition is true.
    /// `None` if it does not have the field.
    pub(crate) fn holds<'e>(
        &self,
        event: &TraceEvent<'e>,
        metadata: Option<&Metadata<'e>>,
        payload: &'e [u8],
    ) -> Option<bool> {
        value(event, metadata, payload, &self.field).map(|value| self.accepts(value))
    }

    /// Returns whether the condition is true for a value.
    fn accepts(&self, value: Value<'_>) -> bool {
        match (self.comparison, value) {
            (Some(comparison), value) => {
                self.compare(value).is_some_and(|ordering| comparison.accepts(ordering))
            }
            (None, Value::Text(text)) => fold_case(text.chars()).contains(&self.folded),
            (None, _) => false,
        }
    }

    /// Compares a value with the value of the condition; `None` if their types differ.
    fn compare(&self, value: Value<'_>) -> Option<Ordering> {
        let number = |integer: i128| match self.integer {
            Some(other) => Some(integer.cmp(&other)),
            None => (integer as f64).partial_cmp(&self.number?),
        };
        match value {
            Value::Boolean(value) => Some(value.cmp(&self.text.parse().ok()?)),
            Value::Int(value) => number(value.into()),
            Value::UInt(value) => number(value.into()),
            Value::Single(value) => f64::from(value).partial_cmp(&self.number?),
            Value::Double(value) => value.partial_cmp(&self.number?),
            Value::Text(text) => Some(text.chars().cmp(self.text.chars())),
            Value::CodeUnit(unit) => Some(Str::Utf16(&unit.to_le_bytes()).chars().cmp(self.text.chars())),
            Value::Guid(guid) => Some(guid.to_string().cmp(&self.folded)),
            Value::DateTime(time) => Some(time.to_string().cmp(&self.text)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &str, value: Value<'_>) -> bool {
        let condition = FieldCondition::parse(condition).unwrap();
        assert_eq!(condition.field, "a");
        condition.accepts(value)
    }

    #[test]
    fn values_are_compared_by_their_type() {
        let text = Value::Text("Über".into());
        for (condition, value, expected) in [
            ("a=5", Value::UInt(5), true),
            ("a == 0x10", Value::Int(16), true),
            ("a != 5", Value::Int(-5), true),
            ("a<-4", Value::Int(-5), true),
            ("a <= 5.5", Value::UInt(5), true),
            ("a > 5.5", Value::UInt(5), false),
            ("a>=18446744073709551615", Value::UInt(u64::MAX), true),
            ("a > 9223372036854775807", Value::UInt(1 << 63), true),
            ("a > 1e3", Value::Double(1000.5), true),
            ("a < 0.25", Value::Single(0.125), true),
            ("a > 0", Value::Double(f64::NAN), false),
            ("a != 0", Value::Double(f64::NAN), false),
            ("a = true", Value::Boolean(true), true),
            ("a != true", Value::Boolean(false), true),
            ("a = Über", text, true),
            ("a = \"Über\"", text, true),
            ("a = \" Über\"", text, false),
            ("a >= \"Über\"", text, true),
            ("a = x = y", Value::Text("x = y".into()), true),
            ("a =", Value::Text("".into()), true),
            ("a = A", Value::CodeUnit(65), true),
            ("a ~ ÜBE", text, true),
            ("a ~ bar", text, false),
            // The small letter of Σ at the end of a word is another one than within a word.
            ("a ~ ΟΔΟΣ", Value::Text("ΟΔΟΣ".into()), true),
            ("a ~ ΟΔΟΣ", Value::Text("οδος".into()), true),
            ("a ~ ΟΔΟ", Value::Text("ΟΔΟΣ".into()), true),
            ("a ~ STRASSE", Value::Text("Straße".into()), true),
            ("a = ABABABAB-ABAB-ABAB-ABAB-ABABABABABAB", Value::Guid(Guid([0xab; 16])), true),
            // The value has another type than the condition.
            ("a = 5", Value::Text("five".into()), false),
            ("a != five", Value::Int(5), false),
            ("a = 1", Value::Boolean(true), false),
            ("a = 1", Value::Bytes(&[1]), false),
        ] {
            assert_eq!(holds(condition, value), expected, "{condition} {value:?}");
        }
        for condition in ["", "a", "=5", " = 5", "a ! 5", "a 5"] {
            assert!(FieldCondition::parse(condition).is_err(), "{condition}");
        }
        for condition in ["a >", "a <", "a >= abc", "a <=0xyz", "a < nan"] {
            let message = FieldCondition::parse(condition).unwrap_err();
            assert!(
                message.contains(" needs a number, or a text or time in quotes"),
                "{condition} {message}"
            );
        }
    }
}
