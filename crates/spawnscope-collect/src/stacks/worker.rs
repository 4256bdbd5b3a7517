//! Unwinds stacks and finds names, in the unwinding thread. Caches the images of processes, their
//! files, and chains.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use super::kernel::{self, KernelNames};
use super::mappings::{self, Image, ImageId};
use super::modules::Modules;
use super::recent::RecentMap;
use super::unwind::{CodeAddress, CodeOrigin, Memory, WalkResult, Walker};
use super::{CopiedStack, StackInput};
use spawnscope_data::event::{Chain, Event, EventKind, Frame, Language, Sampled};

/// Number of images in the cache.
const IMAGES: usize = 4096;
/// Number of chains in the cache.
const CHAINS: usize = 16_384;
/// Number of addresses with known frames in the cache.
const ADDRESSES: usize = 16_384;
/// Maximum number of samples that wait for their images, with up to 16 MiB of copied stacks.
const MAX_EARLY_SAMPLES: usize = 1024;

/// Turns stacks into chains.
pub(super) struct Worker {
    images: RecentMap<ImageId, Rc<Image>>,
    modules: Modules,
    walker: Walker,
    /// Chains by the walked addresses and by whether the thread was waiting.
    chains: RecentMap<(WalkResult, bool), Arc<Chain>>,
    kernel: KernelNames,
    /// Samples whose images have not been reported yet, oldest first.
    early: VecDeque<(ImageId, Box<CopiedStack>)>,
    frames_by_address: RecentMap<CodeAddress, Rc<[Frame]>>,
}

impl Default for Worker {
    fn default() -> Worker {
        Worker {
            images: RecentMap::new(IMAGES),
            modules: Modules::default(),
            walker: Walker::default(),
            chains: RecentMap::new(CHAINS),
            kernel: KernelNames::default(),
            early: VecDeque::new(),
            frames_by_address: RecentMap::new(ADDRESSES),
        }
    }
}

impl Worker {
    /// Processes input. Returns the events of the stacks that can now be walked, with as much of
    /// their chains as is known.
    pub(super) fn process(&mut self, input: StackInput) -> Vec<Event> {
        match input {
            StackInput::File { id, file } => self.modules.add(id, file),
            StackInput::Mapping { image, mapping, .. } => match self.images.get(&image) {
                Some(known) => Rc::make_mut(known).add(mapping),
                None => self.images.insert(image, Rc::new(Image::with_mappings(vec![mapping]))),
            },
            StackInput::UnreadImage { .. } => {}
            StackInput::Stack(stack) => return self.process_stack(stack).into_iter().collect(),
            StackInput::ImageEnd { image, is_complete } => {
                if !is_complete {
                    self.images.remove(&image);
                }
                let (ready, early) = self.early.drain(..).partition(|(awaited, _)| *awaited == image);
                self.early = early;
                return self.walk_early(ready);
            }
        }
        Vec::new()
    }

    /// Returns the events of the samples whose images were never reported.
    pub(super) fn finish(&mut self) -> Vec<Event> {
        let early = std::mem::take(&mut self.early);
        self.walk_early(early)
    }

    fn walk_early(&mut self, early: VecDeque<(ImageId, Box<CopiedStack>)>) -> Vec<Event> {
        early.into_iter().filter_map(|(_, stack)| self.event(&stack)).collect()
    }

    /// Walks a stack. A sample whose image has not been reported yet waits for the image, but not
    /// forever, because its thread may go on running without making a system call.
    fn process_stack(&mut self, stack: Box<CopiedStack>) -> Option<Event> {
        let Some(image) = stack.image.filter(|image| stack.sample.is_some() && self.images.get(image).is_none()) else {
            return self.event(&stack);
        };
        self.early.push_back((image, stack));
        if self.early.len() <= MAX_EARLY_SAMPLES {
            return None;
        }
        let (image, oldest) = self.early.pop_front()?;
        if let Some(read) = mappings::read(oldest.pid, oldest.start_stack) {
            self.images.insert(image, Rc::new(Image::with_mappings(read)));
        }
        self.event(&oldest)
    }

