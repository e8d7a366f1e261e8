/// A number type that logits come in: `f32`, and with feature `half` its `f16` and `bf16`. Sealed.
pub trait Logit: sealed::Row {}

impl Logit for f32 {}

#[cfg(feature = "half")]
impl Logit for half::f16 {}

#[cfg(feature = "half")]
impl Logit for half::bf16 {}

mod sealed {
    pub trait Row: Copy {
        /// The row as `f32`: as it is where it can be, else in `wide`.
        fn wide<'r>(row: &'r [Self], wide: &'r mut Vec<f32>) -> &'r [f32];

        /// Adds the row to `out` as `f32`.
        fn append(row: &[Self], out: &mut Vec<f32>);
    }

    impl Row for f32 {
        fn wide<'r>(row: &'r [Self], _: &'r mut Vec<f32>) -> &'r [f32] {
            row
        }

        fn append(row: &[Self], out: &mut Vec<f32>) {
            out.extend_from_slice(row);
        }
    }

    #[cfg(feature = "half")]
    mod halves {
        use half::slice::HalfFloatSliceExt;

        impl super::Row for half::f16 {
            fn wide<'r>(row: &'r [Self], wide: &'r mut Vec<f32>) -> &'r [f32] {
                wide.resize(row.len(), 0.0);
                row.convert_to_f32_slice(wide);
                wide
            }

            fn append(row: &[Self], out: &mut Vec<f32>) {
                let from = out.len();
                out.resize(from + row.len(), 0.0);
                row.convert_to_f32_slice(&mut out[from..]);
            }
        }

        impl super::Row for half::bf16 {
            fn wide<'r>(row: &'r [Self], wide: &'r mut Vec<f32>) -> &'r [f32] {
                wide.resize(row.len(), 0.0);
                row.convert_to_f32_slice(wide);
                wide
            }

            fn append(row: &[Self], out: &mut Vec<f32>) {
                let from = out.len();
                out.resize(from + row.len(), 0.0);
                row.convert_to_f32_slice(&mut out[from..]);
            }
        }
    }
}
