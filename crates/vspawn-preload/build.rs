//! Sets the SONAME of the shared library, which cargo does not, and lets the dynamic loader map it
//! with fewer system calls and page faults, since it is loaded into every program that may launch
//! another. RELRO would protect nothing: the addresses of the real functions are written later.

fn main() {
    for option in ["-soname,libvspawn_preload.so", "-z,norelro"] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,{option}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
