//! Values as the columns of a ledger hold them: SQLite's integers have 63 bits and a sign.

use rusqlite::types::Type;

/// A count, seed or tick as it is written.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("counts, seeds and ticks stay below 2^63")
}

/// A count read back. Counts are written from `u64`s below 2^63.
pub(super) fn unsigned(value: i64) -> u64 {
    value.cast_unsigned()
}

/// A value that no ledger of ours has.
pub(super) fn corrupt(column: usize, found: Type, reason: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, found, reason.into())
}
