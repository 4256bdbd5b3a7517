size, program, status = ARGV
ballast = "x" * size.to_i
$stdout.sync = true
puts ballast.size
$stdin.each_line do |line|
  puts(line.to_i.times.count { system(program) || $?.exitstatus == status.to_i })
end
