//! Recognizes the end of the `load` phase in the calls of a program. The dynamic loader of glibc
//! maps `/etc/ld.so.cache`, and unmaps it when it is done. Without the cache (musl, or a directory
//! of libraries), its last call is the `mprotect` after relocation. A static program maps no
//! library.

use spawnscope_data::event::{Loaded, Nanos};

use super::call::{Call, string};

const CACHE: &[u8] = b"/etc/ld.so.cache";

/// A program that may still be loading.
#[derive(Clone, Debug, Default)]
pub struct Loading {
    /// When `execve` returned; `None` until that is known.
    pub returned: Option<Nanos>,
    /// The descriptor and the address of the cache.
    cache: Option<i64>,
    cache_address: Option<i64>,
    found_cache: Option<bool>,
    opens: u32,
    failed_opens: u32,
    /// Whether a library was opened.
    has_library: bool,
    /// The last `mprotect`.
    protected: Option<Nanos>,
}

impl Loading {
    /// A program whose exec returned at this instant, if that is known.
    pub fn after(returned: Option<Nanos>) -> Loading {
        Loading { returned, ..Loading::default() }
    }

    /// Adds the next call of the program, which ended at `end`. Returns what is known if the
    /// program is loaded.
    pub fn add(&mut self, call: &Call<'_>, end: Nanos) -> Option<Loaded> {
        match call.name {
            b"open" => self.open(call, 0),
            b"openat" => self.open(call, 1),
            b"mmap" if self.cache.is_some() && call.number(4) == self.cache => {
                (self.cache, self.cache_address) = (None, call.result);
            }
            b"munmap" if self.cache_address.is_some() && call.number(0) == self.cache_address => {
                return Some(self.loaded(Some(end)));
            }
            b"mprotect" => self.protected = Some(end),
            b"access" | b"faccessat" | b"faccessat2" | b"stat" | b"newfstatat" | b"readlink" | b"readlinkat"
            | b"statx" => self.failed_opens += u32::from(call.error == Some(b"ENOENT")),
            name if !BY_LOADERS.split(' ').any(|other| other.as_bytes() == name) => {
                return Some(self.finish());
            }
            _ => {}
        }
        None
    }

    fn open(&mut self, call: &Call<'_>, path: usize) {
        let path = string(call.argument(path)).unwrap_or_default().bytes;
        if path == CACHE {
            self.found_cache = Some(call.succeeded());
            self.cache = call.result.filter(|_| call.succeeded());
        } else if call.succeeded() {
            self.opens += 1;
            self.has_library |= path.windows(3).any(|part| part == b".so");
        } else {
            self.failed_opens += 1;
        }
    }

    /// Returns what is known when the program did something that a loader does not do.
    pub fn finish(&self) -> Loaded {
        let is_dynamic = self.has_library || self.found_cache.is_some();
        match self.protected {
            Some(end) if is_dynamic => self.loaded(Some(end)),
            // The C library of a static program protects its memory, too.
            Some(_) => Loaded { has_loader: false, return_cpu: Some(Nanos(0)), ..self.loaded(None) },
            None => self.loaded(None),
        }
    }

    fn loaded(&self, end: Option<Nanos>) -> Loaded {
        Loaded {
            returned: self.returned.unwrap_or_default(),
            return_cpu: None,
            has_loader: true,
            load_end: end,
            // CPU times are unknown; the time of `work` begins here.
            load_cpu: end.map(|_| Nanos(0)),
            load_opens: end.map(|_| self.opens),
            load_failed_opens: end.map(|_| self.failed_opens),
            load_cache: end.and(self.found_cache),
        }
    }
}

/// Calls of loaders and of the C library before `main`, besides those above.
const BY_LOADERS: &str = "brk read pread64 fstat fstat64 lseek close mmap mmap2 munmap arch_prctl set_thread_area \
    set_tid_address set_robust_list rseq prlimit64 ugetrlimit getrandom uname getcwd getuid geteuid \
    getgid getegid prctl mincore";

/// Whether a call is one of those that programs begin with. If it is the next one after an exec,
/// the exec returned just before it.
pub fn begins_program(name: &[u8]) -> bool {
    matches!(name, b"brk" | b"mmap" | b"arch_prctl" | b"set_tid_address" | b"uname" | b"access")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is known after these calls, which end 10 ns after each other.
    fn load(calls: &[&str]) -> Option<Loaded> {
        let mut loading = Loading::after(Some(Nanos(5)));
        (1..).zip(calls).find_map(|(number, text)| {
            let call = Call::parse(text.as_bytes()).unwrap();
            loading.add(&call, Nanos(number * 10))
        })
    }

    #[test]
    fn the_loader_of_glibc_ends_when_it_unmaps_its_cache() {
        let loaded = load(&[
            "brk(NULL) = 0x55",
            r#"access("/etc/ld.so.preload", R_OK) = -1 ENOENT (No such file or directory)"#,
            r#"openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3</etc/ld.so.cache>"#,
            "mmap(NULL, 38807, PROT_READ, MAP_PRIVATE, 3</etc/ld.so.cache>, 0) = 0x7f11",
            r#"openat(AT_FDCWD, "/lib/libc.so.6", O_RDONLY|O_CLOEXEC) = 3"#,
            "mmap(NULL, 1, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3, 0) = 0x7f12",
            "mprotect(0x7f12, 16384, PROT_READ) = 0",
            "munmap(0x7f11, 38807) = 0",
        ])
        .unwrap();
        assert_eq!((loaded.load_end, loaded.load_opens, loaded.load_failed_opens), (Some(Nanos(80)), Some(1), Some(1)));
        assert_eq!((loaded.load_cache, loaded.has_loader, loaded.returned), (Some(true), true, Nanos(5)));
    }

    #[test]
    fn a_loader_without_a_cache_ends_with_its_last_protection() {
        let calls = [
            r#"open("/usr/lib/libz.so.1", O_RDONLY) = 3"#,
            "mprotect(0x1, 4096, PROT_READ) = 0",
            "mprotect(0x2, 4096, PROT_READ) = 0",
            "getpid() = 7",
        ];
        assert_eq!(load(&calls).unwrap().load_end, Some(Nanos(30)));
        let without_library = load(&calls[1..]).unwrap();
        assert_eq!((without_library.has_loader, without_library.load_end), (false, None));
        assert_eq!(load(&calls[3..]).unwrap().load_end, None, "the log has no calls of the loader");
        assert!(load(&calls[3..]).unwrap().has_loader, "it is unknown whether the program is static");
    }
}
