package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// A followed is what is told once the cache is complete, and again once it has
// seen all events.
type followed struct {
	Size     int       `json:"size"`
	Version  string    `json:"version"`
	Measures []measure `json:"measures"`
}

// follow keeps a cache of Pods by a shared informer of client-go, as its
// examples do. Its input is the certificate of the server's authority; a second
// line of output comes when it has seen so many events.
func follow(url string, events int) error {
	authority, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	start, cpu := time.Now(), cpuMicroseconds()
	config := &rest.Config{
		Host:            url,
		TLSClientConfig: rest.TLSClientConfig{CAData: authority},
		// What follows one watch needs no limit of its requests.
		QPS: -1,
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	var changes atomic.Int64
	var newest atomic.Pointer[string]
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) {
			newest.Store(&object.(*corev1.Pod).ResourceVersion)
			changes.Add(1)
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("cannot sync")
	}
	size := len(informer.GetStore().ListKeys())
	if err := tell(followed{size, "", used(start, cpu, size, "object")}); err != nil {
		return err
	}
	if events == 0 {
		return nil
	}
	start, cpu = time.Now(), cpuMicroseconds()
	err = wait.PollUntilContextCancel(ctx, 2*time.Millisecond, true, func(context.Context) (bool, error) {
		return changes.Load() >= int64(events), nil
	})
	if err != nil {
		return err
	}
	return tell(followed{size, *newest.Load(), used(start, cpu, events, "event")})
}

func used(start time.Time, cpu float64, pieces int, piece string) []measure {
	return []measure{
		{"µs CPU/" + piece, (cpuMicroseconds() - cpu) / float64(pieces)},
		{"µs/" + piece, float64(time.Since(start).Microseconds()) / float64(pieces)},
		peakRSS(),
	}
}
