//! Collectors: they know the kernel and nothing of reports.
