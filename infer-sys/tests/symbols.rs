//! Nothing of the linked runtime can be mixed up with another copy of it in the same program.
//!
//! This program has such a copy: functions of the same names as ggml's and llama.cpp's, global as a careless library would have them.
//! Were ours global too, it would not link, or one of the two would be called for the other.
#![cfg(target_os = "linux")]

mod kit;

use std::path::Path;
use std::process::Command;

use infer_sys::llama::Api;
use kit::{Model, gguf};

/// What the other ggml answers.
const MARK: i64 = 0x5EC0_4D66;

/// The other ggml: names that ours has, and calls inside itself.
mod second_ggml {
    use super::MARK;

    macro_rules! functions {
        ($($name:ident)*) => {
            $(
                // SAFETY: this program has no other global symbol of the name, which is what the tests below show.
                #[unsafe(no_mangle)]
                pub(crate) extern "C" fn $name() -> i64 {
                    MARK
                }
            )*

            pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
            pub(crate) const FUNCTIONS: &[extern "C" fn() -> i64] = &[$($name),*];
        };
    }

    functions! {
        ggml_init ggml_free ggml_time_us ggml_time_init ggml_abort ggml_log_set ggml_new_tensor_2d ggml_mul_mat ggml_nbytes
        ggml_backend_cpu_init ggml_backend_dev_count ggml_graph_compute ggml_threadpool_new
        gguf_init_from_file gguf_get_n_kv
        llama_version llama_backend_init llama_model_default_params llama_model_load_from_file llama_decode llama_tokenize
        llama_model_free
    }
}

fn nm(arguments: &[&str], file: &Path) -> Vec<String> {
    let output = Command::new("nm").args(arguments).arg(file).output().expect("this test needs nm, of binutils");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The names among nm's lines that belong to the runtime. Rust's own have a crate's name in them.
fn of_the_runtime(lines: &[String]) -> Vec<&str> {
    let names = lines.iter().filter_map(|line| line.split_whitespace().last());
    let mut names: Vec<&str> = names
        .filter(|name| ["ggml", "gguf", "llama"].iter().any(|word| name.contains(word)))
        .filter(|name| !["build_support", "infer_sys", "symbols"].iter().any(|word| name.contains(word)))
        .collect();
    names.sort_unstable();
    names
}

/// Where the library that is linked lies, and the one to be loaded beside it.
fn folder() -> &'static Path {
    let Some(folder) = option_env!("INFER_LLAMA_FOLDER") else {
        panic!("the build script does not say where the library it links lies");
    };
    Path::new(folder)
}

#[test]
fn the_loadable_library_exports_the_door_alone() {
    let exported = nm(&["--dynamic", "--defined-only"], &folder().join("libinfer_llama.so"));
    let names: Vec<&str> = exported.iter().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(names, ["infer_llama_api"]);
}

#[test]
fn its_only_global_symbol_is_the_door() {
    let program = std::env::current_exe().unwrap();
    Api::linked().expect("the door is in this program");
    let global = nm(&["--defined-only", "--extern-only"], &program);
    let mut expected = second_ggml::NAMES.to_vec();
    expected.push("infer_llama_api");
    expected.sort_unstable();
    assert_eq!(of_the_runtime(&global), expected);

    // That the runtime is in there at all: its own functions of these names, local, beside the other copy's.
    let all = nm(&["--defined-only"], &program);
    for name in ["ggml_init", "gguf_init_from_file", "llama_decode"] {
        let found: Vec<&str> =
            all.iter().map(String::as_str).filter(|line| line.ends_with(&format!(" {name}"))).collect();
        assert_eq!(found.len(), 2, "{name}: {found:?}");
        assert!(found.iter().any(|line| line.contains(" t ")), "{name}: {found:?}");
    }

    let exported = nm(&["--dynamic", "--defined-only"], &program);
    assert!(
        of_the_runtime(&exported).iter().all(|name| second_ggml::NAMES.contains(name) || *name == "infer_llama_api")
    );
}

#[test]
fn a_second_ggml_stays_unmixed() {
    let api = kit::quiet(Api::linked().unwrap());
    assert!(second_ggml::FUNCTIONS.iter().all(|function| function() == MARK));

    let folder = tempfile::tempdir().unwrap();
    let model = Model::load(api, &gguf::tiny(folder.path()), |_| {}).unwrap();
    assert_eq!(model.tokenize("abc").unwrap().len(), 4, "three letters and the space before them");
    let mut context = model.context(|_| {}).unwrap();
    assert_eq!(context.decode(0, 0, &[3, 4, 5]), Ok(0));
    assert!(context.logits(2).unwrap().iter().all(|logit| logit.is_finite()));
    // SAFETY: no precondition.
    let time = unsafe { api.time_us() };
    assert_ne!(time, MARK);
    assert_ne!(api.llama_version(), "");

    assert!(second_ggml::FUNCTIONS.iter().all(|function| function() == MARK));
}

/// Functions that C++ compiles into every object that uses them are merged by the linker, the first one winning. Ours are local names, which
/// cannot be merged with anything: had the object kept its groups, this would not link.
#[test]
fn it_links_beside_other_cpp_code() {
    let folder = folder();
    let temporary = tempfile::tempdir().unwrap();
    let (source, program) = (temporary.path().join("other.cpp"), temporary.path().join("other"));
    std::fs::write(&source, OTHER_CPP).unwrap();
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let output = Command::new(compiler)
        .args(["-std=c++17", "-O0", "-o"])
        .args([&program, &source])
        .arg(folder.join("libinfer_llama.a"))
        .args(["-lpthread", "-ldl", "-lm"])
        .output()
        .expect("this test needs a C++ compiler: set CXX, or have c++ on the path");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(test_kit::child::output(&mut Command::new(program)).status.success());
}

const OTHER_CPP: &str = r#"
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

extern "C" const unsigned * infer_llama_api(unsigned version);

int main() {
    std::vector<std::string> strings;
    std::vector<int> numbers;
    std::map<std::string, int> map;
    std::unordered_map<std::string, int> hashed;
    for (int i = 0; i < 100; ++i) {
        strings.push_back(std::to_string(i));
        numbers.push_back(i);
        map[strings.back()] = hashed[strings.back()] = i;
    }
    try {
        hashed.at("none");
        return 1;
    } catch (const std::out_of_range &) {
    }
    const unsigned * table = infer_llama_api(0);
    return table != nullptr && table[1] != 0 && map.size() == 100 ? 0 : 2;
}
"#;
