//! Edits of loops that call mv, cp or ln with another pair of names each time: the loop prints the
//! pairs, and one process after it handles all of them in turn.

use super::around::{Around, Statement};
use super::many::through_pipe;
use super::shell::FoundCall;
use super::{EditRefusal, Splice, refuse};
use crate::patterns::script::Word;

/// Returns a command that reads pairs of NUL-terminated names, and does with each what the program
/// with these options does. As for `mv`, a destination that is a directory gets the file's name,
/// and a failure is reported and changes the exit status.
pub(in crate::explain::advice) fn one_process(program: &[u8], options: &[&[u8]]) -> Option<String> {
    let function = match (program, options) {
        (b"mv", [] | [b"-f"]) => "mv(@f)",
        (b"cp", []) => "cp(@f)",
        (b"ln", [b"-s"]) => "symlink($f[0], $f[1])",
        _ => return None,
    };
    Some(format!(
        "perl -MFile::Copy=cp,mv -0 -ne 'chomp; push @f, $_; next if @f < 2; if (-d $f[1]) {{ my ($n) = $f[0] =~ m{{([^/]+)/*\\z}}; \
         $f[1] .= \"/$n\" }} {function} or warn(\"$f[1]: $!\\n\"), $bad = 1; @f = (); END {{ $? = 1 if $bad }}'"
    ))
}

/// Prints the pairs of a loop for one process.
pub(super) fn pairs(
    call: &FoundCall<'_, '_>,
    around: &Around<'_>,
    statement: &Statement<'_>,
) -> Result<Vec<Splice>, EditRefusal> {
    let [options @ .., _, _] = &call.simple.words[1..] else { return refuse("the call has no pair of names") };
    let options: Option<Vec<Vec<u8>>> = options.iter().map(Word::literal).collect();
    let options = options.unwrap_or_default();
    let options: Vec<&[u8]> = options.iter().map(Vec::as_slice).filter(|option| *option != b"--").collect();
    let Some(reader) = one_process(&call.rewrite.program, &options) else {
        return refuse("no other program handles pairs with these options");
    };
    let last = call.simple.words.len() - 1;
    through_pipe(call, around, statement, &[last - 1, last], ["\\0", &reader])
}
