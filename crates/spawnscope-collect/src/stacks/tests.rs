//! Copies the test's own stack as a collector would, and walks it to the start of its thread.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

use super::mappings;
use super::processor::registers_here;
use super::worker::Worker;
use super::{CopiedStack, ImageId, Sample, StackInput};
use spawnscope_data::event::{Chain, Event, EventKind, Language, LaunchId, Nanos, Pid, TaskId};

/// Copies the stack of the calling thread, and the registers that calls preserve, the stack pointer
/// and the current address.
#[inline(never)]
fn stack_of_this_thread() -> CopiedStack {
    let registers = registers_here();
    let memory = File::open("/proc/self/mem").unwrap();
    let mut bytes = vec![0; 16 << 10];
    let copied = memory.read_at(&mut bytes, registers.stack_pointer()).unwrap();
    bytes.truncate(copied);
    CopiedStack {
        at: Nanos(1),
        launch: LaunchId(2),
        task: TaskId(2),
        image: None,
        start_stack: mappings::stack_of_program(own_pid()).unwrap(),
        pid: own_pid(),
        registers,
        bytes,
        sample: None,
    }
}

fn own_pid() -> Pid {
    Pid(std::process::id().cast_signed())
}

fn chain(worker: &mut Worker, stack: CopiedStack) -> Arc<Chain> {
    match worker.process(StackInput::Stack(Box::new(stack))).pop().unwrap().kind {
        EventKind::Called(chain) => chain,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_own_stack_is_walked_to_the_start_of_the_thread() {
    let chain = chain(&mut Worker::default(), stack_of_this_thread());
    let names: Vec<_> = chain.frames.iter().filter_map(|frame| frame.function.as_deref()).collect();
    let [copied, own] = ["stack_of_this_thread", "the_own_stack_is_walked_to_the_start_of_the_thread"]
        .map(|part| names.iter().position(|name| String::from_utf8_lossy(name).contains(part)));
    assert!(copied.is_some() && own > copied, "{chain:#?}");
    assert!(!chain.is_truncated, "{chain:#?}");
    assert!(
        chain.frames.iter().any(|frame| {
            frame.line.is_some() && frame.file.as_deref().is_some_and(|file| file.ends_with(b"stacks/tests.rs"))
        }),
        "{chain:#?}"
    );
}

#[test]
fn the_chain_of_an_incomplete_copy_is_truncated() {
    let complete = stack_of_this_thread();
    let mut worker = Worker::default();
    let frames = chain(&mut worker, complete.clone()).frames.len();
    let mut before = 0;
    for bytes in [0, 64, 512, 1024] {
        let part = CopiedStack { bytes: complete.bytes[..bytes].to_vec(), ..complete.clone() };
        let part = chain(&mut worker, part);
        assert!(part.is_truncated && part.frames.len() < frames && part.frames.len() >= before);
        before = part.frames.len();
    }
}

const IMAGE: ImageId = ImageId(7);

/// Returns a sample in an unknown kernel function, whose image has not been reported.
fn early_sample(stack: CopiedStack) -> StackInput {
    let sample = Sample {
        span: Nanos(5),
        is_waiting: false,
        kernel: vec![0x10],
        is_kernel_truncated: false,
        has_user_part: true,
    };
    StackInput::Stack(Box::new(CopiedStack { image: Some(IMAGE), sample: Some(sample), ..stack }))
}

fn languages(event: &Event) -> (Vec<Language>, bool) {
    let EventKind::Sampled(sampled) = &event.kind else { panic!("{event:?}") };
    let languages = sampled.chain.frames.iter().map(|frame| frame.language);
    (languages.collect(), sampled.chain.is_truncated)
}

#[test]
fn a_sample_waits_for_its_image() {
    let mut worker = Worker::default();
    let stack = stack_of_this_thread();
    let mappings = mappings::read(stack.pid, stack.start_stack).unwrap();
    let pid = stack.pid;
    assert_eq!(worker.process(early_sample(stack)), []);
    for mapping in mappings {
        assert_eq!(worker.process(StackInput::Mapping { image: IMAGE, pid, mapping }), []);
    }
    let other = StackInput::ImageEnd { image: ImageId(8), is_complete: true };
    assert_eq!(worker.process(other), []);
    let events = worker.process(StackInput::ImageEnd { image: IMAGE, is_complete: true });
    let (languages, is_truncated) = languages(&events[0]);
    assert_eq!(languages[..2], [Language::Kernel, Language::Native]);
    assert!(languages.len() > 5 && !is_truncated, "{events:#?}");
    assert_eq!(worker.finish(), [], "no sample is emitted twice");
}

#[test]
fn a_sample_without_its_image_is_still_emitted() {
    let gone = CopiedStack { pid: Pid(0), ..stack_of_this_thread() };
    let mut worker = Worker::default();
    assert_eq!(worker.process(early_sample(gone.clone())), []);
    let mut events = worker.process(StackInput::ImageEnd { image: IMAGE, is_complete: false });
    assert_eq!(worker.process(early_sample(gone)), []);
    events.extend(worker.finish());
    let expected = (vec![Language::Kernel, Language::Native], true);
    assert_eq!(events.iter().map(languages).collect::<Vec<_>>(), [expected.clone(), expected]);
}

#[test]
fn samples_do_not_wait_forever_for_a_process_that_makes_no_system_call() {
    let stack = stack_of_this_thread();
    let mut worker = Worker::default();
    let events: Vec<Event> = (0..1100).flat_map(|_| worker.process(early_sample(stack.clone()))).collect();
    assert!(!events.is_empty());
    assert!(!languages(&events[0]).1, "the mappings were not read from /proc: {:#?}", events[0]);
    assert_eq!(events.len() + worker.finish().len(), 1100);
}

#[test]
fn the_walk_of_a_damaged_stack_ends() {
    let mut worker = Worker::default();
    let mut state = 1u64;
    for _ in 0..200 {
        let mut stack = stack_of_this_thread();
        for _ in 0..64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let index = (state >> 33) as usize % stack.bytes.len();
            stack.bytes[index] ^= (state >> 24) as u8;
        }
        let _ = chain(&mut worker, stack);
    }
}

/// Prints the time of unwinding: `cargo test --release -p spawnscope-collect --lib -- --ignored
/// --nocapture time_of_unwinding`
#[test]
#[ignore = "a measurement"]
fn time_of_unwinding() {
    const STACKS: u32 = 100_000;
    let stack = stack_of_this_thread();
    let mut worker = Worker::default();
    // Report the mappings as the BPF programs do, so that reading /proc is not measured.
    for mapping in mappings::read(stack.pid, stack.start_stack).unwrap() {
        worker.process(StackInput::Mapping { image: ImageId(1), pid: stack.pid, mapping });
    }
    let reported = CopiedStack { image: Some(ImageId(1)), ..stack };
    let start = Instant::now();
    let frames = chain(&mut worker, reported.clone()).frames.len();
    println!("the first stack: {:?}", start.elapsed());
    let start = Instant::now();
    for _ in 0..STACKS {
        worker.process(StackInput::Stack(Box::new(reported.clone()))).pop().unwrap();
    }
    println!("{STACKS} further stacks: {:?} each, with {frames} frames", start.elapsed() / STACKS);
}
