//! From a report to what people and programs read: pure functions to text.
