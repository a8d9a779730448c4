use super::*;

const LONG: Duration = Duration::from_secs(60);

fn run_shell(script: &str, patience: Duration) -> Result<ProcessOutput, RunError> {
    run_with_timeout(Path::new("/bin/sh"), &["-c", script], None, patience)
}

#[test]
fn output_is_captured() {
    let answer = run_shell("echo a; echo b >&2; exit 3", LONG).unwrap();
    assert_eq!((answer.out.as_str(), answer.err.as_str()), ("a\n", "b\n"));
}

#[test]
fn failure_reason_is_reported() {
    for (script, failed) in [
        ("exit 0", None),
        ("exit 3", Some("exit status 3")),
        ("kill -KILL $$", Some("signal 9 (SIGKILL)")),
        ("kill -SEGV $$", Some("signal 11 (SIGSEGV)")),
    ] {
        let failure = run_shell(script, LONG).unwrap().failed;
        // The system's configuration determines whether a core file is written.
        let failure = failure.map(|failure| failure.replace(" (core dumped)", ""));
        assert_eq!(failure.as_deref(), failed, "{script}");
    }
}

#[test]
fn hanging_process_group_is_killed() {
    assert_eq!(
        run_shell("sleep 600 & wait", Duration::from_millis(50)).unwrap_err().to_string(),
        "did not respond within 0.05 s"
    );
    // Closes its streams and continues to run.
    assert!(run_shell("exec >&- 2>&-; sleep 600", Duration::from_millis(50)).is_err());
}

#[test]
fn endless_output_is_truncated() {
    let long = run_shell("yes | head -c 1000000; true", LONG).unwrap();
    assert!(long.out.len() as u64 <= ENOUGH);
}

#[test]
fn missing_program_is_reported() {
    let error = run_with_timeout::<&str>(Path::new("/nowhere/nvcc"), &[], None, LONG).unwrap_err();
    assert!(error.to_string().starts_with("cannot be started: "), "{error}");
}

#[test]
fn variables_replace_inherited_ones() {
    let variables = BTreeMap::from([("ONLY".to_owned(), OsString::from("this"))]);
    let answer = run_with_timeout(Path::new("/bin/sh"), &["-c", "echo $ONLY$HOME"], Some(&variables), LONG).unwrap();
    assert_eq!(answer.out, "this\n");
}
