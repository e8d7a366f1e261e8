use super::{
    call::Fields,
    format::{ToolBody, ToolFormat},
};

impl ToolFormat {
    /// The families known here. The first that a template [is of](Self::is_of) is its own.
    #[must_use]
    pub fn known() -> Vec<Self> {
        vec![
            Self::llama_named(),
            Self::hermes(),
            Self::llama3(),
            Self::mistral(),
            Self::mistral_named(),
            Self::mistral_named_ids(),
            Self::deepseek_r1(),
            Self::deepseek_v3(),
            Self::kimi_k2(),
            Self::command_r(),
            Self::granite3(),
            tagged_list("nemotron", "<TOOLCALL>", "</TOOLCALL>"),
            tagged_list("apriel", "<tool_calls>", "</tool_calls>"),
        ]
    }

    /// Hermes, Qwen 2.5 and 3, and the many that follow them: a JSON object in `<tool_call>` and `</tool_call>`.
    #[must_use]
    pub fn hermes() -> Self {
        Self::new("hermes", ToolBody::Object(Fields::new("name", "arguments")))
            .with_markers("<tool_call>\n", "\n</tool_call>")
            .with_separator("\n")
            // Qwen 3 Coder, GLM, MiniMax and Apriel use the same tag, or one like it, around something else.
            .with_clues(&["<tool_call>"], &["<parameter=", "<arg_key>", "<tool_calls>", "]<]minimax[>["])
    }

    /// Llama 3.1 to 3.3: the whole answer is a JSON object, perhaps after `<|python_tag|>`; several are separated by `;`.
    #[must_use]
    pub fn llama3() -> Self {
        Self::new("llama3", ToolBody::Object(Fields::new("name", "parameters")))
            .with_markers("<|python_tag|>", "")
            .with_bare(true)
            .with_separator("; ")
            .with_clues(&["\"parameters\": dictionary"], &[])
    }

    /// The other form of Llama 3.1, and Functionary: `<function=name>{…}</function>`.
    #[must_use]
    pub fn llama_named() -> Self {
        Self::new("llama-named", ToolBody::Named { id: None, arguments: ">".to_owned() })
            .with_markers("<function=", "</function>")
            .with_clues(&["<function="], &["<parameter="])
    }

    /// Mistral up to Nemo: `[TOOL_CALLS]` and a list of JSON objects with ids.
    #[must_use]
    pub fn mistral() -> Self {
        Self::new("mistral", ToolBody::List(Fields::new("name", "arguments").with_id("id")))
            .with_markers("[TOOL_CALLS]", "")
            .with_clues(&["[TOOL_CALLS]"], &["[ARGS]"])
    }

    /// Mistral from Devstral on: `[TOOL_CALLS]name[ARGS]{…}`.
    #[must_use]
    pub fn mistral_named() -> Self {
        Self::new("mistral-named", ToolBody::Named { id: None, arguments: "[ARGS]".to_owned() })
            .with_markers("[TOOL_CALLS]", "")
            .with_clues(&["[TOOL_CALLS]", "[ARGS]"], &["[CALL_ID]"])
    }

    /// Mistral Small 3.2: the same with an id, `[TOOL_CALLS]name[CALL_ID]id[ARGS]{…}`.
    #[must_use]
    pub fn mistral_named_ids() -> Self {
        let body = ToolBody::Named { id: Some("[CALL_ID]".to_owned()), arguments: "[ARGS]".to_owned() };
        Self::new("mistral-named-ids", body)
            .with_markers("[TOOL_CALLS]", "")
            .with_clues(&["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"], &[])
    }

    /// DeepSeek R1: the name, and the arguments as a Markdown block.
    #[must_use]
    pub fn deepseek_r1() -> Self {
        Self::new("deepseek-r1", ToolBody::Named { id: None, arguments: "\n```json\n".to_owned() })
            .with_markers("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```<｜tool▁call▁end｜>")
            .with_separator("\n")
            .with_section("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
            .with_clues(&["<｜tool▁calls▁begin｜>", "```json"], &[])
    }

    /// DeepSeek V3.1: the name and the arguments.
    #[must_use]
    pub fn deepseek_v3() -> Self {
        Self::new("deepseek-v3", ToolBody::Named { id: None, arguments: "<｜tool▁sep｜>".to_owned() })
            .with_markers("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>")
            .with_section("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
            .with_clues(&["<｜tool▁calls▁begin｜>"], &["```json"])
    }

    /// Kimi K2: `functions.name:0`, the number being the id, and the arguments.
    #[must_use]
    pub fn kimi_k2() -> Self {
        let body = ToolBody::Named { id: Some(":".to_owned()), arguments: "<|tool_call_argument_begin|>".to_owned() };
        Self::new("kimi-k2", body)
            .with_markers("<|tool_call_begin|>functions.", "<|tool_call_end|>")
            .with_section("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
            .with_id_pattern("[0-9]{1,3}")
            .with_clues(&["<|tool_calls_section_begin|>"], &[])
    }

    /// Command R7B and later: a list of JSON objects with fields of their own names.
    #[must_use]
    pub fn command_r() -> Self {
        let fields = Fields::new("tool_name", "parameters").with_id("tool_call_id");
        Self::new("command-r", ToolBody::List(fields))
            .with_markers("<|START_ACTION|>", "<|END_ACTION|>")
            .with_id_pattern("[0-9]{1,3}")
            .with_clues(&["<|START_ACTION|>"], &[])
    }

    /// Granite 3: `<|tool_call|>` and a list of JSON objects.
    #[must_use]
    pub fn granite3() -> Self {
        Self::new("granite3", ToolBody::List(Fields::new("name", "arguments")))
            .with_markers("<|tool_call|>", "")
            .with_clues(&["<|tool_call|>"], &["<|/tool_call|>"])
    }
}

/// A list of JSON objects between two tags.
fn tagged_list(name: &str, begin: &str, end: &str) -> ToolFormat {
    ToolFormat::new(name, ToolBody::List(Fields::new("name", "arguments")))
        .with_markers(begin, end)
        .with_clues(&[&format!("{begin}[")], &[])
}
