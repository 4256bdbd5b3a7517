//! Reads what is lost when a process ends: its mappings, if the BPF programs cannot report them,
//! and the mapped files. The thread does nothing else, so it lags by one process at most.

use std::sync::atomic::Ordering;

use super::mappings::{self, FileId, ImageId};
use super::recent::RecentMap;
use super::{CopiedStack, MAX_WAITING_FILES, MappingSource, SharedCounts, StackInput, files};
use spawnscope_data::event::Pid;

/// Number of images that are remembered. A process has a new image each time it maps code.
const IMAGES: usize = 4096;

/// Remembers what was opened and read recently.
pub(super) struct Opener {
    mapping_source: MappingSource,
    files: RecentMap<FileId, ()>,
    images: RecentMap<ImageId, ()>,
}

impl Opener {
    pub(super) fn new(mapping_source: MappingSource) -> Opener {
        Opener { mapping_source, files: RecentMap::new(MAX_WAITING_FILES), images: RecentMap::new(IMAGES) }
    }

    /// Passes the input on, preceded by the mappings and files that it needs.
    pub(super) fn forward(&mut self, input: StackInput, counts: &SharedCounts, pass_on: &impl Fn(StackInput)) {
        match input {
            StackInput::UnreadImage { image, pid, start_stack } => {
                self.ensure_image(image, pid, start_stack, counts, pass_on);
            }
            StackInput::Stack(stack) if self.needs_image_now(&stack) => self.forward_stack(stack, counts, pass_on),
            input => {
                if let StackInput::Mapping { image, .. } = &input {
                    self.images.insert(*image, ());
                }
                self.open(&input, counts, pass_on);
                pass_on(input);
            }
        }
    }

    /// Whether the stack's mappings must precede the stack, so that they must be read now if they
    /// were not reported. If the kernel reports mappings, those of a sample may follow it.
    fn needs_image_now(&self, stack: &CopiedStack) -> bool {
        stack.sample.is_none() || self.mapping_source == MappingSource::Recorder
    }

    /// Passes a stack on after its mappings. Drops the stack of a launch if its mappings cannot be
    /// read. A sample is passed on, because it still has its kernel part.
    fn forward_stack(&mut self, mut stack: Box<CopiedStack>, counts: &SharedCounts, pass_on: &impl Fn(StackInput)) {
        if let Some(image) = stack.image
            && !self.ensure_image(image, stack.pid, stack.start_stack, counts, pass_on)
        {
            if stack.sample.is_none() {
                // If the kernel can report mappings and did not do so, the stack counts as lost.
                let is_expected = self.mapping_source == MappingSource::Recorder;
                counts.unreadable.fetch_add(u64::from(is_expected), Ordering::Relaxed);
                counts.bytes.fetch_sub(stack.bytes.len(), Ordering::Relaxed);
                return;
            }
            stack.image = None;
        }
        pass_on(StackInput::Stack(stack));
    }

    /// Reads the mappings of an image unless they are known. Returns `false` if the process has
    /// ended, or runs another program.
    fn ensure_image(
        &mut self,
        image: ImageId,
        pid: Pid,
        start_stack: u64,
        counts: &SharedCounts,
        pass_on: &impl Fn(StackInput),
    ) -> bool {
        if self.images.get(&image).is_some() {
            return true;
        }
        let Some(mappings) = mappings::read(pid, start_stack) else { return false };
        for mapping in mappings {
            let input = StackInput::Mapping { image, pid, mapping };
            self.open(&input, counts, pass_on);
            pass_on(input);
        }
        self.images.insert(image, ());
        true
    }

    fn open(&mut self, input: &StackInput, counts: &SharedCounts, pass_on: &impl Fn(StackInput)) {
        if counts.files.load(Ordering::Relaxed) < MAX_WAITING_FILES
            && let Some(file) = self.open_file(input)
        {
            counts.files.fetch_add(1, Ordering::Relaxed);
            pass_on(file);
        }
    }

    /// Opens the file of a mapping. Returns `None` if it was opened before.
    fn open_file(&mut self, input: &StackInput) -> Option<StackInput> {
        let StackInput::Mapping { pid, mapping, .. } = input else { return None };
        let id = mapping.file.as_ref()?.id;
        if self.files.get(&id).is_some() {
            return None;
        }
        let file = files::open(*pid, mapping)?;
        self.files.insert(id, ());
        Some(StackInput::File { id, file })
    }
}
