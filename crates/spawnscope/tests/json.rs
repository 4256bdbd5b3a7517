//! JSON for programs: what `report`, `advise`, `whatif` and `diff` print is what
//! docs/spawnscope.schema.json says, `--max-bytes` holds, and ids of findings stay the same.

use std::path::Path;

use serde_json::{Value, json};

use crate::directory::Directory;
use crate::stored::{AFTER, BEFORE, TWO_LAUNCHES, execute};
use crate::texts::assert_contains;

const UNPACK: &str = include_str!("recordings/unpack.sql");

/// Returns a directory with these recordings.
fn recordings() -> Directory {
    let named = [("two.db", TWO_LAUNCHES), ("unpack.db", UNPACK), ("before.db", BEFORE), ("after.db", AFTER)];
    Directory::with(&named)
}

/// Returns the words of a command line without quotes.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Returns where a value differs from a schema. Understands the keywords that our schema uses. A
/// key that the schema does not name is a difference, so that every key is documented.
fn differences(schema: &Value, value: &Value, at: &str, definitions: &Value) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let target = &definitions[name.strip_prefix("#/$defs/").unwrap()];
        assert!(target.is_object(), "{name}");
        return differences(target, value, at, definitions);
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = types.iter().any(|name| name == actual || (name == "number" && actual == "integer"));
    let is_listed = schema["enum"].as_array().is_none_or(|values| values.contains(value));
    if !fits || !is_listed {
        return vec![format!("{at}: {value} is not {schema}")];
    }
    let mut found = Vec::new();
    for (index, entry) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(differences(&schema["items"], entry, &format!("{at}[{index}]"), definitions));
    }
    for (key, part) in value.as_object().into_iter().flatten() {
        // The bytes of a text that is not UTF-8.
        let name = key.strip_suffix("_hex").unwrap_or(key);
        match schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]) {
            Value::Null => found.push(format!("{at}.{key} is not in the schema")),
            schema => found.extend(differences(schema, part, &format!("{at}.{key}"), definitions)),
        }
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let missing = required.filter(|key| value.is_object() && value.get(key.as_str().unwrap()).is_none());
    found.extend(missing.map(|key| format!("{at}.{key} is missing")));
    found
}

fn schemas() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spawnscope.schema.json");
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["$defs"].take()
}

#[test]
fn what_is_printed_is_what_the_schema_says() {
    let (directory, definitions) = (recordings(), schemas());
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/logs/python.log");
    assert!(directory.run(&words(&format!("import -o python.db {log}"))).status.success());
    for arguments in [
        "report --json two.db",
        "report --json --by line unpack.db",
        "report --json --by args python.db",
        "report --json --from 0.001 before.db",
        "report --json --max-bytes 3000 unpack.db",
        "advise --json two.db",
        "advise --json unpack.db",
        "advise --json --max-bytes 2000 before.db",
        "whatif --json --remove dirname --cpus 1 unpack.db",
        "diff --json before.db after.db",
        "diff --json --max-bytes 3000 two.db unpack.db",
    ] {
        let verb = arguments.split(' ').next().unwrap();
        let found = differences(&definitions[verb], &directory.json(&words(arguments)), verb, &definitions);
        assert!(found.is_empty(), "{arguments}:\n{}", found.join("\n"));
    }
}

#[test]
fn wrong_values_differ_from_the_schema() {
    let definitions = schemas();
    let diff = recordings().json(&words("diff --json before.db after.db"));
    for (key, wrong) in [("groups", json!(7)), ("unknown", json!(7)), ("wall_ns", json!({})), ("before", Value::Null)] {
        let mut diff = diff.clone();
        diff[key] = wrong;
        assert!(!differences(&definitions["diff"], &diff, "diff", &definitions).is_empty(), "{key}");
    }
}

#[test]
fn bounded_answers_keep_the_first_findings_and_refuse_to_say_nothing() {
    let directory = recordings();
    for verb in ["report --json", "advise --json", "whatif --json --remove dirname", "diff --json two.db"] {
        let whole = directory.json(&words(&format!("{verb} unpack.db")));
        for max_bytes in [4000, 8000, 100_000] {
            let text = directory.text(&words(&format!("{verb} --max-bytes {max_bytes} unpack.db")));
            let answer: Value = serde_json::from_str(&text).unwrap();
            assert!(text.len() <= max_bytes && text.lines().count() == 1, "{text}");
            assert_eq!(answer["wall_ns"], whole["wall_ns"]);
            assert_eq!(answer["advice"][0]["id"], whole["advice"][0]["id"], "{verb} {max_bytes}");
        }
        let refused = directory.run(&words(&format!("{verb} --max-bytes 10 unpack.db")));
        assert_eq!(refused.status.code(), Some(125));
        assert_contains(
            &String::from_utf8(refused.stderr).unwrap(),
            ["--max-bytes 10 is too small: the shortest answer has"],
        );
    }
}

#[test]
fn a_finding_has_the_same_id_in_a_recording_of_the_edited_script() {
    let directory = recordings();
    let ids = |file: &str| -> Vec<Value> {
        let advice = directory.json(&words(&format!("advise --json {file}")));
        let all = advice["advice"].as_array().unwrap().iter().chain(advice["not_worth"].as_array().unwrap());
        all.map(|finding| finding["id"].clone()).collect()
    };
    let before = ids("unpack.db");
    assert!(before.len() > 1 && (1..before.len()).all(|index| !before[..index].contains(&before[index])), "{before:?}");
    // Lines above were added, and the machine has become slower.
    let file = directory.path("unpack.db");
    execute(&file, "UPDATE frame SET line = line + 5; UPDATE recording SET wall_ns = wall_ns + 900000;");
    assert_eq!(ids("unpack.db"), before);
}
