use super::*;
use serde_json::{Value, json};

fn config(fields: Value) -> Config {
    Config::of("config.json", fields)
}

fn each(rotation: Rotation) -> Vec<f32> {
    match rotation.wavelengths {
        Wavelengths::Each(each) => each,
        Wavelengths::Base(base) => panic!("by base {base}"),
    }
}

#[track_caller]
fn near(found: &[f32], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((f64::from(*found) / wanted - 1.0).abs() < 1e-6, "{found} is not {wanted}");
    }
}

/// With 8 planes of 10000^(i/8), 32 positions at first, and the bounds 8 and 32 positions for a turn.
#[test]
fn llama3_stretches_long_wavelengths_and_goes_over_smoothly() {
    let scaling = json!({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    });
    let config = config(json!({"rope_scaling": scaling}));
    let found = each(Rotation::read(&config, 16, Some(10_000.0)).unwrap());
    let plain: Vec<f64> = (0..8).map(|plane| 10_000_f64.powf(f64::from(plane) / 8.0)).collect();
    // A turn is 2π times as many positions: 6.3, 19.9, 62.8, ….
    let smooth = (32.0 / (TAU * plain[1]) - 1.0) / 3.0;
    let between = plain[1] / ((1.0 - smooth) / 8.0 + smooth);
    let mut wanted: Vec<f64> = plain.iter().map(|wavelength| wavelength * 8.0).collect();
    (wanted[0], wanted[1]) = (plain[0], between);
    near(&found, &wanted);
}

#[test]
fn longrope_has_a_factor_for_each_plane_and_longer_inputs() {
    let scaling = json!({"type": "longrope", "short_factor": [1.0, 1.0], "long_factor": [1.5, 4.0]});
    let fields = json!({
        "rope_scaling": scaling, "max_position_embeddings": 131_072, "original_max_position_embeddings": 4096,
    });
    let rotation = Rotation::read(&config(fields.clone()), 4, Some(10_000.0)).unwrap();
    // √(1 + ln 32 / ln 4096)
    assert!((rotation.input_scale.unwrap() - 1.190_238).abs() < 1e-6);
    near(&each(rotation), &[1.5, 400.0]);
    let mut one = fields.clone();
    one["original_max_position_embeddings"] = 1.into();
    let error = Rotation::read(&config(one), 4, Some(10_000.0)).err().expect("its logarithm is 0").to_string();
    assert!(error.contains("original_max_position_embeddings is 1"), "{error}");
    let mut short = fields;
    short["max_position_embeddings"] = 4096.into();
    assert_eq!(Rotation::read(&config(short), 4, Some(10_000.0)).unwrap().input_scale, None);
}

#[test]
fn a_base_is_found_where_files_have_it() {
    let base = |fields: Value, default: Option<f64>| match Rotation::read(&config(fields), 8, default).unwrap() {
        Rotation { wavelengths: Wavelengths::Base(base), scale, .. } => (base, scale),
        _ => panic!("it has wavelengths of its own"),
    };
    assert_eq!(base(json!({}), Some(500.0)), (500.0, 1.0));
    assert_eq!(base(json!({"rope_theta": 7}), Some(500.0)), (7.0, 1.0));
    assert_eq!(base(json!({"rope_parameters": {"rope_theta": 9.0}}), Some(500.0)), (9.0, 1.0));
    let linear = json!({"rope_theta": 7, "rope_scaling": {"type": "linear", "factor": 4}});
    assert_eq!(base(linear, None), (7.0, 0.25));
}
