//! Generates the C headers of the BPF programs from the Rust definition of the wire format and from
//! the table of system calls, then builds the BPF objects with clang, and the readers of
//! interpreters for the ptrace collector. What C and Rust share is written once, in Rust.

use std::path::{Path, PathBuf};

const SOURCES: &str = "src/ebpf";
const READERS: &str = "src/ptrace/lines/readers.c";

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for sources in [SOURCES, READERS, "src/wire.rs", "src/wire"] {
        println!("cargo::rerun-if-changed={sources}");
    }
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target");
    generate_header(&out.join("wire.h"), &arch);
    let mut readers = cc::Build::new();
    readers.file(READERS).std("gnu11").include(&out).include(SOURCES).opt_level(2);
    // The readers take values from bytes at any offset.
    readers.flag("-fno-strict-aliasing").flag("-Wno-unused-function").flag("-Wno-sign-compare");
    readers.compile("spawnscope_readers");
    #[cfg(feature = "ebpf")]
    ebpf::build(&out, &arch);
}

fn generate_header(header: &Path, arch: &str) {
    let registers = format!("wire/registers/{arch}.rs");
    let files = [
        "wire.rs", "wire/python.rs", "wire/perl.rs", "wire/make.rs", &registers, "wire/scripts.rs", "wire/stacks.rs",
        "wire/task.rs", "wire/wakers.rs",
    ]
    .map(|file| Path::new("src").join(file));
    let texts = files.each_ref().map(|file| std::fs::read_to_string(file).expect("the wire format is there"));
    // cbindgen omits types that no exported function uses, unless they are listed.
    let structs = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.strip_prefix("pub struct ")?.split([' ', '{']).next());
    let config = cbindgen::Config {
        language: cbindgen::Language::C,
        no_includes: true,
        pragma_once: true,
        style: cbindgen::Style::Tag,
        export: cbindgen::ExportConfig {
            include: structs.map(str::to_owned).collect(),
            ..cbindgen::ExportConfig::default()
        },
        ..cbindgen::Config::default()
    };
    let builder = cbindgen::Builder::new().with_config(config);
    files
        .into_iter()
        .fold(builder, cbindgen::Builder::with_src)
        .generate()
        .expect("a C header from the wire format")
        .write_to_file(header);
}

#[cfg(feature = "ebpf")]
mod ebpf {
    use std::path::Path;
    use std::process::Command;

    use super::SOURCES;

    pub(crate) fn build(out: &Path, arch: &str) {
        println!("cargo::rerun-if-env-changed=CLANG");
        // The names that libbpf's headers use.
        let target = match arch {
            "x86_64" => "-D__TARGET_ARCH_x86",
            "aarch64" => "-D__TARGET_ARCH_arm64",
            _ => {
                panic!("the eBPF collector needs x86_64 or aarch64, not {arch}: build with --no-default-features")
            }
        };
        std::fs::write(out.join("syscall_numbers.h"), syscall_numbers(arch)).expect("the output directory is writable");
        compile(out, "spawnscope.bpf.o", &[target]);
        compile(out, "spawnscope_hash.bpf.o", &[target, "-DHASH_OF_TASKS"]);
    }

    /// Returns a header with the number of each system call of x86-64. Those that the architecture
    /// lacks have numbers that no call has: the only negative one in use is -1.
    fn syscall_numbers(arch: &str) -> String {
        let define = |(lacking, (name, number)): (i32, (&str, Option<u16>))| {
            format!("#define NR_{name} ({})\n", number.map_or(-1001 - lacking, i32::from))
        };
        let definitions: String = (0..).zip(spawnscope_data::event::syscalls::all_on(arch)).map(define).collect();
        format!("#pragma once\n{definitions}")
    }

    /// Builds an object. The programs are built twice; `tasks.h` explains the difference.
    fn compile(out: &Path, object: &str, definitions: &[&str]) {
        let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
        let libbpf = std::env::var("DEP_BPF_INCLUDE").expect("libbpf-sys names its headers");
        let here = std::env::current_dir().expect("cargo sets the directory");
        // BTF names source files. The mapping keeps these names independent of the build directory.
        let maps = [(&*here, "."), (out, "out"), (Path::new(&libbpf), "libbpf")]
            .map(|(directory, name)| format!("-ffile-prefix-map={}={name}", directory.display()));
        let status = Command::new(&clang)
            .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"])
            .args(maps)
            .args(["-Wno-unused-function", "-I", &libbpf, "-I"])
            .arg(out)
            .args(definitions)
            .arg("-c")
            .arg(Path::new(SOURCES).join("spawnscope.bpf.c"))
            .arg("-o")
            .arg(out.join(object))
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => panic!("{clang} could not compile the BPF programs ({status})"),
            Err(error) => panic!(
                "cannot run {clang} ({error}): install clang, set CLANG to its path, or build with --no-default-features"
            ),
        }
    }
}
