use super::search::expand_origin;
use super::*;
use object::elf::EM_X86_64;

#[test]
fn dynamic_string_tokens_are_expanded() {
    let mut system = System::from_loader(&[], EM_X86_64, &Disk::default());
    system.lib = "lib64".to_owned();
    // glibc calls some processors of Intel "haswell".
    system.platform = "haswell".to_owned();
    let origin = Path::new("/o");
    let expanded =
        |text: &str| expand_tokens(text.as_bytes(), origin, &system).map(|out| String::from_utf8(out).unwrap());
    for (text, meaning) in [
        ("$ORIGIN", "/o"),
        ("${ORIGIN}/../$LIB/x", "/o/../lib64/x"),
        ("$ORIGINAL", "$ORIGINAL"),
        ("$ORIGIN_", "$ORIGIN_"),
        ("${ORIGIN", "${ORIGIN"),
        ("/a/$PLATFORM", "/a/haswell"),
        ("$", "$"),
        ("", ""),
    ] {
        assert_eq!(expanded(text).as_deref(), Some(meaning), "{text}");
    }
    assert_eq!(expand_origin(b"$ORIGIN:/x/${ORIGIN}", origin).unwrap(), b"/o:/x//o");
    assert_eq!(expand_origin(b"/x/$LIB", origin), None);
}

#[test]
fn musl_names_are_recognized() {
    for name in ["libc.so", "libc.musl-x86_64.so.1", "libpthread.so.0", "libm.so.6"] {
        assert!(is_musl_itself(name.as_bytes()), "{name}");
    }
    for name in ["libcudnn.so.9", "libmagic.so", "libdlib.so", "c.so"] {
        assert!(!is_musl_itself(name.as_bytes()), "{name}");
    }
}