    fn event(&mut self, stack: &CopiedStack) -> Option<Event> {
        let chain = self.chain(stack)?;
        Some(Event {
            at: stack.at,
            launch: stack.launch,
            task: stack.task,
            kind: match &stack.sample {
                None => EventKind::Called(chain),
                Some(sample) => EventKind::Sampled(Sampled { span: sample.span, is_waiting: sample.is_waiting, chain }),
            },
        })
    }

    fn chain(&mut self, stack: &CopiedStack) -> Option<Arc<Chain>> {
        let is_waiting = stack.sample.as_ref().is_some_and(|sample| sample.is_waiting);
        let key = (self.walk(stack), is_waiting);
        if key.0.addresses.is_empty() {
            return None;
        }
        if let Some(chain) = self.chains.get(&key) {
            return Some(Arc::clone(chain));
        }
        let walked = &key.0;
        let mut frames = Vec::with_capacity(walked.addresses.len());
        for address in &walked.addresses {
            self.add_frames(address, &mut frames);
        }
        if is_waiting {
            kernel::remove_switch(&mut frames);
        }
        let chain = Arc::new(Chain { frames, is_truncated: walked.is_truncated });
        self.chains.insert(key, Arc::clone(&chain));
        Some(chain)
    }

    /// Returns the addresses of a stack, those in the kernel first.
    fn walk(&mut self, stack: &CopiedStack) -> WalkResult {
        let Some(sample) = &stack.sample else { return self.walk_user_part(stack) };
        let mut walked = WalkResult { is_truncated: true, ..WalkResult::default() };
        if sample.has_user_part && !sample.is_kernel_truncated {
            walked = self.walk_user_part(stack);
            // The thread may be in code without a mapping in the image, such as the vDSO.
            if let (true, Some(address)) = (walked.addresses.is_empty(), stack.registers.next_instruction()) {
                walked.addresses.push(CodeAddress { code: CodeOrigin::Memory, address, is_return: false });
            }
        }
        let in_kernel = sample.kernel.iter().enumerate().map(|(depth, address)| CodeAddress {
            code: CodeOrigin::Kernel,
            address: *address,
            is_return: depth > 0 || sample.is_waiting,
        });
        walked.addresses.splice(0..0, in_kernel);
        walked
    }

    fn walk_user_part(&mut self, stack: &CopiedStack) -> WalkResult {
        let Some(image) = self.image(stack) else {
            return WalkResult { is_truncated: true, ..WalkResult::default() };
        };
        let memory = Memory {
            pid: stack.pid,
            image: &image,
            stack: &stack.bytes,
            start: stack.registers.stack_pointer(),
            start_stack: stack.start_stack,
        };
        self.walker.walk(stack.registers.clone(), &memory, &mut self.modules)
    }

    /// Returns the mappings at the time when the stack was copied.
    fn image(&mut self, stack: &CopiedStack) -> Option<Rc<Image>> {
        let reported = stack.image.and_then(|image| self.images.get(&image).cloned());
        reported
            .or_else(|| mappings::read(stack.pid, stack.start_stack).map(|read| Rc::new(Image::with_mappings(read))))
    }

    fn add_frames(&mut self, at: &CodeAddress, frames: &mut Vec<Frame>) {
        if let Some(known) = self.frames_by_address.get(at) {
            frames.extend_from_slice(known);
            return;
        }
        let plain = Frame { address: Some(at.address), ..Frame::unknown(Language::Native) };
        match &at.code {
            CodeOrigin::Module(id) => {
                let module = self.modules.get(*id);
                let found: Rc<[Frame]> = match module {
                    Some(module) => module.names.frames(&module.path, at.address, at.is_return).into(),
                    None => [plain].into(),
                };
                frames.extend_from_slice(&found);
                self.frames_by_address.insert(at.clone(), found);
            }
            CodeOrigin::File(path) => frames.push(Frame { module: Some(path.to_vec()), ..plain }),
            CodeOrigin::Kernel => {
                let frame = self.kernel.frame(at.address, at.is_return);
                self.frames_by_address.insert(at.clone(), [frame.clone()].into());
                frames.push(frame);
            }
            CodeOrigin::Memory => frames.push(plain),
        }
    }
}
