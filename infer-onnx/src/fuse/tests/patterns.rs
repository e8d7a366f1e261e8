//! Each pattern in each form, and what looks like one and is none.

use super::text::{fused, is_read, lines, model_of};

/// The steps become these.
#[track_caller]
fn becomes(opset: i64, steps: &str, expected: &str) {
    let model = model_of(steps, opset);
    assert!(is_read(&model), "{steps}");
    let new = fused(&model).unwrap_or_else(|| panic!("nothing is found in {steps}"));
    assert_eq!(new, lines(expected).collect::<Vec<_>>(), "{steps}");
}

#[track_caller]
fn stays(opset: i64, steps: &str) {
    let model = model_of(steps, opset);
    assert!(is_read(&model), "{steps}");
    assert_eq!(fused(&model), None, "{steps}");
}

/// The same steps with others in the places of some; each must be there.
#[track_caller]
fn with(steps: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(steps.to_owned(), |steps, (from, to)| {
        assert!(steps.contains(from), "{from} is not in {steps}");
        steps.replace(from, to)
    })
}

const SPELT: &str = "
    m = MatMul(x, matrix)
    u = Add(m, bias)
    t = Div(u, root)
    e = Erf(t)
    a = Add(e, one)
    p = Mul(u, a)
    y = Mul(p, half)";
const GELU: &str = "m = MatMul(x, matrix)\n y = infer.BiasGelu(m, bias)";

#[test]
fn gelus_in_every_form() {
    let forms: &[&[(&str, &str)]] = &[
        &[],
        &[("Add(m, bias)", "Add(bias, m)"), ("Add(e, one)", "Add(one, e)"), ("Mul(u, a)", "Mul(a, u)")],
        &[("Div(u, root)", "Mul(u, inverse)")],
        &[("Div(u, root)", "Mul(inverse, u)"), ("Mul(p, half)", "Mul(half, p)")],
        &[("Mul(p, half)", "Div(p, two)")],
        &[("Mul(u, a)", "Mul(u, half)"), ("Mul(p, half)", "Mul(p, a)")],
        &[("Mul(u, a)", "Mul(half, u)"), ("Mul(p, half)", "Mul(a, p)")],
        &[("Mul(u, a)", "Mul(a, half)"), ("Mul(p, half)", "Mul(u, p)")],
        &[("Mul(u, a)", "Mul(a, half)"), ("Mul(p, half)", "Mul(p, u)")],
        &[("Add(e, one)", "Add(e, one_as_floats)")],
    ];
    for form in forms {
        becomes(11, &with(SPELT, form), GELU);
    }
    let constant = [("t = Div(u, root)", "c = Constant() value=1.4142135\n t = Div(u, c)")];
    becomes(11, &with(SPELT, &constant), GELU);
    let gemm = "m = Gemm(x, to_six, bias) transB=1";
    becomes(
        11,
        &with(SPELT, &[("m = MatMul(x, matrix)", gemm)]),
        &with(GELU, &[("MatMul(x, matrix)", "Gemm(x, to_six, bias)")]),
    );

    let sum = "m = MatMul(x, matrix)\n u = Add(m, bias)\n";
    for gelu in ["Gelu(u)", "Gelu(u) approximate=none", "com.microsoft.Gelu(u)"] {
        becomes(20, &format!("{sum} y = {gelu}"), GELU);
    }
    becomes(17, "m = MatMul(x, matrix)\n y = com.microsoft.BiasGelu(m, bias)", GELU);
}

