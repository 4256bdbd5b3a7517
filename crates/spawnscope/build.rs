//! Builds the BPF object with one call of clang, and before that its C header from the wire format's Rust definition.

#[cfg(feature = "ebpf")]
mod ebpf {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    const SOURCES: &str = "src/collect/ebpf";

    pub(crate) fn build() {
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        println!("cargo::rerun-if-changed={SOURCES}");
        println!("cargo::rerun-if-env-changed=CLANG");
        let arch = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target");
        // As libbpf's headers name it.
        let target = match arch.as_str() {
            "x86_64" => "-D__TARGET_ARCH_x86",
            "aarch64" => "-D__TARGET_ARCH_arm64",
            _ => {
                panic!("the eBPF collector knows x86_64 and aarch64 only, not {arch}: build with --no-default-features")
            }
        };
        generate_header(&out.join("wire.h"), &arch);
        compile(&out, "spawnscope.bpf.o", &[target]);
        compile(&out, "spawnscope_hash.bpf.o", &[target, "-DHASH_OF_TASKS"]);
    }

    fn generate_header(header: &Path, arch: &str) {
        let registers = format!("wire/registers/{arch}.rs");
        let files = [
            "wire.rs",
            "wire/python.rs",
            &registers,
            "wire/scripts.rs",
            "wire/stacks.rs",
            "wire/task.rs",
            "wire/wakers.rs",
        ]
        .map(|file| Path::new(SOURCES).join(file));
        let texts = files
            .each_ref()
            .map(|file| std::fs::read_to_string(file).expect("the wire format is there"));
        // cbindgen leaves out types that no C function takes, unless they are named.
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

    /// There are two builds of the programs; `tasks.h` says in what they differ.
    fn compile(out: &Path, object: &str, definitions: &[&str]) {
        let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
        let libbpf = std::env::var("DEP_BPF_INCLUDE").expect("libbpf-sys names its headers");
        let here = std::env::current_dir().expect("cargo sets the folder");
        // BTF names source files: the same ones wherever this is built.
        let maps = [(&*here, "."), (out, "out"), (Path::new(&libbpf), "libbpf")]
            .map(|(folder, name)| format!("-ffile-prefix-map={}={name}", folder.display()));
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
                "cannot run {clang} ({error}): install clang, or name it in CLANG, or build with --no-default-features"
            ),
        }
    }
}

fn main() {
    #[cfg(feature = "ebpf")]
    ebpf::build();
}
