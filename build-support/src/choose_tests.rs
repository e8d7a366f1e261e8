//! The table of [`choose`], row by row.

use super::*;

const LINUX: &str = "x86_64-unknown-linux-gnu";
const MAC: &str = "aarch64-apple-darwin";
const WINDOWS: &str = "x86_64-pc-windows-msvc";

fn everything() -> Found {
    Found {
        built: false,
        archives: false,
        packaged: Some("packaged".into()),
        cached: Some("cached".into()),
        cmake: true,
        generator: true,
        compiler: true,
        pkg_config: true,
        lacks: vec![],
    }
}

struct Row {
    what: &'static str,
    link: bool,
    variant: Variant,
    triple: &'static str,
    env: &'static [(&'static str, &'static str)],
    found: fn(&mut Found),
    want: Result<Source, Refusal>,
}

fn build(tree: Tree) -> Result<Source, Refusal> {
    Ok(Source::Build(tree))
}

const ROW: fn(&'static str, Result<Source, Refusal>) -> Row =
    |what, want| Row { what, link: true, variant: Variant::Cpu, triple: LINUX, env: &[], found: |_| {}, want };

#[test]
fn every_row() {
    let packaged = || build(Tree::Packaged("packaged".into()));
    let rows = [
        Row { link: false, ..ROW("no linking asked for", Ok(Source::Nothing)) },
        Row {
            link: false,
            found: |f| *f = Found::default(),
            ..ROW("none asked for, nothing there", Ok(Source::Nothing))
        },
        Row { env: &[(env::DOCS_RS, "1")], ..ROW("documentation", Ok(Source::Nothing)) },
        Row { env: &[(env::DOCS_RS, "1")], triple: WINDOWS, ..ROW("documentation anywhere", Ok(Source::Nothing)) },
        Row { triple: WINDOWS, ..ROW("nowhere to link", Err(Refusal::Link(WINDOWS.into()))) },
        Row { triple: "aarch64-linux-android", ..ROW("nor there", Err(Refusal::Link("aarch64-linux-android".into()))) },
        // Overrides, and two at once.
        Row { env: &[(env::LLAMA_SYSTEM, "on")], ..ROW("the system's", Ok(Source::System)) },
        Row {
            env: &[(env::LLAMA_SYSTEM, "on")],
            found: |f| f.pkg_config = false,
            ..ROW("the system's, unfindable", Err(Refusal::NoPkgConfig))
        },
        Row {
            env: &[(env::LLAMA_SYSTEM, "on")],
            found: |f| f.compiler = false,
            ..ROW("the system's, no compiler for the shim", Err(Refusal::NoCompiler))
        },
        Row { env: &[(env::LLAMA_SYSTEM, "off")], ..ROW("the system's, switched off", packaged()) },
        Row { env: &[(env::LLAMA_PREFIX, "there")], ..ROW("a prefix", Ok(Source::Prefix("there".into()))) },
        Row {
            env: &[(env::LLAMA_PREFIX, "there")],
            found: |f| *f = Found::default(),
            ..ROW("a prefix needs no tools", Ok(Source::Prefix("there".into())))
        },
        Row { env: &[(env::LLAMA_SOURCE, "mine")], ..ROW("a named tree", build(Tree::Named("mine".into()))) },
        Row {
            env: &[(env::LLAMA_SYSTEM, "on"), (env::LLAMA_PREFIX, "x")],
            ..ROW("two", Err(Refusal::Conflict(env::LLAMA_SYSTEM, env::LLAMA_PREFIX)))
        },
        Row {
            env: &[(env::LLAMA_SYSTEM, "on"), (env::LLAMA_SOURCE, "x")],
            ..ROW("two", Err(Refusal::Conflict(env::LLAMA_SYSTEM, env::LLAMA_SOURCE)))
        },
        Row {
            env: &[(env::LLAMA_PREFIX, "x"), (env::LLAMA_SOURCE, "x")],
            ..ROW("two", Err(Refusal::Conflict(env::LLAMA_PREFIX, env::LLAMA_SOURCE)))
        },
        // The cache's build, then the trees in order.
        Row { found: |f| f.built = true, ..ROW("built already", Ok(Source::Built)) },
        Row {
            found: |f| *f = Found { built: true, compiler: true, ..Found::default() },
            ..ROW("built already, no tree and no cmake", Ok(Source::Built))
        },
        Row {
            env: &[(env::LLAMA_SOURCE, "mine")],
            found: |f| f.built = true,
            ..ROW("a named tree built already", Ok(Source::Built))
        },
        Row { found: |f| f.archives = true, ..ROW("only the door is missing", Ok(Source::Archives)) },
        Row {
            found: |f| *f = Found { archives: true, compiler: true, ..Found::default() },
            ..ROW("only the door is missing, no tree and no cmake", Ok(Source::Archives))
        },
        ROW("the package's tree first", packaged()),
        Row { found: |f| f.packaged = None, ..ROW("then the cache's", build(Tree::Cached("cached".into()))) },
        Row { found: |f| (f.packaged, f.cached) = (None, None), ..ROW("then nothing", Err(Refusal::NoSource)) },
        // A tree, and a tool missing.
        Row { found: |f| f.compiler = false, ..ROW("no compiler", Err(Refusal::NoCompiler)) },
        Row { found: |f| f.cmake = false, ..ROW("no cmake", Err(Refusal::NoCmake)) },
        Row { found: |f| f.generator = false, ..ROW("neither ninja nor make", Err(Refusal::NoGenerator)) },
        // The other columns.
        Row { triple: MAC, ..ROW("archives on a Mac", packaged()) },
        Row { variant: Variant::Vulkan, ..ROW("vulkan", packaged()) },
        Row {
            variant: Variant::Vulkan,
            found: |f| f.lacks = vec![Need::Program("glslc")],
            ..ROW(
                "vulkan, and no compiler of shaders",
                Err(Refusal::Needs(Variant::Vulkan, vec![Need::Program("glslc")])),
            )
        },
        Row {
            variant: Variant::Vulkan,
            found: |f| (f.lacks, f.packaged, f.cached) = (vec![Need::Library("vulkan")], None, None),
            ..ROW(
                "what is missing is said before a source is fetched",
                Err(Refusal::Needs(Variant::Vulkan, vec![Need::Library("vulkan")])),
            )
        },
        Row {
            variant: Variant::Vulkan,
            found: |f| (f.lacks, f.built) = (vec![Need::Program("glslc")], true),
            ..ROW("vulkan, built already", Ok(Source::Built))
        },
        Row { variant: Variant::Cuda, ..ROW("cuda", packaged()) },
        Row { variant: Variant::Metal, triple: MAC, ..ROW("metal", packaged()) },
    ];
    for row in rows {
        let mut found = everything();
        (row.found)(&mut found);
        let wanted = Wanted { link: row.link, variant: row.variant };
        let got = choose(wanted, &Env::of(row.env.iter().copied()), &Target::new(row.triple, LINUX), &found);
        assert_eq!(got, row.want, "{}", row.what);
    }
}

#[test]
fn a_variant_the_target_cannot_have_is_refused_with_the_reason() {
    for (variant, triple, good) in [
        (Variant::Cpu, LINUX, true),
        (Variant::Cpu, MAC, true),
        (Variant::Cpu, WINDOWS, true),
        (Variant::Vulkan, LINUX, true),
        (Variant::Vulkan, WINDOWS, true),
        (Variant::Vulkan, MAC, false),
        (Variant::Cuda, LINUX, true),
        (Variant::Cuda, MAC, false),
        (Variant::Metal, MAC, true),
        (Variant::Metal, LINUX, false),
        (Variant::Metal, WINDOWS, false),
    ] {
        let target = Target::new(triple, LINUX);
        assert_eq!(variant.check(&target).is_ok(), good, "{variant} on {triple}");
        let wanted = Wanted { link: true, variant };
        if let Err(refusal) = variant.check(&target) {
            assert_eq!(choose(wanted, &Env::default(), &target, &everything()), Err(refusal.clone()));
            assert!(refusal.to_string().contains(variant.name()), "{refusal}");
        }
    }
}

#[test]
fn each_column_has_its_flags_its_sources_and_its_libraries() {
    let flag =
        |variant: Variant, name| variant.cmake_flags().iter().any(|(flag, value)| *flag == name && *value == "ON");
    for variant in Variant::ALL {
        assert_eq!(flag(variant, "GGML_VULKAN"), variant == Variant::Vulkan);
        assert_eq!(flag(variant, "GGML_CUDA"), variant == Variant::Cuda);
        assert_eq!(flag(variant, "GGML_METAL"), variant == Variant::Metal);
        assert_eq!(variant.parts().is_empty(), variant == Variant::Cpu);
    }
    let (linux, mac) = (Target::new(LINUX, LINUX), Target::new(MAC, MAC));
    let libraries = |names: &[&str]| names.iter().map(|name| Link::Library((*name).to_owned())).collect::<Vec<_>>();
    assert_eq!(Variant::Cpu.links(&linux, None), libraries(&["stdc++", "m", "pthread", "dl"]));
    assert_eq!(Variant::Cpu.links(&linux, Some("c++"))[0], Link::Library("c++".into()));
    assert!(Variant::Vulkan.links(&linux, None).contains(&Link::Library("vulkan".into())));
    assert!(Variant::Cuda.links(&linux, None).contains(&Link::Library("cublas".into())));
    assert!(Variant::Metal.links(&mac, None).contains(&Link::Framework("Metal")));
    assert_eq!(Variant::Metal.links(&mac, None)[0], Link::Library("c++".into()));
}

#[test]
fn what_a_variant_needs_is_said_with_where_it_comes_from() {
    for variant in Variant::ALL.into_iter().filter(|variant| !variant.needs().is_empty()) {
        let refusal = Refusal::Needs(variant, variant.needs().to_vec()).to_string();
        assert!(refusal.contains(variant.name()), "{refusal}");
        assert!(variant.needs().iter().all(|need| refusal.contains(&need.to_string())), "{refusal}");
        assert!(variant.needs_help().contains("install"), "{}", variant.needs_help());
    }
}

#[test]
fn the_environment_names_a_variant_or_is_told_which_there_are() {
    assert_eq!(Variant::from_env(&Env::default()).unwrap(), Variant::Cpu);
    for variant in Variant::ALL {
        assert_eq!(Variant::from_env(&Env::of([(env::LLAMA_VARIANT, variant.name())])).unwrap(), variant);
    }
    let error = Variant::from_env(&Env::of([(env::LLAMA_VARIANT, "opencl")])).unwrap_err().to_string();
    assert!(error.contains("opencl") && error.contains("vulkan"), "{error}");
}

#[test]
fn one_object_on_linux_archives_on_a_mac_loading_elsewhere() {
    assert_eq!(Target::new(LINUX, LINUX).form(), Some(Form::OneObject));
    assert_eq!(Target::new("aarch64-unknown-linux-musl", LINUX).form(), Some(Form::OneObject));
    assert_eq!(Target::new(MAC, LINUX).form(), Some(Form::Archives));
    assert_eq!(Target::new(WINDOWS, LINUX).form(), None);
}