#[test]
fn what_is_no_gelu_of_a_biased_product() {
    let near: &[&[(&str, &str)]] = &[
        &[("Div(u, root)", "Div(u, near_root)")],
        &[("Div(u, root)", "Mul(u, root)")],
        &[("Div(u, root)", "Div(root, u)")],
        &[("Div(u, root)", "Div(m, root)")],
        &[("Mul(p, half)", "Mul(p, third)")],
        &[("Mul(p, half)", "Div(half, p)")],
        &[("Add(e, one)", "Add(e, half)")],
        &[("Add(e, one)", "Add(e, one_of_two_axes)")],
        &[("Mul(u, a)", "Mul(m, a)")],
        &[("Mul(u, a)", "Mul(a, a)")],
        &[("= Erf(t)", "= Tanh(t)")],
        &[("Add(m, bias)", "Add(m, six)")],
        &[("Add(m, bias)", "Add(m, flat)")],
        &[("Add(m, bias)", "Add(m, half_bias)")],
        &[("Add(m, bias)", "Add(m, one_wide)"), ("x, matrix", "x, to_one")],
        &[("x, matrix", "x, to_one")],
        &[("x, matrix", "x, to_six")],
        &[("x, matrix", "matrix, x")],
        &[("x, matrix", "x, half_matrix")],
        &[("MatMul(x, matrix)", "Relu(x)")],
        &[("MatMul(x, matrix)", "Gemm(x, to_six)")],
        &[("MatMul(x, matrix)", "Gemm(x, matrix) transB=0.5")],
        // Something is needed elsewhere: the sum, what is inside, what the graph gives.
        &[("y = Mul(p, half)", "y = Mul(p, half)\n z = Relu(u)")],
        &[("y = Mul(p, half)", "y = Mul(p, half)\n z = Relu(t)")],
        &[("y = Mul(p, half)", "y = Mul(p, half)\n z = Relu(a)")],
        &[("y = Mul(p, half)", "z = Mul(y, half)"), ("p = Mul", "y = Mul")],
        &[("u = Add", "y = Add"), ("Div(u", "Div(y"), ("Mul(u", "Mul(y"), ("y = Mul(p", "z = Mul(p")],
    ];
    for form in near {
        stays(11, &with(SPELT, form));
    }
    let sum = "m = MatMul(x, matrix)\n u = Add(m, bias)\n";
    for gelu in
        ["Gelu(u) approximate=tanh", "com.microsoft.FastGelu(u)", "com.microsoft.QuickGelu(u)", "Gelu(u) approximate=1"]
    {
        stays(20, &format!("{sum} y = {gelu}"));
    }
    stays(17, "m = MatMul(x, matrix)\n y = com.microsoft.BiasGelu(m, six)");
    stays(17, "m = MatMul(x, matrix)\n y = com.microsoft.BiasGelu(m, bias)\n z = Relu(m)");
}

const NORM: &str = "
    m = MatMul(x, matrix)
    s = Add(m, bias)
    u = Add(s, x)
    y = LayerNormalization(u, scale, shift) axis=-1 epsilon=0.5";
const STEPS: &str = "
    m = MatMul(x, matrix)
    s = Add(m, bias)
    u = Add(s, x)
    mean = ReduceMean(u) axes=[-1] keepdims=1
    d = Sub(u, mean)
    q = Pow(d, two)
    var = ReduceMean(q) axes=[-1]
    e = Add(var, tiny)
    r = Sqrt(e)
    n = Div(d, r)
    k = Mul(n, scale)
    y = Add(k, shift)";
/// But for its attribute.
const NORMALIZED: &str = "m = MatMul(x, matrix)\n y = infer.AddNormalization(m, bias, x, scale, shift)";

#[test]
fn normalisations_in_every_form() {
    let whole: &[&[(&str, &str)]] = &[
        &[],
        &[("axis=-1", "stash_type=1")],
        &[("Add(m, bias)", "Add(bias, m)"), ("Add(s, x)", "Add(x, s)")],
        &[("y = Layer", "y, z, w = Layer")],
    ];
    for form in whole {
        becomes(17, &with(NORM, form), &format!("{NORMALIZED} epsilon=0.5"));
    }
    becomes(17, &with(NORM, &[(" axis=-1 epsilon=0.5", "")]), &format!("{NORMALIZED} epsilon=1e-5"));
    let steps: &[&[(&str, &str)]] = &[
        &[],
        &[("Add(s, x)", "Add(x, s)"), ("Add(var, tiny)", "Add(tiny, var)")],
        &[("Mul(n, scale)", "Mul(scale, n)"), ("Add(k, shift)", "Add(shift, k)")],
        &[("Pow(d, two)", "Mul(d, d)")],
        &[("q = Pow(d, two)", "c = Sub(u, mean)\n q = Pow(c, two)")],
        &[("q = Pow(d, two)", "c = Sub(u, mean)\n q = Mul(c, c)")],
    ];
    for form in steps {
        becomes(11, &with(STEPS, form), &format!("{NORMALIZED} epsilon=1e-12"));
    }
    let inputs = [
        ("ReduceMean(u) axes=[-1]", "ReduceMean(u, last)"),
        ("ReduceMean(q) axes=[-1]", "ReduceMean(q, last_as_integers)"),
    ];
    becomes(18, &with(STEPS, &inputs), &format!("{NORMALIZED} epsilon=1e-12"));
}

