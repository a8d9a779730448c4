use super::*;

fn call(verb: CargoVerb, words: &str) -> Call {
    Call::parse(Some(verb), &words.split_whitespace().map(OsString::from).collect::<Vec<_>>())
}

#[test]
fn package_specifications_are_parsed() {
    let package = Package {
        name: "foo-bar".into(),
        version: "1.2.3".into(),
        dir: "/w/foo".into(),
        embeds: false,
        embeds_with_defaults: false,
        artifacts: Vec::new(),
        rust_libraries: Vec::new(),
        static_libraries: Vec::new(),
        paths: Vec::new(),
        about: serde_json::Value::Null,
    };
    for (spec, truth) in [
        ("foo-bar", true),
        ("foo-bar@1.2", true),
        ("foo-bar:1.2.3", true),
        ("foo-bar@2", false),
        ("foo*", true),
        ("f?o-bar", true),
        ("bar", false),
        ("path+file:///w/foo#foo-bar@1.2.3", true),
        ("path+file:///w/foo#1.2.3", true),
        ("file:///w/foo", true),
        ("file:///w/other", false),
    ] {
        assert_eq!(spec_matches(spec, &package), truth, "{spec}");
    }
}

#[test]
fn profiles_inherit() {
    let given = ["profile.dist.inherits='release'", "profile.measured.inherits='bench'"].map(str::to_owned);
    let config = Config::read(&Env::from_variables([], "/nowhere"), &given).unwrap();
    let of = |words| {
        selected_profile(Some(CargoVerb::Build), &call(CargoVerb::Build, words), &config, Path::new("/nowhere"))
    };
    assert_eq!(of("--profile dist"), ("dist".into(), Some(true)));
    assert_eq!(of("--profile measured"), ("measured".into(), Some(true)));
    assert_eq!(of("--profile bench"), ("release".into(), Some(true)));
    assert_eq!(of("--profile other"), ("other".into(), None));
    assert_eq!(of(""), ("dev".into(), Some(false)));
    assert_eq!(of("-r"), ("release".into(), Some(true)));
}
