//! The attributes of a node.

use crate::header::{Content, Parts};
use infer_core::Result;
use std::{collections::HashMap, path::Path};

/// By name.
pub(super) struct Attributes<'m>(HashMap<&'m [u8], Attribute<'m>>);

#[derive(Default)]
pub(super) struct Attribute<'m> {
    float: Option<f32>,
    int: Option<i64>,
    text: Option<&'m [u8]>,
    tensor: Option<&'m [u8]>,
    ints: Vec<i64>,
}

impl<'m> Attributes<'m> {
    /// Those of a node. `None` if one is damaged, or there twice.
    pub(super) fn read(node: &'m [u8], name: &Path) -> Option<Self> {
        let mut all = HashMap::new();
        for part in Parts::new(node, name).ok()? {
            let part = part.ok()?;
            if let (5, Content::Bytes(message)) = (part.number, part.content) {
                let (key, attribute) = Attribute::read(message, name).ok()?;
                if all.insert(key, attribute).is_some() {
                    return None;
                }
            }
        }
        Some(Self(all))
    }

    /// A whole number. `None` if it is something else.
    pub(super) fn int(&self, name: &str, default: i64) -> Option<i64> {
        self.0.get(name.as_bytes()).map_or(Some(default), |attribute| attribute.int)
    }

    pub(super) fn float(&self, name: &str, default: f32) -> Option<f32> {
        self.0.get(name.as_bytes()).map_or(Some(default), |attribute| attribute.float)
    }

    pub(super) fn text(&self, name: &str, default: &'static str) -> Option<&'m [u8]> {
        self.0.get(name.as_bytes()).map_or(Some(default.as_bytes()), |attribute| attribute.text)
    }

    /// Whole numbers: `None` if there are none.
    pub(super) fn ints(&self, name: &str) -> Option<&[i64]> {
        self.0.get(name.as_bytes()).map(|attribute| attribute.ints.as_slice()).filter(|ints| !ints.is_empty())
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&'m [u8]> {
        self.0.get(name.as_bytes())?.tensor
    }
}

impl<'m> Attribute<'m> {
    fn read(message: &'m [u8], name: &Path) -> Result<(&'m [u8], Self)> {
        let (mut key, mut attribute, mut tensors) = (&[][..], Self::default(), 0);
        let mut parts = Parts::new(message, name)?;
        while let Some(part) = parts.next().transpose()? {
            match (part.number, part.content) {
                (1, Content::Bytes(text)) => key = text,
                (2, content) => attribute.float = content.float(),
                (3, Content::Varint(number)) => attribute.int = Some(number.cast_signed()),
                (4, Content::Bytes(text)) => attribute.text = Some(text),
                (5, Content::Bytes(tensor)) => {
                    // Several are merged into one; nobody writes that.
                    attribute.tensor = (tensors == 0).then_some(tensor);
                    tensors += 1;
                }
                (8, content) => parts.integers(content, |number| attribute.ints.push(number))?,
                _ => {}
            }
        }
        Ok((key, attribute))
    }
}
