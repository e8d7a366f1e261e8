// A graph is run by one thread at a time: it is not `Sync`.
use infer_onnx::Graph;

fn shared(graph: &Graph) {
    std::thread::scope(|scope| {
        scope.spawn(|| graph.inputs());
    });
}

fn main() {}
