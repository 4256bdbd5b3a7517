//! What the unwinding thread knows: the images of processes, their files, and the chains it made before.

use std::rc::Rc;
use std::sync::Arc;

use super::mappings::{Image, ImageId};
use super::modules::Modules;
use super::perf_map::PerfMaps;
use super::recent::Recent;
use super::unwind::{Code, Memory, Place, Walked, Walker};
use super::{CopiedStack, Told};
use crate::event::{Chain, Event, EventKind, Frame, Language};

/// How much is remembered: processes, chains, and names of places.
const IMAGES: usize = 4096;
const CHAINS: usize = 16_384;
const PLACES: usize = 16_384;

/// Makes chains of stacks.
pub(super) struct Worker {
    images: Recent<ImageId, Rc<Image>>,
    modules: Modules,
    walker: Walker,
    perf_maps: PerfMaps,
    chains: Recent<Walked, Arc<Chain>>,
    named: Recent<Place, Rc<[Frame]>>,
}

impl Default for Worker {
    fn default() -> Worker {
        Worker {
            images: Recent::new(IMAGES),
            modules: Modules::default(),
            walker: Walker::default(),
            perf_maps: PerfMaps::default(),
            chains: Recent::new(CHAINS),
            named: Recent::new(PLACES),
        }
    }
}

impl Worker {
    /// Takes in what was told; the chain, if it was a stack and anything of it is known.
    pub(super) fn take(&mut self, told: Told) -> Option<Event> {
        match told {
            Told::File { id, file } => {
                self.modules.add(id, file);
                None
            }
            Told::PerfMap { image, file } => {
                self.perf_maps.add(image, file);
                None
            }
            Told::Mapping { image, mapping, .. } => {
                match self.images.get(&image) {
                    Some(known) => Rc::make_mut(known).add(mapping),
                    None => self.images.insert(image, Rc::new(Image::of(mapping))),
                }
                None
            }
            Told::Stack(stack) => Some(Event {
                at: stack.at,
                launch: stack.launch,
                task: stack.task,
                kind: EventKind::Called(self.chain(&stack)?),
            }),
        }
    }

    fn chain(&mut self, stack: &CopiedStack) -> Option<Arc<Chain>> {
        let image = self.image(stack)?;
        let memory = Memory {
            pid: stack.pid,
            image: &image,
            stack: &stack.bytes,
            start: stack.registers.stack_pointer(),
        };
        let walked = self.walker.walk(stack.registers.clone(), &memory, &mut self.modules);
        if walked.places.is_empty() {
            return None;
        }
        if let Some(chain) = self.chains.get(&walked) {
            return Some(Arc::clone(chain));
        }
        let mut frames = Vec::with_capacity(walked.places.len());
        for place in &walked.places {
            self.add_frames(place, stack, &mut frames);
        }
        let chain = Arc::new(Chain {
            frames,
            is_truncated: walked.is_truncated,
        });
        // What a process makes at run time may be something else the next time.
        if walked.places.iter().all(|place| place.code != Code::Memory) {
            self.chains.insert(walked, Arc::clone(&chain));
        }
        Some(chain)
    }

    /// What was mapped when the stack was copied.
    fn image(&mut self, stack: &CopiedStack) -> Option<Rc<Image>> {
        let told = stack.image.and_then(|image| self.images.get(&image).cloned());
        told.or_else(|| Image::read(stack.pid, stack.start_stack).map(Rc::new))
    }

    fn add_frames(&mut self, place: &Place, stack: &CopiedStack, frames: &mut Vec<Frame>) {
        if let Some(named) = self.named.get(place) {
            frames.extend_from_slice(named);
            return;
        }
        let plain = Frame {
            address: Some(place.address),
            ..Frame::unknown(Language::Native)
        };
        match &place.code {
            Code::Module(id) => {
                let module = self.modules.numbered(*id);
                let named: Rc<[Frame]> = match module {
                    Some(module) => module.names.frames(&module.path, place.address, place.is_return).into(),
                    None => [plain].into(),
                };
                frames.extend_from_slice(&named);
                self.named.insert(place.clone(), named);
            }
            Code::File(path) => frames.push(Frame {
                module: Some(path.to_vec()),
                ..plain
            }),
            Code::Memory => {
                let called_from = place.address - u64::from(place.is_return);
                let function = self.perf_maps.name(stack, called_from);
                frames.push(Frame { function, ..plain });
            }
        }
    }
}
