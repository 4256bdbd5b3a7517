//! Follows a program between its exec and the end of loading, by the mappings that the kernel and the loader make. The kernel maps the
//! program, then the loader, then the vDSO, and returns to user space. The last step of glibc's loader is to protect its own data, that of
//! musl's loader to protect the program's data.

use crate::perf::kernel::{File, VDSO};
use spawnscope_data::event::Nanos;

use super::program_details::ProgramDetails;
use crate::scripts;

/// The kernel truncates names in comm to this length, in bytes.
const MAX_NAME_BYTES: usize = 15;

/// A program that is being set up.
#[derive(Debug)]
pub(super) struct Image {
    /// Base name of the file passed to `execve`, truncated to `MAX_NAME_BYTES`.
    name: Vec<u8>,
    /// What was read about the program, in /proc or in a copy of the stack.
    pub(super) details: Option<ProgramDetails>,
    program: Option<MappedFile>,
    loader: Option<MappedFile>,
    /// When the exec was about to return, and the CPU time at that moment.
    pub(super) returned: Option<(Nanos, Option<Nanos>)>,
    /// Whether the exec was reported.
    pub(super) is_reported: bool,
}

#[derive(Debug)]
struct MappedFile {
    file: File,
    path: Vec<u8>,
}

/// What a mapping shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// The exec is about to return to user space. `has_loader`: a dynamic loader will run first.
    Returns {
        has_loader: bool,
    },
    /// The loader is done.
    Loaded,
}

impl Image {
    pub(super) fn new(name: Vec<u8>, details: Option<ProgramDetails>) -> Image {
        Image { name, details, program: None, loader: None, returned: None, is_reported: false }
    }

    /// Whether nothing has been mapped since the exec.
    pub(super) fn has_no_mappings(&self) -> bool {
        self.program.is_none()
    }

    /// Handles a mapping of a file, or a change of its protection.
    pub(super) fn handle_mapping(&mut self, file: File, protection: u32, name: &[u8]) -> Step {
        if self.returned.is_some() {
            let is_protected = protection & libc::PROT_WRITE.cast_unsigned() == 0;
            return if is_protected && self.ends_load(file) { Step::Loaded } else { Step::Nothing };
        }
        if name == VDSO {
            return Step::Returns { has_loader: self.loader.is_some() };
        }
        let mapped = match &self.program {
            None => &mut self.program,
            Some(program) if program.file != file && self.loader.is_none() => &mut self.loader,
            Some(_) => return Step::Nothing,
        };
        *mapped = Some(MappedFile { file, path: name.to_vec() });
        Step::Nothing
    }

    /// Whether protecting data of this file is the loader's last step.
    fn ends_load(&self, file: File) -> bool {
        let Some(loader) = &self.loader else { return false };
        let is_musl = base_name(&loader.path).starts_with(b"ld-musl-");
        let last = if is_musl { self.program.as_ref() } else { Some(loader) };
        last.is_some_and(|last| last.file == file)
    }

    /// Returns the file passed to `execve`. If it is unknown, returns the path of the mapped file if that has the name that was passed,
    /// otherwise only that name.
    pub(super) fn path(&self) -> Vec<u8> {
        let passed = self.details.as_ref().and_then(|details| details.path.clone());
        passed.or_else(|| self.mapped_path()).unwrap_or_else(|| self.name.clone())
    }

    fn mapped_path(&self) -> Option<Vec<u8>> {
        let path = &self.program.as_ref()?.path;
        let base = base_name(path);
        let is_same = base == self.name || (self.name.len() == MAX_NAME_BYTES && base.starts_with(&self.name));
        is_same.then(|| path.clone())
    }

    /// Returns the interpreter, if the file is a `#!` script. If only a copy of the stack was read, the file is a script if another program
    /// was mapped.
    pub(super) fn interpreter(&self) -> Option<Vec<u8>> {
        let details = self.details.as_ref()?;
        if !details.is_copied {
            return details.interpreter.clone();
        }
        let (mapped, path) = (&self.program.as_ref()?.path, details.path.as_ref()?);
        let is_other = base_name(mapped) != base_name(path);
        scripts::possible_interpreter(&details.argv, path).filter(|_| is_other)
    }
}

fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: u32 = 1;
    const WRITE: u32 = 3;

    fn file(inode: u64) -> File {
        File { device: (8, 1), inode }
    }

    fn exec(name: &str, mappings: &[(u64, &str)]) -> Image {
        let mut image = Image::new(name.as_bytes().to_vec(), None);
        for (inode, path) in mappings {
            assert_eq!(image.handle_mapping(file(*inode), READ, path.as_bytes()), Step::Nothing);
        }
        image
    }

    #[test]
    fn the_loader_is_done_when_it_protects_its_own_data() {
        let program = (1, "/usr/bin/true");
        for (loader, last) in [("/lib64/ld-linux-x86-64.so.2", 2), ("/lib/ld-musl-x86_64.so.1", 1)] {
            let mut image = exec("true", &[program, program, (2, loader), (2, loader)]);
            assert_eq!(image.handle_mapping(file(0), READ, VDSO), Step::Returns { has_loader: true });
            image.returned = Some((Nanos(1), None));
            assert_eq!(image.handle_mapping(file(3), READ, b"/lib/libc.so.6"), Step::Nothing);
            assert_eq!(image.handle_mapping(file(last), WRITE, b""), Step::Nothing);
            assert_eq!(image.handle_mapping(file(3 - last), READ, b""), Step::Nothing);
            assert_eq!(image.handle_mapping(file(last), READ, b""), Step::Loaded, "{loader}");
        }
    }

    #[test]
    fn a_program_without_loader_has_loaded_when_its_exec_returns() {
        let mut image = exec("tiny", &[(1, "/x/tiny")]);
        assert_eq!(image.handle_mapping(file(0), READ, VDSO), Step::Returns { has_loader: false });
        image.returned = Some((Nanos(1), None));
        assert_eq!(image.handle_mapping(file(1), READ, b"/x/tiny"), Step::Nothing);
    }

    fn interpreter(mapped: &str, argv: &[u8]) -> Option<Vec<u8>> {
        let mut image = exec("run", &[(1, mapped)]);
        image.details = Some(ProgramDetails {
            read_at: Nanos(1),
            argv: argv.to_vec(),
            argv_bytes: argv.len() as u64,
            path: Some(b"/x/run".to_vec()),
            interpreter: None,
            cwd: None,
            variables: Vec::new(),
            is_copied: true,
        });
        image.interpreter()
    }

    #[test]
    fn a_file_is_a_script_if_another_program_was_mapped() {
        assert_eq!(interpreter("/bin/dash", b"/bin/sh\0/x/run\0"), Some(b"/bin/sh".to_vec()));
        assert_eq!(interpreter("/x/run", b"/x/run\0/x/run\0"), None);
        assert_eq!(interpreter("/bin/dash", b"run\0-x\0"), None);
    }

    #[test]
    fn the_path_is_that_of_the_mapped_file_only_if_the_file_has_the_passed_name() {
        for (name, mapped, path) in [
            ("true", "/usr/bin/true", "/usr/bin/true"),
            ("sh", "/usr/bin/dash", "sh"),
            ("a-very-long-nam", "/x/a-very-long-name", "/x/a-very-long-name"),
            ("a-very-lon", "/x/a-very-long-name", "a-very-lon"),
        ] {
            assert_eq!(exec(name, &[(1, mapped)]).path(), path.as_bytes(), "{name}");
        }
        assert_eq!(exec("true", &[]).path(), b"true");
    }
}
