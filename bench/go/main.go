// Command bench runs the rivals of Coracle that are written in Go, each as its
// own documentation says. It prints its measures as one line of JSON, in the
// form of bench/support/bench.ts.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// A measure is one number that a subject gave.
type measure struct {
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	usage := fmt.Errorf("usage: bench queue KEYS | follow URL EVENTS | reconcile|cleanup|update KUBECONFIG OBJECTS | kinds unstructured|metadata KINDS OBJECTS")
	if len(args) == 0 {
		return usage
	}
	switch {
	case args[0] == "queue" && len(args) == 2:
		keys, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return queue(keys)
	case args[0] == "follow" && len(args) == 3:
		events, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return follow(args[1], events)
	case args[0] == "reconcile" && len(args) == 3:
		return reconcileAll(args[1], false)
	case args[0] == "cleanup" && len(args) == 3:
		return reconcileAll(args[1], true)
	case args[0] == "kinds" && len(args) == 4:
		kinds, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		objects, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		return watchKinds(args[1], kinds, objects)
	case args[0] == "update" && len(args) == 3:
		return updateAll(args[1])
	}
	return usage
}

// tell prints something for the process that started this one.
func tell(value any) error {
	return json.NewEncoder(os.Stdout).Encode(value)
}

// usage is what the process has used so far.
func usage() syscall.Rusage {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return used
}

// cpuMicroseconds is the processor time used so far, of all threads.
func cpuMicroseconds() float64 {
	used := usage()
	return float64(used.Utime.Sec+used.Stime.Sec)*1e6 +
		float64(used.Utime.Usec+used.Stime.Usec)
}

// peakRSS is the most memory that the process ever held.
func peakRSS() measure {
	return measure{Unit: "MiB peak RSS", Value: float64(usage().Maxrss) / 1024}
}
