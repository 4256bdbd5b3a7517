//! Sets the SONAME of the shared library, which cargo does not. Programs request the library from
//! the loader by this name.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libvspawn.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
