//! The lines of Perl programs that request launches: every construct that launches, each with its
//! expected chain of callers.

use crate::support::chains::{Shell, assert_chains, chain_of, labelled_chains};
use crate::support::prelude::*;

live_test! {
    #[needs(Perl)]
    fn every_way_in_which_perl_launches_has_its_line = statements(&perl());
    fn perl_functions_and_modules_have_their_callers = functions(&perl());
    fn code_that_perl_evaluates_has_the_line_of_its_eval = evaluated(&perl());
    fn a_program_on_the_command_line_of_perl_has_lines = command_line(&perl());
}

/// All these checks; `suites.rs` makes them with other versions of Perl.
pub const CHECKS: [fn(&Shell); 4] = [statements, functions, evaluated, command_line];

fn perl() -> Shell {
    Shell::installed("perl")
}

fn statements(shell: &Shell) {
    let script = "\
system '@t', 'list';
system '@t string';
my $x = `@t backticks`;
my @x = qx(@t qx);
open my $in, '-|', '@t', 'open_list' or die;
close $in;
open $in, '@t open_string|' or die;
close $in;
open my $out, '|-', '@t', 'open_to' or die;
close $out;
for my $i (1, 2) {
  next if $i == 1;
  system '@t', \"loop$i\";
}
my $pid = fork;
if (!$pid) {
  exec '@t', 'executed';
}
waitpid $pid, 0;
system('@t', 'condition') == 0
  or die;
{
  local $SIG{USR1} = sub { system '@t', 'in_signal' };
  kill 'USR1', $$;
}
";
    let truth = [
        ("loop2", "main.sh:13"),
        // Perl executes it at the line of its fork.
        ("executed", "main.sh:15"),
        ("in_signal", "main.sh:23 __ANON__ < main.sh:24"),
    ];
    shell.expect_own_lines(script, &truth);
}

fn functions(shell: &Shell) {
    let module = "\
package Relocate;
sub relocate {
  system '@t', @_;
}
system '@t', 'loaded';
1;
";
    let script = "\
use strict;
BEGIN { push @INC, $0 =~ m{(.*)/} }
use Relocate;
sub inner {
  my $x = `@t $_[0]`;
}
sub outer { inner(@_); }

inner('function');
outer('nested');
Relocate::relocate('module');
my $code = sub { system '@t', 'anonymous' };
$code->();
my @sorted = sort { system '@t', 'in_sort'; 0 } 1, 2;
eval { system '@t', 'tried' };
require IPC::Open3;
my $pid = IPC::Open3::open3(my $in, my $out, undef, '@t', 'library');
waitpid $pid, 0;
sub deep { $_[0] ? deep($_[0] - 1) : system '@t', 'deep' }
deep(50);
";
    let truth = [
        ("function", "main.sh:5 inner < main.sh:9"),
        ("nested", "main.sh:5 inner < main.sh:7 outer < main.sh:10"),
        ("module", "Relocate.pm:3 relocate < main.sh:11"),
        ("anonymous", "main.sh:12 __ANON__ < main.sh:13"),
        ("in_sort", "main.sh:14"),
        ("tried", "main.sh:15"),
    ];
    let recorded = shell.expect(script, &[("Relocate.pm", module)], &truth);
    // Perl 5.32 does not store the caller of a BEGIN block.
    let loaded = chain_of(&recorded, "loaded").strip_prefix("Relocate.pm:5 < main.sh:3 BEGIN < ");
    assert!(matches!(loaded, Some("main.sh:3" | "...")), "{recorded:#?}");
    let library = chain_of(&recorded, "library");
    assert!(library.starts_with("Open3.pm:") && library.ends_with(" < main.sh:17"), "{library}");
    let deep = ["main.sh:19 deep"; 32].join(" < ") + " < ...";
    assert_eq!(chain_of(&recorded, "deep"), deep);
}

fn evaluated(shell: &Shell) {
    let script = "\
eval q{

  system '@t', 'text';
};
eval q{
  sub made { system '@t', 'made' }
};
made();
eval qq{#line 7 \"template.pl\"\\nsystem '@t', 'named'};
";
    let truth = [("text", "main.sh:1"), ("made", "main.sh:8"), ("named", "template.pl:7 < main.sh:9")];
    shell.expect(script, &[], &truth);
}

fn command_line(shell: &Shell) {
    let record = Record::new();
    let text = "sub f { system '@t', 'in_f' }\nsystem '@t', 'own';\nf();\n".replace("@t", &word("tiny"));
    shell.record(&record, &["-e", &text]).expect_code(0);
    assert_chains(&labelled_chains(&record.file()), &[("own", "-e:2"), ("in_f", "-e:1 f < -e:3")]);
}
