$| = 1;
my ($size, $program, $status) = @ARGV;
my $ballast = "x" x $size;
print length($ballast), "\n";
while (my $count = <STDIN>) {
    print scalar(grep { system({ $program } $program) >> 8 == $status } 1 .. $count), "\n";
}
