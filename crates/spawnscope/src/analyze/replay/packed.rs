//! Steps in half the memory: a recording has about twenty for each launch, and they stay as long as changes are tried on it.

use super::place::{Place, Stage};
use super::program::Step;
use crate::analyze::outside::Outside;
use crate::event::Nanos;
use crate::record::reader::TextId;

/// Steps, one behind the other. Those with a span that does not fit are kept whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    packed: Vec<Packed>,
    whole: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Packed {
    span: u32,
    launch: u32,
    /// A token, a thread, the name of what is outside, or the place of the whole step.
    number: u32,
    stage: Stage,
    kind: Kind,
    outside: Away,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Run,
    Record,
    Lose,
    Wait,
    Sleep,
    Wake,
    Spawn,
    Whole,
}

/// What is outside, without its name.
#[derive(Clone, Copy, Debug)]
enum Away {
    Timer,
    Disk,
    Network,
    Process,
    Scanner,
    Stopped,
    Recorder,
    Unknown,
}

const NO_NAME: u32 = u32::MAX;

impl Steps {
    pub(super) fn len(&self) -> usize {
        self.packed.len()
    }

    pub(super) fn push(&mut self, step: Step) {
        let packed = Packed::of(step).unwrap_or_else(|| {
            self.whole.push(step);
            Packed::number(Kind::Whole, self.whole.len() as u32 - 1)
        });
        self.packed.push(packed);
    }

    pub(super) fn get(&self, place: usize) -> Step {
        let packed = self.packed[place];
        match packed.kind {
            Kind::Whole => self.whole[packed.number as usize],
            _ => packed.step(),
        }
    }
}

impl Packed {
    /// `None` when it does not fit.
    fn of(step: Step) -> Option<Packed> {
        match step {
            Step::Run(span, place) => Packed::at(Kind::Run, span, place),
            Step::Record(span, place) => Packed::at(Kind::Record, span, place),
            Step::Lose(span, place) => Packed::at(Kind::Lose, span, place),
            Step::Wait(token, place, span) => {
                let packed = Packed::at(Kind::Wait, span, place)?;
                Some(Packed {
                    number: token,
                    ..packed
                })
            }
            Step::Sleep(span, place, outside) => {
                let packed = Packed::at(Kind::Sleep, span, place)?;
                Some(Packed {
                    number: outside.process().map_or(NO_NAME, |name| name.0),
                    outside: Away::of(outside),
                    ..packed
                })
            }
            Step::Wake(token) => Some(Packed::number(Kind::Wake, token)),
            Step::Spawn(thread) => Some(Packed::number(Kind::Spawn, thread)),
        }
    }

    fn at(kind: Kind, span: Nanos, place: Place) -> Option<Packed> {
        Some(Packed {
            span: u32::try_from(span.0).ok()?,
            launch: place.launch,
            stage: place.stage,
            ..Packed::number(kind, 0)
        })
    }

    fn number(kind: Kind, number: u32) -> Packed {
        Packed {
            span: 0,
            launch: 0,
            number,
            stage: Stage::default(),
            kind,
            outside: Away::Unknown,
        }
    }

    fn step(self) -> Step {
        let span = Nanos(u64::from(self.span));
        let place = Place {
            launch: self.launch,
            stage: self.stage,
        };
        match self.kind {
            Kind::Run => Step::Run(span, place),
            Kind::Record => Step::Record(span, place),
            Kind::Lose => Step::Lose(span, place),
            Kind::Wait => Step::Wait(self.number, place, span),
            Kind::Sleep => Step::Sleep(span, place, self.outside.with_name(self.number)),
            Kind::Wake | Kind::Whole => Step::Wake(self.number),
            Kind::Spawn => Step::Spawn(self.number),
        }
    }
}

impl Away {
    fn of(outside: Outside) -> Away {
        match outside {
            Outside::Timer => Away::Timer,
            Outside::Disk => Away::Disk,
            Outside::Network => Away::Network,
            Outside::Process(_) => Away::Process,
            Outside::Scanner(_) => Away::Scanner,
            Outside::Stopped => Away::Stopped,
            Outside::Recorder => Away::Recorder,
            Outside::Unknown => Away::Unknown,
        }
    }

    fn with_name(self, name: u32) -> Outside {
        let name = (name != NO_NAME).then_some(TextId(name));
        match self {
            Away::Timer => Outside::Timer,
            Away::Disk => Outside::Disk,
            Away::Network => Outside::Network,
            Away::Process => Outside::Process(name),
            Away::Scanner => Outside::Scanner(name),
            Away::Stopped => Outside::Stopped,
            Away::Recorder => Outside::Recorder,
            Away::Unknown => Outside::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::phases::Phase;

    #[test]
    fn what_comes_out_is_what_was_put_in() {
        let place = Place {
            launch: 7,
            stage: Stage::new(Phase::Load, 3),
        };
        let (short, long) = (Nanos(5), Nanos(1 << 40));
        let all = [
            Step::Run(short, place),
            Step::Run(long, place),
            Step::Record(short, place),
            Step::Lose(Nanos(u64::from(u32::MAX)), place),
            Step::Wait(9, place, short),
            Step::Wait(9, place, long),
            Step::Sleep(short, place, Outside::Process(Some(TextId(2)))),
            Step::Sleep(short, place, Outside::Scanner(None)),
            Step::Sleep(long, place, Outside::Disk),
            Step::Wake(3),
            Step::Spawn(4),
        ];
        let mut steps = Steps::default();
        all.iter().for_each(|step| steps.push(*step));
        assert_eq!((0..steps.len()).map(|place| steps.get(place)).collect::<Vec<_>>(), all);
        assert_eq!(size_of::<Packed>(), 16);
    }
}
