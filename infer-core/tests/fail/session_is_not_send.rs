use infer_core::Session;

fn sent(session: Box<dyn Session>) {
    std::thread::spawn(move || session.usage());
}

fn main() {}
