//! What is compared before anybody calls through a table.

use std::ffi::CStr;

use super::bindings::{
    INFER_MLX_DOOR_VERSION, infer_mlx_array_info, infer_mlx_device, infer_mlx_live, infer_mlx_memory, infer_mlx_table,
};
use super::{VERSION, calls};
use crate::Refusal;
use crate::door::{Table, size_u32, text};

// SAFETY: `mlx_door.h` has every version begin with the two ("this prefix never changes its shape"), and has strings and table live as long as
// the process, filled once.
unsafe impl Table for infer_mlx_table {
    const VERSION: u32 = INFER_MLX_DOOR_VERSION;

    fn wanted(variant: Option<&str>) -> String {
        let variant = variant.map(|variant| format!(", variant {variant}")).unwrap_or_default();
        format!("MLX {VERSION}, door version {INFER_MLX_DOOR_VERSION}{variant}")
    }

    fn release(&self) -> Result<(), Refusal> {
        // What it was compiled against; and what it found when it was loaded, which is another library where the process had one of that name.
        for pointer in [self.mlx_pinned, self.mlx_version] {
            // SAFETY: a string of the table, by the contract of the trait.
            let found = unsafe { text(pointer) }.to_string_lossy();
            if found != VERSION {
                return Err(Refusal::Release { wanted: Self::wanted(None), found: found.into_owned() });
            }
        }
        Ok(())
    }

    fn variant(&self) -> &'static CStr {
        // SAFETY: a string of the table, by the contract of the trait.
        unsafe { text(self.variant) }
    }

    fn struct_sizes(&self) -> impl IntoIterator<Item = (&'static str, u32, u32)> {
        [
            ("infer_mlx_device", size_u32::<infer_mlx_device>(), self.sizeof_device),
            ("infer_mlx_array_info", size_u32::<infer_mlx_array_info>(), self.sizeof_array_info),
            ("infer_mlx_memory", size_u32::<infer_mlx_memory>(), self.sizeof_memory),
            ("infer_mlx_live", size_u32::<infer_mlx_live>(), self.sizeof_live),
        ]
    }

    fn first_missing(&self) -> Option<&'static str> {
        calls::first_missing(self)
    }
}
