// Starts a program many times with Go's os/exec and waits for it. Prints the time of each start and wait in nanoseconds, as JSON.
package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"time"
)

func main() {
	rounds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	var times []int64
	for range rounds {
		began := time.Now()
		if err := exec.Command(os.Args[1]).Run(); err != nil {
			panic(err)
		}
		times = append(times, time.Since(began).Nanoseconds())
	}
	if err := json.NewEncoder(os.Stdout).Encode(times); err != nil {
		panic(err)
	}
}
