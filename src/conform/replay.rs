//! How a line of operations is replayed: parsed strictly, answered by the model in the place of the
//! recorded answers, and compared as a whole.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{LineError, compare, parse};

/// Why a line cannot be replayed: a field that asks for what its allocator or tree cannot do.
pub(super) struct Impossible {
    path: String,
    message: String,
}

impl Impossible {
    pub(super) fn new(field: &str, message: String) -> Impossible {
        Impossible { path: field.to_owned(), message }
    }

    /// The same with the place of the op before the field.
    pub(super) fn in_op(self, index: usize) -> Impossible {
        Impossible { path: format!("ops[{index}].{}", self.path), ..self }
    }
}

impl From<Impossible> for LineError {
    fn from(impossible: Impossible) -> LineError {
        LineError::Malformed { path: impossible.path, message: impossible.message }
    }
}

/// Checks a line of type `L`, in which `replay` overwrites every answer with the model's.
pub(super) fn check<L: DeserializeOwned + Serialize>(
    line: &str,
    replay: impl FnOnce(&mut L) -> Result<(), Impossible>,
) -> Result<(), LineError> {
    let mut parsed: L = parse(line)?;
    replay(&mut parsed)?;
    let recorded: Value = parse(line)?;
    let model = serde_json::to_value(parsed).expect("a line is plain data");
    Ok(compare("line", &recorded, &model)?)
}
