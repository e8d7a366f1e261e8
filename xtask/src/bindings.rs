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
    use std::path::{Path, PathBuf};

    use bindgen::{Builder, EnumVariation, Formatter, RustEdition, RustTarget};
    use build_support::choose::{Target, Variant, Wanted};
    use build_support::env::Env;
    use build_support::llama::Llama;

    use crate::Result;
    use crate::workspace::root;

    /// A door's header and what is made of it.
    struct Door {
        header: &'static str,
        bindings: &'static str,
        /// What of the header and of those it includes is bound.
        choose: fn(Builder) -> Builder,
        /// Types that are handles here, whatever upstream's headers say of their insides.
        opaque: &'static [&'static str],
    }

    const DOORS: &[Door] = &[
        Door {
            header: "build-support/shim/llama_door.h",
            bindings: "infer-sys/src/llama/bindings.rs",
            choose: |builder| {
                builder
                    .allowlist_item("infer_llama_.*")
                    .allowlist_item("INFER_LLAMA_.*")
                    .allowlist_type("llama_(vocab_type|token_attr|rope_type)")
                    .allowlist_type("ggml_backend_dev_type")
                    .allowlist_var("LLAMA_STATE_SEQ_FLAGS_.*")
                    .blocklist_item("INFER_LLAMA_(DOOR_H|EXPORT)")
            },
            opaque: &["ggml_tensor", "llama_sampler"],
        },
        Door {
            header: "build-support/shim/mlx_door.h",
            bindings: "infer-sys/src/mlx/bindings.rs",
            choose: |builder| {
                builder
                    .allowlist_item("infer_mlx_.*")
                    .allowlist_item("INFER_MLX_.*")
                    .blocklist_item("INFER_MLX_(DOOR_H|EXPORT)")
            },
            opaque: &[],
        },
    ];

    pub(super) fn run(check: bool) -> Result {
        let include = includes()?;
        for door in DOORS {
            let Door { header, bindings, .. } = door;
            let made = make(door, &include)?;
            let path = root().join(bindings);
            let committed = fs::read_to_string(&path).unwrap_or_default();
            if made == committed {
                eprintln!("{bindings} is what {header} makes");
            } else if check {
                let difference = diffy::create_patch(&committed, &made);
                return Err(
                    format!("{bindings} is not what {header} makes; run cargo xtask bindings:\n{difference}").into()
                );
            } else {
                fs::write(&path, made)?;
                eprintln!("{bindings} is made anew");
            }
        }
        Ok(())
    }

    /// The folders of the headers that the doors' include.
    fn includes() -> Result<Vec<PathBuf>> {
        let wanted = Wanted { link: true, variant: Variant::Cpu };
        let llama = Llama::look(&Env::from_process(), wanted, Target::host(), None)?;
        let tree = llama.tree().ok_or("llama.cpp's source is not where it was put")?;
        // libclang's package lacks the compiler's own headers.
        Ok(vec![tree.join("include"), tree.join("ggml/include"), llama.toolchain()?.headers()?])
    }

    fn make(door: &Door, include: &[PathBuf]) -> Result<String> {
        let flag = |folder: &Path| format!("-I{}", folder.display());
        let mut builder = (door.choose)(Builder::default())
            .header(root().join(door.header).display().to_string())
            .clang_args(include.iter().map(|folder| flag(folder)))
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
            .raw_line(format!("// Made from {} by `cargo xtask bindings`. Not edited by hand.", door.header));
        for name in door.opaque {
            builder = builder
                .blocklist_type(name)
                .raw_line("#[repr(C)]")
                .raw_line("#[derive(Debug)]")
                .raw_line(format!("pub struct {name} {{\n    _unused: [u8; 0],\n}}"));
        }
        Ok(builder.generate()?.to_string())
    }
}