#[test]
fn what_is_no_normalisation_of_a_biased_product_and_a_residual() {
    let whole: &[&[(&str, &str)]] = &[
        &[("axis=-1", "axis=1")],
        &[("axis=-1", "stash_type=16")],
        &[("epsilon=0.5", "epsilon=1")],
        &[("scale, shift", "scale, six")],
        &[("scale, shift", "six, six")],
        &[("scale, shift", "scale, one_wide")],
        &[("(u, scale, shift)", "(u, scale)")],
        &[("y = Layer", "y, z = Layer"), ("epsilon=0.5", "epsilon=0.5\n w = Relu(z)")],
        &[("Add(m, bias)", "Add(m, six)")],
        &[("Add(m, bias)", "Add(m, x)")],
        &[("Add(m, bias)", "Mul(m, bias)")],
        &[("Add(s, x)", "Add(s, s)")],
        &[("Add(s, x)", "Mul(s, x)")],
        &[("MatMul(x, matrix)", "Relu(x)")],
        &[("y = Layer", "z = Relu(s)\n y = Layer")],
        &[("y = Layer", "z = Relu(u)\n y = Layer")],
    ];
    for form in whole {
        stays(17, &with(NORM, form));
    }
    let steps: &[&[(&str, &str)]] = &[
        &[("ReduceMean(u) axes=[-1]", "ReduceMean(u) axes=[1]")],
        &[("ReduceMean(q) axes=[-1]", "ReduceMean(q) axes=[1]")],
        &[("ReduceMean(q) axes=[-1]", "ReduceMean(q) axes=[-1,-2]")],
        &[("ReduceMean(q) axes=[-1]", "ReduceMean(q)")],
        &[("ReduceMean(q) axes=[-1]", "ReduceMean(q, last)")],
        &[("keepdims=1", "keepdims=0")],
        &[("Pow(d, two)", "Pow(d, three)")],
        &[("Pow(d, two)", "Mul(d, u)")],
        &[("Sub(u, mean)", "Sub(mean, u)")],
        &[("Sub(u, mean)", "Sub(s, mean)")],
        &[("Div(d, r)", "Div(r, d)")],
        &[("Div(d, r)", "Div(u, r)")],
        &[("Add(var, tiny)", "Add(var, bias)")],
        &[("q = Pow(d, two)", "c = Sub(x, mean)\n q = Pow(c, two)")],
        &[("Mul(n, scale)", "Mul(n, six)")],
        &[("Add(k, shift)", "Add(k, one_wide)")],
        &[("y = Add", "z = Relu(mean)\n y = Add")],
        &[("y = Add", "z = Relu(d)\n y = Add")],
        &[("y = Add", "z = Relu(n)\n y = Add")],
    ];
    for form in steps {
        stays(11, &with(STEPS, form));
    }
    stays(18, STEPS);
    let other =
        [("ReduceMean(u) axes=[-1]", "ReduceMean(u, last)"), ("ReduceMean(q) axes=[-1]", "ReduceMean(q, middle)")];
    stays(18, &with(STEPS, &other));
}

const MASKED: &str = "
    k = MatMul(x, matrix)
    m = MatMul(k, x)
    d = Div(m, two)
    s = Add(d, x)
    y = Softmax(s) axis=-1";
const SOFTMAX: &str = "k = MatMul(x, matrix)\n m = MatMul(k, x)\n d = Div(m, two)\n y = infer.MaskedSoftmax(d, x)";

#[test]
fn masked_softmaxes() {
    becomes(13, MASKED, SOFTMAX);
    becomes(11, MASKED, SOFTMAX);
    becomes(13, &with(MASKED, &[(" axis=-1", "")]), SOFTMAX);
    becomes(13, &with(MASKED, &[("Add(d, x)", "Add(x, d)")]), SOFTMAX);
    becomes(13, &with(MASKED, &[("Div(m, two)", "Mul(two, m)")]), &with(SOFTMAX, &[("Div(m, two)", "Mul(two, m)")]));
    let plain = [("d = Div(m, two)\n", ""), ("Add(d, x)", "Add(m, x)")];
    becomes(13, &with(MASKED, &plain), "k = MatMul(x, matrix)\n m = MatMul(k, x)\n y = infer.MaskedSoftmax(m, x)");
    let far = [("k = MatMul(x, matrix)", "h = Gather(matrix, x)\n t = Transpose(h)\n k = Reshape(t, x)")];
    becomes(13, &with(MASKED, &far), &with(SOFTMAX, &far));
}

