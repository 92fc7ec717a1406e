//! Scripts of `ssdyno completion`, asked by the shells themselves where they are installed.

use crate::common::Place;

/// Bash is asked as a user would: what it offers for a line, with the words taken apart at `:` and `=`.
#[test]
fn bash_completes_names_keys_and_values() {
    let place = Place::new();
    place.write("ssdyno.bash", place.ok(&["completion", "bash"]));
    let has_bash = std::process::Command::new("bash").arg("--version").output().is_ok();
    if !has_bash {
        return;
    }
    let offered = |line: &str| {
        let script = format!(
            "source ./ssdyno.bash; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; \
             _ssdyno_whole_words ssdyno; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let bash = std::process::Command::new("bash")
            .args(["--norc", "-c", &script])
            .current_dir(place.path())
            .output()
            .unwrap();
        assert!(bash.stderr.is_empty(), "{line}: {}", String::from_utf8_lossy(&bash.stderr));
        let told = String::from_utf8(bash.stdout).unwrap();
        told.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let has = |line: &str, word: &str| {
        let offered = offered(line);
        assert!(offered.iter().any(|one| one == word), "{line}: {word} in {offered:?}");
    };
    // Bash holds `sim:` already.
    has("ssdyno run sim:p36", "p3600");
    has("ssdyno run s", "sim:p3600");
    has("ssdyno compare sim:config-a sim:nvme", "nvme-tlc");
    has("ssdyno run sim:p3600 -w rand", "randread");
    has("ssdyno run sim:p3600 --workload zi", "zipf");
    has("ssdyno run sim:p3600 --set flash.chan", "flash.channels=");
    has("ssdyno run sim:p3600 -s ftl.hot_cold=", "classes");
    has("ssdyno run sim:p3600 --set ftl.hot_cold=su", "survivors");
    has("ssdyno compare a b --network s4", "s4-iscsi");
    has("ssdyno papers S3/fig", "S3/figure3");
    has("ssdyno comp", "compare");
    has("ssdyno run sim:p3600 --qu", "--queues");
    assert_eq!(offered("ssdyno run sim:p3600 --set ftl.hot_cold=x"), [""]);
    // A device or a file is what bash itself completes where nothing is offered.
    assert_eq!(offered("ssdyno run /dev/nu"), [""]);
}

/// fish is asked as a user would.
#[test]
fn fish_completes_names_keys_and_values() {
    let place = Place::new();
    place.write("ssdyno.fish", place.ok(&["completion", "fish"]));
    for (line, word) in [
        ("ssdyno run sim:p36", "sim:p3600"),
        ("ssdyno run sim:p3600 -w rand", "randread"),
        ("ssdyno run ssd", "ssdyno.fish"),
        ("ssdyno run sim:p3600 --set flash.chan", "flash.channels="),
        ("ssdyno run sim:p3600 --set ftl.hot_cold=su", "ftl.hot_cold=survivors"),
        ("ssdyno compare a sim:nvme", "sim:nvme-tlc"),
        ("ssdyno compare a b --network s4", "s4-iscsi"),
        ("ssdyno papers S3/fig", "S3/figure3"),
    ] {
        let script = format!("source ./ssdyno.fish; complete -C '{line}'");
        let mut fish = std::process::Command::new("fish");
        let Ok(fish) = fish.args(["-N", "-c", &script]).current_dir(place.path()).output() else {
            return;
        };
        assert!(fish.stderr.is_empty(), "{line}: {}", String::from_utf8_lossy(&fish.stderr));
        let told = String::from_utf8(fish.stdout).unwrap();
        assert!(told.lines().any(|one| one.split('\t').next() == Some(word)), "{line}: {told}");
    }
}

/// The functions of the script for zsh, with those of zsh's own system replaced: a terminal is needed to ask it.
#[test]
fn zsh_completes_names_keys_and_values() {
    let place = Place::new();
    let script = place.ok(&["completion", "zsh"]);
    assert!(script.starts_with("#compdef ssdyno\n"));
    for (option, function) in [
        ("WORKLOAD:_ssdyno_workloads'", "_ssdyno_workloads"),
        ("KEY=VALUE:_ssdyno_settings'", "_ssdyno_settings"),
        (":_ssdyno_targets'", "_ssdyno_targets"),
    ] {
        assert!(script.contains(option), "{option}");
        assert!(!script.contains(&format!("({function})")), "{function}");
    }
    place.write("_ssdyno", script);
    for (function, told) in [
        ("_ssdyno_targets", vec!["--", "sim:p3600", "files"]),
        ("_ssdyno_workloads", vec!["--", "randread", "files"]),
        ("_ssdyno_settings", vec!["-S", "flash.channels=", "ftl.hot_cold=survivors"]),
        ("_ssdyno_papers", vec!["S3/figure3"]),
    ] {
        let line = format!(
            "compadd() {{ print -l -- \"$@\" }}; _files() {{ print files }}; compdef() {{ : }}; \
             source ./_ssdyno; {function}"
        );
        let mut zsh = std::process::Command::new("zsh");
        let Ok(zsh) = zsh.args(["-f", "-c", &line]).current_dir(place.path()).output() else {
            return;
        };
        assert!(zsh.stderr.is_empty(), "{function}: {}", String::from_utf8_lossy(&zsh.stderr));
        let offered = String::from_utf8(zsh.stdout).unwrap();
        for word in told {
            assert!(offered.lines().any(|one| one == word), "{function}: {word} in {offered}");
        }
        assert_eq!(
            offered.contains("files"),
            !function.ends_with("settings") && !function.ends_with("papers")
        );
    }
}
