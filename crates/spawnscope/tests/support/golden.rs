//! Compares texts with the files in `tests/golden`. A missing file is a failure;
//! SNAPSHOTS=overwrite writes it.

use std::path::Path;

use snapbox::{Data, assert_data_eq};

#[track_caller]
pub fn assert_golden(text: &str, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    assert!(path.exists() || std::env::var_os("SNAPSHOTS").is_some(), "{} is missing", path.display());
    assert_data_eq!(text.to_owned(), Data::read_from(&path, None).raw());
}
