//! The compilers: which they are, and what makes two of them the same.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::choose::{Need, Target};
use crate::env::Env;
use crate::error::{Error, Result};

/// The C and C++ compilers for one target.
#[derive(Clone, Debug)]
pub struct Toolchain {
    c: cc::Tool,
    cxx: cc::Tool,
}

impl Toolchain {
    /// The compilers the `cc` crate finds for `target` (so `CC`, `CXX` and their kin count), if both start.
    pub fn find(target: &Target) -> Option<Self> {
        let tool = |cpp| base(target).cpp(cpp).try_get_compiler().ok();
        let found = Self { c: tool(false)?, cxx: tool(true)? };
        (found.identity_of(&found.c).is_some() && found.identity_of(&found.cxx).is_some()).then_some(found)
    }

    /// Name and version of both, and the machine they compile for; no path, so that a cache can be moved.
    pub fn identity(&self) -> String {
        let one = |tool| self.identity_of(tool).unwrap_or_default();
        format!("{}; {}", one(&self.c), one(&self.cxx))
    }

    /// What `native` means on this machine: every macro the compiler defines for it.
    pub fn native_cpu(&self) -> String {
        let macros = |flag: &str| {
            let output =
                self.cxx.to_command().args([flag, "-dM", "-E", "-x", "c++", "-"]).stdin(Stdio::null()).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        macros("-march=native").or_else(|| macros("-mcpu=native")).unwrap_or_else(|| "unknown".to_owned())
    }

    /// The C++ compiler, to link with.
    pub(crate) fn link(&self) -> Command {
        self.cxx.to_command()
    }

    /// The C compiler, for a whole program.
    pub(crate) fn compile_c(&self) -> Command {
        self.c.to_command()
    }

    /// A program that belongs to the compiler: `objcopy`, `ar`, `nm`.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        let asked = self.cxx.to_command().arg(format!("-print-prog-name={name}")).stdin(Stdio::null()).output();
        let path = asked.ok().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        path.filter(|path| !path.is_empty()).unwrap_or_else(|| name.to_owned()).into()
    }

    /// Is this there?
    pub(crate) fn has(&self, need: Need, env: &Env) -> bool {
        match need {
            Need::Program(name) => env.on_path(name).is_some(),
            Need::Header(name) => self.preprocesses(&format!("#include <{name}>\n")),
            Need::Library(name) => self.links(name),
        }
    }

    fn preprocesses(&self, text: &str) -> bool {
        let run = || -> std::io::Result<bool> {
            let mut command = self.cxx.to_command();
            command.args(["-E", "-x", "c++", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                // A compiler that has ended already says the rest by its status.
                let _ = stdin.write_all(text.as_bytes());
            }
            Ok(child.wait()?.success())
        };
        run().unwrap_or(false)
    }

    /// Does the linker find `lib{name}`? It may need others of its own, so nothing is linked: the search is asked for.
    fn links(&self, name: &str) -> bool {
        ["so", "a", "dylib", "tbd"].iter().any(|extension| {
            let file = format!("lib{name}.{extension}");
            let asked = self.cxx.to_command().arg(format!("-print-file-name={file}")).stdin(Stdio::null()).output();
            // What is not found is said back as it was asked for.
            asked.is_ok_and(|output| output.status.success() && String::from_utf8_lossy(&output.stdout).trim() != file)
        })
    }

    /// The folder of the compiler's own headers, which libclang's package lacks.
    ///
    /// # Errors
    /// The compiler does not say.
    pub fn headers(&self) -> Result<PathBuf> {
        let asked = self.c.to_command().arg("-print-file-name=include").stdin(Stdio::null()).output();
        let path =
            asked.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())).unwrap_or_default();
        if path.is_dir() {
            return Ok(path);
        }
        Err(Error::new("the C compiler does not say where its own headers are (-print-file-name=include)"))
    }

    fn identity_of(&self, tool: &cc::Tool) -> Option<String> {
        let line = |flag: &str| {
            let output = tool.to_command().arg(flag).stdin(Stdio::null()).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned();
            (output.status.success() && !text.is_empty()).then_some(text)
        };
        Some(format!("{} for {}", line("--version")?, line("-dumpmachine")?))
    }
}

/// A `cc` configuration that takes nothing from cargo's variables: it works in a build script and outside one alike.
pub(crate) fn base(target: &Target) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cargo_metadata(false)
        .inherit_rustflags(false)
        .target(&target.triple)
        .host(&Target::host().triple)
        .opt_level(3)
        .debug(false)
        .warnings(false);
    build
}

/// Runs `command`, whose output goes where this process's goes.
pub(crate) fn run(command: &mut Command, doing: &str) -> Result<()> {
    println!("running: {command:?}");
    let status =
        command.status().map_err(|error| Error::new(format!("{doing}: {:?}: {error}", command.get_program())))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::new(format!("{doing}: {:?} ended with {status}", command.get_program())))
    }
}
