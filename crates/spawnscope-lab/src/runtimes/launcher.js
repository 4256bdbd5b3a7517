const { spawnSync } = require("child_process");
const { writeSync } = require("fs");

const [size, program, status] = process.argv.slice(2);
const ballast = Buffer.alloc(Number(size), 1);
writeSync(1, `${ballast.length}\n`);
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
    let done = 0;
    for (let i = 0; i < Number(line); i++) {
        done += spawnSync(program, { stdio: "ignore" }).status === Number(status) && ballast.length >= 0;
    }
    writeSync(1, `${done}\n`);
});
