//! `cargo xtask bindings`: the Rust side of the door's header, committed, and always made again the same.

use build_support::Host;

use crate::Result;
use crate::setup::{self, Thing};

/// Make infer-sys's bindings from the door's header, or compare them with it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Change nothing; fail when the committed bindings are not what the header makes.
    #[arg(long)]
    check: bool,
}

/// Brings libclang and llama.cpp's headers, and starts the form of xtask that has bindgen, which finds libclang by an
/// environment variable.
#[cfg(not(feature = "reading"))]
pub(crate) fn run(host: &Host, arguments: &Arguments) -> Result {
    use build_support::env::{Env, LIBCLANG_PATH};

    let Arguments { check: _ } = arguments;
    setup::ensure(host, &[Thing::Source, Thing::Libclang])?;
    let env = Env::from_process();
    let cache = build_support::cache::Cache::from_env(&env)?;
    let libclang = build_support::tools::libclang(&env, &cache)?.ok_or("libclang is not where it was put")?;
    crate::workspace::again_with_reading(&[(LIBCLANG_PATH, libclang.as_os_str())])
}

#[cfg(feature = "reading")]
pub(crate) fn run(host: &Host, arguments: &Arguments) -> Result {
    setup::ensure(host, &[Thing::Source])?;
    reading::run(arguments.check)
}

#[cfg(feature = "reading")]
mod reading {
    use std::fs;
    use std::path::Path;

    use bindgen::{Builder, EnumVariation, Formatter, RustEdition, RustTarget};
    use build_support::choose::{Target, Variant, Wanted};
    use build_support::env::Env;
    use build_support::llama::Llama;

    use crate::Result;
    use crate::workspace::root;

    const HEADER: &str = "build-support/shim/llama_door.h";
    const BINDINGS: &str = "infer-sys/src/llama/bindings.rs";

    /// Types of llama.cpp that are handles here, whatever its headers say of their insides.
    const OPAQUE: &[&str] = &["ggml_tensor", "llama_sampler"];

    pub(super) fn run(check: bool) -> Result {
        let made = make()?;
        let path = root().join(BINDINGS);
        let committed = fs::read_to_string(&path).unwrap_or_default();
        if made == committed {
            eprintln!("{BINDINGS} is what {HEADER} makes");
        } else if check {
            let difference = diffy::create_patch(&committed, &made);
            return Err(
                format!("{BINDINGS} is not what {HEADER} makes; run cargo xtask bindings:\n{difference}").into()
            );
        } else {
            fs::write(&path, made)?;
            eprintln!("{BINDINGS} is made anew");
        }
        Ok(())
    }

    fn make() -> Result<String> {
        let wanted = Wanted { link: true, variant: Variant::Cpu };
        let llama = Llama::look(&Env::from_process(), wanted, Target::host(), None)?;
        let tree = llama.tree().ok_or("llama.cpp's source is not where it was put")?;
        let include = |folder: &Path| format!("-I{}", folder.display());
        let mut builder = Builder::default()
            .header(root().join(HEADER).display().to_string())
            .clang_args([tree.join("include"), tree.join("ggml/include")].iter().map(|folder| include(folder)))
            // libclang's package lacks the compiler's own headers.
            .clang_arg(include(&llama.toolchain()?.headers()?))
            .allowlist_item("infer_llama_.*")
            .allowlist_item("INFER_LLAMA_.*")
            .allowlist_type("llama_(vocab_type|token_attr|rope_type)")
            .allowlist_type("ggml_backend_dev_type")
            .allowlist_var("LLAMA_STATE_SEQ_FLAGS_.*")
            .blocklist_type(OPAQUE.join("|"))
            .blocklist_item("INFER_LLAMA_(DOOR_H|EXPORT)")
            .default_enum_style(EnumVariation::Consts)
            .prepend_enum_name(false)
            .layout_tests(false)
            .generate_comments(false)
            .derive_default(true)
            .use_core()
            .merge_extern_blocks(true)
            .rust_edition(RustEdition::Edition2024)
            .rust_target(RustTarget::stable(85, 0).map_err(|error| error.to_string())?)
            .formatter(Formatter::Rustfmt)
            .rustfmt_configuration_file(Some(root().join("rustfmt.toml")))
            .disable_header_comment()
            .raw_line(format!("// Made from {HEADER} by `cargo xtask bindings`. Not edited by hand."));
        for name in OPAQUE {
            builder = builder
                .raw_line("#[repr(C)]")
                .raw_line("#[derive(Debug)]")
                .raw_line(format!("pub struct {name} {{\n    _unused: [u8; 0],\n}}"));
        }
        Ok(builder.generate()?.to_string())
    }
}
