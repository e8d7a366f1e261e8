//! `cargo xtask vulkan`: the vulkan variant of llama.cpp, built and proved on a driver in software.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use build_support::Host;
use build_support::choose::Variant;
use build_support::env::{Env, LLAMA_VARIANT};

use crate::Result;
use crate::setup::{self, Thing};
use crate::workspace::{cargo, run as run_command};

/// What is needed, by Debian's names: headers and loader, the compiler of shaders, and drivers, among them one in software.
const PACKAGES: &[&str] = &["libvulkan-dev", "glslc", "spirv-headers", "mesa-vulkan-drivers"];

/// Where drivers are registered.
const DRIVERS: &[&str] = &["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];

/// Build the vulkan variant of llama.cpp (some minutes, once) and check it on Mesa's driver in software, lavapipe.
///
/// Not part of `test`: it needs packages that other work does not, and a token takes a second.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Install the packages that are needed with apt-get, as root.
    #[arg(long)]
    install: bool,

    /// On this machine's own devices, not on the driver in software.
    #[arg(long)]
    hardware: bool,

    /// For the tests: cargo xtask vulkan -- interrupt.
    #[arg(last = true)]
    tests: Vec<String>,
}

pub(crate) fn run(host: &Host, arguments: &Arguments) -> Result {
    if arguments.install {
        run_command(Command::new("apt-get").arg("update"))?;
        run_command(Command::new("apt-get").args(["install", "--yes", "--no-install-recommends"]).args(PACKAGES))?;
    }
    let driver = if arguments.hardware { None } else { Some(driver()?) };
    setup::ensure(host, &[Thing::Smollm2, Thing::Source, Thing::Llama])?;
    let env = Env::from_process().with(LLAMA_VARIANT, Variant::Vulkan.name());
    setup::ensure_in(host, &[Thing::Llama], &env)?;

    let mut test = cargo(["test", "--package", "infer-tests", "--test", "vulkan", "--"]);
    // One after another: the driver in software uses every core for one.
    test.args(["--ignored", "--nocapture", "--test-threads=1"]).args(&arguments.tests);
    if let Some(driver) = driver {
        eprintln!("on {}", driver.display());
        // Only this one is seen; by the first name in loaders of today, by the second in those of Debian 12.
        test.env("VK_DRIVER_FILES", &driver).env("VK_ICD_FILENAMES", &driver);
        // ggml leaves out what is no hardware, unless it is named.
        test.env("GGML_VK_VISIBLE_DEVICES", "0");
    }
    run_command(&mut test)
}

/// The file that registers lavapipe.
fn driver() -> Result<PathBuf> {
    let files = DRIVERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let found = files
        .map(|file| file.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lvp_icd")));
    found.ok_or_else(|| {
        format!(
            "Mesa's driver in software is not in {}; on Debian and Ubuntu: apt-get install {}, or cargo xtask vulkan --install",
            DRIVERS.join(", "),
            PACKAGES.join(" ")
        )
        .into()
    })
}
