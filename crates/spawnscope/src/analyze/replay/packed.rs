//! Steps in a third of the memory: a recording has about twenty for each launch, and they stay as long as changes are tried on it.

use super::place::{Place, Stage};
use super::program::Step;
use crate::analyze::outside::Outside;
use crate::event::Nanos;

/// Steps, one behind the other. Those that do not fit are kept whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    packed: Vec<Packed>,
    whole: Vec<Step>,
    /// By token, how long the wait for it took. Each token is waited for once.
    waits: Vec<u32>,
    /// What sleeps are for; there are few.
    outside: Vec<Outside>,
}

/// A step, but for what `Steps` has by its numbers.
#[derive(Clone, Copy, Debug)]
struct Packed {
    /// A span, a token, a thread, or the place of the whole step.
    number: u32,
    launch: u32,
    stage: Stage,
    kind: Kind,
    /// Of a sleep, what it is for.
    outside: u8,
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

impl Steps {
    pub(super) fn len(&self) -> usize {
        self.packed.len()
    }

    pub(super) fn push(&mut self, step: Step) {
        let packed = self.pack(step).unwrap_or_else(|| {
            self.whole.push(step);
            Packed::number(Kind::Whole, self.whole.len() as u32 - 1)
        });
        self.packed.push(packed);
    }

    pub(super) fn get(&self, place: usize) -> Step {
        let packed = self.packed[place];
        let (span, place) = (Nanos(u64::from(packed.number)), packed.place());
        match packed.kind {
            Kind::Run => Step::Run(span, place),
            Kind::Record => Step::Record(span, place),
            Kind::Lose => Step::Lose(span, place),
            Kind::Wait => {
                let span = self.waits[packed.number as usize];
                Step::Wait(packed.number, place, Nanos(u64::from(span)))
            }
            Kind::Sleep => Step::Sleep(span, place, self.outside[usize::from(packed.outside)]),
            Kind::Wake => Step::Wake(packed.number),
            Kind::Spawn => Step::Spawn(packed.number),
            Kind::Whole => self.whole[packed.number as usize],
        }
    }

    /// `None` when it does not fit.
    fn pack(&mut self, step: Step) -> Option<Packed> {
        match step {
            Step::Run(span, place) => Packed::span(Kind::Run, span, place),
            Step::Record(span, place) => Packed::span(Kind::Record, span, place),
            Step::Lose(span, place) => Packed::span(Kind::Lose, span, place),
            Step::Wait(token, place, span) => {
                let span = u32::try_from(span.0).ok()?;
                if self.waits.len() <= token as usize {
                    self.waits.resize(token as usize + 1, 0);
                }
                self.waits[token as usize] = span;
                Some(Packed::at(Kind::Wait, token, place))
            }
            Step::Sleep(span, place, outside) => {
                let packed = Packed::span(Kind::Sleep, span, place)?;
                let outside = self.number_of(outside)?;
                Some(Packed { outside, ..packed })
            }
            Step::Wake(token) => Some(Packed::number(Kind::Wake, token)),
            Step::Spawn(thread) => Some(Packed::number(Kind::Spawn, thread)),
        }
    }

    fn number_of(&mut self, outside: Outside) -> Option<u8> {
        let known = self.outside.iter().position(|known| *known == outside);
        let number = u8::try_from(known.unwrap_or(self.outside.len())).ok()?;
        if known.is_none() {
            self.outside.push(outside);
        }
        Some(number)
    }
}

impl Packed {
    /// `None` when it does not fit.
    fn span(kind: Kind, span: Nanos, place: Place) -> Option<Packed> {
        Some(Packed::at(kind, u32::try_from(span.0).ok()?, place))
    }

    fn at(kind: Kind, number: u32, Place { launch, stage }: Place) -> Packed {
        Packed {
            launch,
            stage,
            ..Packed::number(kind, number)
        }
    }

    fn number(kind: Kind, number: u32) -> Packed {
        Packed {
            number,
            launch: 0,
            stage: Stage::default(),
            kind,
            outside: 0,
        }
    }

    fn place(self) -> Place {
        Place {
            launch: self.launch,
            stage: self.stage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::phases::Phase;
    use crate::record::reader::TextId;

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
            Step::Wait(2, place, long),
            Step::Sleep(short, place, Outside::Process(Some(TextId(2)))),
            Step::Sleep(short, place, Outside::Scanner(None)),
            Step::Sleep(long, place, Outside::Disk),
            Step::Wake(3),
            Step::Spawn(4),
        ];
        let mut steps = Steps::default();
        all.iter().for_each(|step| steps.push(*step));
        assert_eq!((0..steps.len()).map(|place| steps.get(place)).collect::<Vec<_>>(), all);
        assert_eq!(size_of::<Packed>(), 12);
    }

    #[test]
    fn sleeps_for_more_than_can_be_numbered_are_kept_whole() {
        let (launch, stage) = (7, Stage::new(Phase::Run, 0));
        let sleep = |name| Step::Sleep(Nanos(1), Place { launch, stage }, Outside::Process(Some(TextId(name))));
        let mut steps = Steps::default();
        (0..300).for_each(|name| steps.push(sleep(name)));
        assert!((0..300).all(|name| steps.get(name as usize) == sleep(name)));
        assert_eq!((steps.outside.len(), steps.whole.len()), (256, 44));
    }
}
