# Launches `true` COUNT times, one after the other. With --leak, the program keeps 1 MiB for each launch, so that each fork has more
# page tables to copy. With --helper, it starts a shell once, and this shell launches `true`.
# Usage: rakudo launches.raku [--leak] [--helper] [COUNT]
sub MAIN(Int $count = 300, Bool :$leak, Bool :$helper) {
    my $text = ('x' x 1024 * 1024).encode;
    my @kept;
    my $shell = Proc::Async.new(:w, 'sh');
    my $answers = $shell.stdout.lines.Channel;
    my $ended = $shell.start if $helper;
    for ^$count {
        if $helper {
            await $shell.say('/bin/true; echo $?');
            $answers.receive;
        } else {
            await Proc::Async.new('/bin/true').start;
        }
        @kept.push($text.subbuf(0)) if $leak;
    }
    if $helper {
        $shell.close-stdin;
        await $ended;
    }
    my $resident = '/proc/self/status'.IO.lines.first(*.starts-with('VmRSS')).words[1].Int;
    say "$count launches, {$resident div 1024} MiB resident";
}
