//! Gives the shared library its SONAME, which cargo does not: programs ask the loader for this name.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libvspawn.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
