//! The page that `html` writes: its frame, its treatment of hostile names, the form of its data,
//! and its size.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use spawnscope::analyze::path::flame::{FlameOptions, Stacking, Weight, flame};
use spawnscope::analyze::path::groups::groups;
use spawnscope::analyze::sites::callers::{Callers, Detail};
use spawnscope::present::html::{Contents, render};

use crate::golden::unpacking;
use crate::golden_files::assert_golden;
use crate::hostile::recording_with;
use crate::prelude::*;

const MIB: usize = 1 << 20;

/// Renders the page of a recording without slices.
fn page(recording: &Recording) -> String {
    let forest = Forest::build(recording);
    let report = report(recording, GroupBy::Command);
    let wanted = FlameOptions { weight: Weight::Wall, stacking: Stacking::Tree, phase: None };
    let tables = [GroupBy::Command, GroupBy::Line, GroupBy::Arguments, GroupBy::Parent]
        .map(|by| (by, groups(&forest, None, by)));
    let contents = Contents {
        report: &report,
        forest: &forest,
        callers: &Callers::find(&forest, Detail::Line),
        path: None,
        stretches: &[],
        tables: &tables,
        waits_of_parents: &[],
        run_queue: &[],
        concurrency: None,
        removals: &[],
        flames: &flame(&forest, None, |name| recording.texts.get(name), wanted).into_iter().collect::<Vec<_>>(),
        file: Some("ci.db"),
    };
    render(&contents).unwrap()
}

/// Returns the text between the first `before` and the next `after`.
#[track_caller]
fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

fn data(page: &str) -> &str {
    let tag = "<script type=\"application/octet-stream;base64\" id=\"data\">";
    between(page, tag, "</script>")
}

/// Decodes the data of a page into its header and the bytes of its columns.
fn unpacked(page: &str) -> (Value, Vec<u8>) {
    let mut bytes = Vec::new();
    let compressed = STANDARD.decode(data(page)).unwrap();
    ZlibDecoder::new(&compressed[..]).read_to_end(&mut bytes).unwrap();
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let header = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
    (header, bytes.split_off(4 + length))
}

/// Returns the sum of a column of LEB128 numbers.
fn sum(header: &Value, columns: &[u8], name: &str) -> u64 {
    let [start, length] = [0, 1].map(|index| header["columns"][name][index].as_u64().unwrap() as usize);
    let mut numbers = columns[start..start + length].iter();
    let mut sum = 0;
    while let Some(first) = numbers.next() {
        let (mut byte, mut number, mut shift) = (*first, u64::from(first & 0x7f), 7);
        while byte & 0x80 != 0 {
            byte = *numbers.next().unwrap();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
        }
        sum += number;
    }
    sum
}

#[test]
fn the_frame_can_be_read_without_scripts() {
    let page = page(&unpacking());
    let style = between(&page, "<style>", "</style>");
    let script = between(&page, "<script type=\"module\">", "</script>");
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    for code in [style, script] {
        let hash = STANDARD.encode(Sha256::digest(code.as_bytes()));
        let is_permitted = policy.replace("&#43;", "+").contains(&hash);
        assert!(page.contains(&hash) || is_permitted, "{policy}");
    }
    let mut frame = page.clone();
    for (text, name) in [(style, "STYLE"), (script, "SCRIPT"), (data(&page), "DATA")] {
        frame = frame.replace(text, name);
    }
    let frame = frame.replace(policy, "POLICY").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    assert_golden(&frame, "report.html");
}

#[test]
fn a_hostile_name_is_not_markup() {
    let attack = b"</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'--><!--";
    let page = page(&recording_with(attack, attack));
    assert_eq!(page.matches("<script").count(), 2, "{page:.2000}");
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("<img") && !page.contains("<!--") && !page.contains("alert(1)</"));
    // The title shows it as text.
    assert!(page.contains("&#60;img src=x onerror=alert(2)&#62;"));
}

#[test]
fn every_column_of_launches_has_one_value_for_each_row() {
    let recording = unpacking();
    let (header, columns) = unpacked(&page(&recording));
    let rows = recording.launches.len() as u64;
    for (name, position) in header["columns"].as_object().unwrap() {
        if !name.starts_with("flame") && !name.starts_with("path") && !name.starts_with("text") {
            assert_eq!(position[2], rows, "{name}");
        }
    }
    assert_eq!(sum(&header, &columns, "count"), rows);
    let [start, length] = [0, 1].map(|at| header["columns"]["text_bytes"][at].as_u64().unwrap());
    assert_eq!(start + length, columns.len() as u64);
}

/// Returns the recording of a build whose launches differ in files, times and call sites.
fn build(launches: u64) -> Recording {
    let mut builder = Builder::command("/usr/bin/make", &["make", "-j8"], launches * 900_000);
    let mut lines = Vec::new();
    for line in 1..50 {
        let frame = builder.line(Language::Bash, "./build.sh", line, "compile");
        lines.push(builder.set_call_chain(ROOT, &[frame]));
    }
    builder.row(ROOT).script_stack = None;
    let mut random = 12_345u64;
    let mut next = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    for number in 1..launches {
        let spans = Spans {
            create: 50_000 + next(200_000),
            queue: next(90_000),
            setup: 20_000 + next(60_000),
            exec: 200_000 + next(500_000),
            load: 300_000 + next(900_000),
            run: next(40_000_000),
            teardown: 30_000 + next(300_000),
            reap: next(80_000),
        };
        let source = format!("src/module{}/file{number}.c", next(90));
        let object = format!("build/{}/file{number}.o", next(90));
        let line = format!("gcc -O2 -g -Wall -Iinclude -DNDEBUG -c {source} -o {object}");
        let arguments: Vec<&str> = line.split(' ').collect();
        let start = number * 880_000 + next(500_000);
        builder.launch(ROOT, start, &spans, Some(("/usr/bin/gcc", &arguments)));
        let launched = builder.recording.launches.last_mut().unwrap();
        launched.script_stack = Some(lines[next(49) as usize]);
    }
    builder.recording
}

#[test]
fn a_page_of_20_000_different_launches_is_below_1_mib() {
    let page = page(&build(20_000));
    assert!(page.len() <= MIB, "{} bytes", page.len());
    let (header, columns) = unpacked(&page);
    assert_eq!(header["columns"]["count"][2], 20_000, "no launches are joined");
    assert_eq!(sum(&header, &columns, "count"), 20_000);
}
