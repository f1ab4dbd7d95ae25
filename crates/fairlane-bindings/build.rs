//! Passes on to the code what only Cargo knows about a build, for `fairlane doctor`.

use std::env;
use std::process::Command;

fn main() {
    let known = |name| env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=FAIRLANE_TARGET={}", known("TARGET"));
    println!("cargo::rustc-env=FAIRLANE_OPT_LEVEL={}", known("OPT_LEVEL"));
    println!("cargo::rustc-env=FAIRLANE_CPU_FEATURES={}", known("CARGO_CFG_TARGET_FEATURE"));
    let printed = Command::new(known("RUSTC")).arg("--version").output();
    let rustc = printed.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned()).unwrap_or_default();
    println!("cargo::rustc-env=FAIRLANE_RUSTC={rustc}");
    println!("cargo::rerun-if-changed=build.rs");
}
