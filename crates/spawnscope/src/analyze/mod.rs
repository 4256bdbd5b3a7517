//! From a recording to a report: pure functions of plain data.
