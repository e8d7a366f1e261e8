use minijinja::{
    Value,
    value::{Enumerator, Object},
};
use std::sync::Arc;

/// A map for the engine that keeps its few fields in the order they were given.
#[derive(Debug)]
pub(super) struct Record(Vec<(String, Value)>);

impl Record {
    pub(super) fn value(fields: Vec<(String, Value)>) -> Value {
        Value::from_object(Self(fields))
    }
}

impl Object for Record {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(name, _)| Value::from(&**name)).collect())
    }
}
