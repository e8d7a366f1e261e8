//! Hands the crate the target it is compiled for: a cache key needs the whole triple, and `cfg` gives only its pieces.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").expect("cargo sets TARGET for build scripts");
    println!("cargo::rustc-env=BUILD_SUPPORT_TARGET={target}");
}
