<?php
ini_set("memory_limit", "-1");
[, $size, $program, $status] = $argv;
$ballast = str_repeat("x", (int) $size);
echo strlen($ballast), "\n";
while (($line = fgets(STDIN)) !== false) {
    for ($i = $done = 0; $i < (int) $line; $i++) {
        $done += proc_close(proc_open([$program], [], $pipes)) === (int) $status;
    }
    echo $done, "\n";
}
