package main

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queue times the workqueue of client-go, which holds keys and hands each out
// once, as Coracle's does.
func queue(count int) error {
	keys := make([]string, count)
	for i := range keys {
		keys[i] = "team-" + strconv.Itoa(i%250) + "/app-" + strconv.FormatInt(int64(i), 36) + "-67644bbf89-4vs5t"
	}
	// The first round fills the queue's maps; the second is counted.
	var steps map[string]float64
	for range 2 {
		var err error
		if steps, err = queueRound(keys); err != nil {
			return err
		}
	}
	delayed, err := delayedRound(keys)
	if err != nil {
		return err
	}
	all := steps["add"] + steps["re-add"] + steps["take and done"]
	operations := 4 * float64(count)
	return tell([]measure{
		{"ns/operation", 1000 * all / operations},
		{"M operations/s", operations / all},
		{"ns/add", 1000 * steps["add"] / float64(count)},
		{"ns/re-add", 1000 * steps["re-add"] / float64(count)},
		{"ns/take and done", 1000 * steps["take and done"] / float64(count)},
		{"ns/delayed add", 1000 * delayed / float64(count)},
		peakRSS(),
	})
}

var shared = workqueue.NewTyped[string]()

func queueRound(keys []string) (map[string]float64, error) {
	steps := map[string]float64{}
	from := cpuMicroseconds()
	step := func(name string) {
		now := cpuMicroseconds()
		steps[name] = now - from
		from = now
	}
	for _, key := range keys {
		shared.Add(key)
	}
	step("add")
	for _, key := range keys {
		shared.Add(key)
	}
	step("re-add")
	taken := 0
	for shared.Len() > 0 {
		key, _ := shared.Get()
		if key != keys[taken] {
			return nil, fmt.Errorf("key %d must come in its order: received %s", taken, key)
		}
		shared.Done(key)
		taken++
	}
	step("take and done")
	if taken != len(keys) {
		return nil, fmt.Errorf("each key must come once: received %d", taken)
	}
	return steps, nil
}

// delayedRound adds every key for a later time, all at once.
func delayedRound(keys []string) (float64, error) {
	delayed := workqueue.NewTypedDelayingQueue[string]()
	defer delayed.ShutDown()
	// The last one is due first, and tells that all were taken in.
	from := cpuMicroseconds()
	for i, key := range keys[1:] {
		delayed.AddAfter(key, time.Hour+time.Duration(i%1000)*time.Millisecond)
	}
	delayed.AddAfter(keys[0], time.Millisecond)
	if key, _ := delayed.Get(); key != keys[0] {
		return 0, fmt.Errorf("the key that is due must come: received %s", key)
	}
	return cpuMicroseconds() - from, nil
}
