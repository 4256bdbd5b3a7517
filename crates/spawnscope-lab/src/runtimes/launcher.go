package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
)

func main() {
	size, _ := strconv.Atoi(os.Args[1])
	status, _ := strconv.Atoi(os.Args[3])
	ballast := bytes.Repeat([]byte("x"), size)
	fmt.Println(len(ballast))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		count, _ := strconv.Atoi(lines.Text())
		done := 0
		for i := 0; i < count; i++ {
			command := exec.Command(os.Args[2])
			command.Run()
			if command.ProcessState != nil && command.ProcessState.ExitCode() == status {
				done++
			}
		}
		fmt.Println(done)
	}
	runtime.KeepAlive(ballast)
}
