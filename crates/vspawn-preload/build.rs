//! Sets the SONAME of the shared library, which cargo does not.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libvspawn_preload.so");
    println!("cargo:rerun-if-changed=build.rs");
}
