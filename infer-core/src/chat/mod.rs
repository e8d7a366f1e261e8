//! Conversations as prompts: the chat template that comes with a model, rendered.
//!
//! A model that was tuned for conversations expects them in a form of its own, and its file says which, as a [Jinja]
//! template. [`Template`] renders it as the field's reference implementation does: the same globals (`messages`,
//! `tools`, `add_generation_prompt`, `bos_token`, `raise_exception`, `strftime_now`, …), the same treatment of blank
//! lines, Python's methods of strings, JSON as Python writes it.
//!
//! ```
//! use infer_core::chat::{Message, RenderOptions, Template};
//!
//! let template = Template::new(
//!     "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}\n{% endfor %}\
//!      {% if add_generation_prompt %}<|assistant|>{% endif %}",
//! )?;
//! let messages = [Message::system("Be brief."), Message::user("Hello!")];
//! let prompt = template.render(&messages, &RenderOptions::new())?;
//! assert_eq!(prompt, "<|system|>Be brief.\n<|user|>Hello!\n<|assistant|>");
//! # Ok::<(), infer_core::Error>(())
//! ```
//!
//! The prompt has its control tokens written out, so it is encoded with [`Special::PARSE`](crate::Special::PARSE). That
//! also reads control tokens which a message's text spells; what to do about it is the caller's choice.
//!
//! # A template comes from a file
//! It is a program by somebody else, and is run like one: it reaches no file, no network and no clock but the one it is
//! given, and its work, its memory, its output, its size and its nesting are bounded, in proportion to the conversation.
//! Whatever goes wrong is an [`Error`](crate::Error) of kind [`Template`](crate::ErrorKind::Template) that names the
//! template's line.
//!
//! [Jinja]: https://jinja.palletsprojects.com

mod call;
mod candidate;
mod clock;
mod families;
mod forced;
mod format;
mod guard;
mod json;
mod message;
mod methods;
mod options;
mod output;
mod scanner;
mod template;
mod tools;
mod values;

pub use call::{Fields, ToolCall, ToolChoice};
pub use format::{AnswerFormat, Markers, ToolBody, ToolFormat};
pub use message::{Message, Role};
pub use options::RenderOptions;
pub use output::{AnswerParts, OutputParser};
pub use template::Template;
pub use tools::Tools;