#[test]
fn what_is_no_softmax_of_a_masked_product() {
    let near: &[&[(&str, &str)]] = &[
        &[("axis=-1", "axis=1")],
        &[("axis=-1", "axis=3")],
        &[("= Softmax", "= LogSoftmax")],
        &[("Add(d, x)", "Mul(d, x)")],
        &[("m = MatMul(k, x)", "m = Relu(k)")],
        &[("Div(m, two)", "Relu(m)")],
        &[("y = Soft", "z = Relu(s)\n y = Soft")],
        // Of whatever type `x` is.
        &[("x, matrix", "x, x"), ("Div(m, two)", "Div(m, x)")],
        &[("x, matrix", "x, half_matrix"), ("Div(m, two)", "Div(m, x)")],
    ];
    for form in near {
        stays(13, &with(MASKED, form));
    }
    stays(12, &with(MASKED, &[(" axis=-1", "")]));
    stays(10, MASKED);
}

const HEADS: &str = "
    m = MatMul(x, matrix)
    s = Add(m, bias)
    r = Reshape(s, heads)
    y = Transpose(r) perm=0,2,1,3";

#[test]
fn heads_of_a_biased_product() {
    let sum = "m = MatMul(x, matrix)\n y = infer.BiasHeads(m, bias)";
    let expected = format!("{sum} heads=2 transposed=0");
    becomes(17, HEADS, &expected);
    becomes(17, &with(HEADS, &[("Add(m, bias)", "Add(bias, m)")]), &expected);
    let other = [("0,2,1,3", "0,2,3,1"), ("s, heads)", "s, heads_of_any) allowzero=0")];
    becomes(17, &with(HEADS, &other), &format!("{sum} heads=2 transposed=1"));
    let six = [("matrix", "to_six"), ("bias", "six"), ("heads", "heads_of_six")];
    becomes(17, &with(HEADS, &six), "m = MatMul(x, to_six)\n y = infer.BiasHeads(m, six) heads=2 transposed=0");
}

#[test]
fn what_are_no_heads_of_a_biased_product() {
    let near: &[&[(&str, &str)]] = &[
        &[("0,2,1,3", "0,1,2,3")],
        &[("0,2,1,3", "0,2,1")],
        &[(" perm=0,2,1,3", "")],
        &[("s, heads", "s, heads_of_six")],
        &[("s, heads", "s, heads_of_three_axes")],
        &[("s, heads", "s, heads_of_a_batch")],
        &[("s, heads", "s, x")],
        &[("s, heads)", "s, heads) allowzero=1")],
        &[("Add(m, bias)", "Add(m, six)")],
        &[("Add(m, bias)", "Add(m, half_bias)")],
        &[("MatMul(x, matrix)", "Relu(x)")],
        &[("y = Trans", "z = Relu(s)\n y = Trans")],
        &[("y = Trans", "z = Relu(r)\n y = Trans")],
        &[("y = Trans", "z = Relu(m)\n y = Trans")],
    ];
    for form in near {
        stays(17, &with(HEADS, form));
    }
}

/// What stands between is there before what needs it, and an operator reads what another one gives.
#[test]
fn patterns_follow_each_other() {
    let steps = "
        m = MatMul(x, matrix)
        s = Add(m, bias)
        k = Relu(x)
        u = Add(s, k)
        n = LayerNormalization(u, scale, shift)
        o = MatMul(n, matrix)
        v = Add(o, bias)
        g = Gelu(v)
        p = MatMul(g, matrix)
        w = Add(p, shift)
        q = Add(n, w)
        y = LayerNormalization(q, scale, shift)";
    let expected = "
        m = MatMul(x, matrix)
        k = Relu(x)
        n = infer.AddNormalization(m, bias, k, scale, shift) epsilon=1e-5
        o = MatMul(n, matrix)
        g = infer.BiasGelu(o, bias)
        p = MatMul(g, matrix)
        y = infer.AddNormalization(p, shift, n, scale, shift) epsilon=1e-5";
    becomes(20, steps, expected);
}
